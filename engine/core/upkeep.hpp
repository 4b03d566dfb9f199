// The upkeep as operations see it: whatever ends records and frees memory beside them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace semel::engine {

struct ThreadContext;

/// The last step that an operation has tried after it was refused memory.
enum class Room : std::uint8_t { nothing, retired, swept, gathered, moved, all };

/// Thread-safe.
class Upkeep {
 public:
  /// Call after a refusal for want of memory, outside of the operation. Each call takes the next
  /// step: it removes expired records, takes spare memory back from threads, or moves records
  /// together. False: no step is left. Progress: bounded, without waiting.
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
