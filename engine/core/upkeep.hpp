// The upkeep as operations see it: whatever ends records and frees memory beside them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace semel::engine {

struct ThreadContext;

/// What an operation that was refused memory has tried already.
enum class Room : std::uint8_t { nothing, retired, swept, gathered, moved, all };

/// Thread-safe.
class Upkeep {
 public:
  /// After a refusal for want of memory, outside of the operation: ends what is due, takes back
  /// what threads keep, moves records, each time the next of these. False: there is nothing more to
  /// try. Progress: bounded, without waiting.
  [[nodiscard]] virtual bool make_room(ThreadContext& context, Room& tried) = 0;
  /// Region::try_charge(), but looks for room before it says no. Not inside an operation.
  [[nodiscard]] virtual bool try_charge(std::size_t bytes) = 0;
  /// Moves this thread's timers into the wheel unless another thread is using it; and frees large
  /// objects, see LargeRecords::collect_if_due().
  virtual void drain_own_timers(ThreadContext& context) = 0;

 protected:
  ~Upkeep() = default;
};

}  // namespace semel::engine
