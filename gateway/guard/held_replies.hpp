// Recorded replies while they are sent: whoever repeats a request shares the bytes with the others
// that repeat it, and they are counted once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "gateway/guard/memory.hpp"
#include "gateway/rules/recorded_reply.hpp"

namespace semel::gateway {

struct Admission;
struct Work;

/// Thread-safe. Outlives what it holds.
class HeldReplies {
 public:
  explicit HeldReplies(MemoryBudget& budget) : budget_(budget) {}
  HeldReplies(const HeldReplies&) = delete;
  HeldReplies& operator=(const HeldReplies&) = delete;

  /// Counts the bytes of a reply that a store has given for `work`, or takes those that somebody
  /// holds already in their place. Refuses it where the budget has no room. Of another admission
  /// nothing.
  void share(const Work& work, Admission& admission);
  /// Likewise. False: there is no room.
  [[nodiscard]] bool share(const Work& work, RecordedReply& reply);

 private:
  using Bytes = std::shared_ptr<const std::string>;
  struct Held;
  [[nodiscard]] Bytes hold(const Work& work, Bytes record);
  void forget(const std::string& name) noexcept;

  MemoryBudget& budget_;
  base::Mutex mutex_;
  std::map<std::string, std::weak_ptr<Held>, std::less<>> held_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::gateway
