// The timing wheel of an engine: timers come from the threads' queues, and leave when they fire or
// when their record has ended before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/core/core.hpp"
#include "engine/time/ttl_wheel.hpp"

namespace semel::engine {

/// For one thread at a time.
class Timers {
 public:
  explicit Timers(Core& core) noexcept : core_(core) {}

  void start(Timestamp now);
  /// Moves the timers of a thread's queue into the wheel. Inside an operation of `own`. False: some
  /// were dropped for want of memory.
  [[nodiscard]] bool drain(ThreadContext& own, ThreadContext& context);
  /// TtlWheel::advance().
  template <class Expire>
  [[nodiscard]] std::size_t advance(Timestamp now, std::size_t budget, Expire&& expire) {
    return wheel_->advance(now, budget, expire);
  }
  /// Drops timers of records that have ended, if there are many. Not inside an operation.
  void step_compaction(std::size_t budget);

  [[nodiscard]] TtlWheel& wheel() noexcept { return *wheel_; }

 private:
  /// The rest of drain() where many timers are of records that have ended: leaves those out.
  void drain_living(ThreadContext& own, ThreadContext& context);

  Core& core_;
  std::unique_ptr<TtlWheel> wheel_;
  bool compacting_ = false;
  std::size_t compact_above_ = 0;
  std::size_t compacted_to_ = 0;  // what it held after the last time
};

}  // namespace semel::engine
