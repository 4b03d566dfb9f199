// Recorded replies while they are sent: clients that repeat one request share its bytes, which are
// counted once.
#pragma once

#include <functional>
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

/// Thread-safe. Outlives the replies that it holds.
class HeldReplies {
 public:
  explicit HeldReplies(MemoryBudget& budget) : budget_(budget) {}
  HeldReplies(const HeldReplies&) = delete;
  HeldReplies& operator=(const HeldReplies&) = delete;

  /// For a replayed admission: counts the bytes of the reply that a store has given for `work`, or
  /// uses equal bytes that another request already holds. Turns it into a refusal if the budget has
  /// no room. Leaves any other admission unchanged.
  void share(const Work& work, Admission& admission);
  /// The same for a reply. False: there is no room.
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
