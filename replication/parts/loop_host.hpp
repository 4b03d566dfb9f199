// What the parts of a replica ask of its loop.
#pragma once

#include <cstdint>
#include <string>

#include "semel/clock.hpp"

namespace semel::replication {

/// For the loop's thread alone.
class LoopHost {
 public:
  LoopHost() = default;
  LoopHost(const LoopHost&) = delete;
  LoopHost& operator=(const LoopHost&) = delete;

  /// The replica takes part no longer: whatever comes now is dropped.
  [[nodiscard]] virtual bool is_ended() const noexcept = 0;
  virtual void stop_with(const std::string& why) = 0;
  /// After whatever has happened.
  virtual void turn() = 0;
  /// A turn is due, after what runs now.
  virtual void wake_soon() = 0;

 protected:
  ~LoopHost() = default;
};

/// Milliseconds of the loop's clock.
[[nodiscard]] inline std::uint64_t millis_of(const Clock& clock) noexcept {
  return static_cast<std::uint64_t>(clock.now().time_since_epoch().count());
}

}  // namespace semel::replication
