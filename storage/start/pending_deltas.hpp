// Deltas that recovery has read, until the records that they follow on are in the engine. Mutations
// come in any order, so these are kept aside; from time to time, and at the end, those are applied
// whose base has come, and those dropped that a newer record has overtaken.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"

namespace semel::storage {

/// Thread-safe. std::bad_alloc.
class PendingDeltas {
 public:
  /// Copies it.
  void note(const Mutation& delta);
  /// True: so many are kept that apply() is worth it. No promise that it frees any.
  [[nodiscard]] bool is_due() const noexcept {
    // mo: relaxed: a hint
    return bytes_.load(std::memory_order_relaxed) >= due_.load(std::memory_order_relaxed);
  }
  /// Applies those whose base is there. One thread at a time; another one returns at once, but for
  /// the last call, when no other thread is left. Errors: those of restore_deltas().
  [[nodiscard]] Status apply(Engine& engine);
  /// Of those that are left: how many, and the first. Empty: none.
  [[nodiscard]] std::string describe_left() const;

 private:
  /// Bytes that are kept before the first apply().
  static constexpr std::size_t due_at_first = std::size_t{32} << 20;

  struct Delta {
    Version version;
    Version base;
    Timestamp due;
    Kind kind;
    std::string trail;
  };
  using Key = std::pair<std::uint8_t, std::string>;  // database as stored
  using Deltas = std::map<Key, std::vector<Delta>>;

  [[nodiscard]] static std::size_t bytes_of(const Key& key, const Delta& delta) noexcept;
  /// Leaves in `deltas` what could not be applied.
  [[nodiscard]] static Status apply(Engine& engine, const Key& key, std::vector<Delta>& deltas);

  base::Mutex applying_;
  mutable base::Mutex mutex_;
  Deltas deltas_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> due_{due_at_first};
};

}  // namespace semel::storage
