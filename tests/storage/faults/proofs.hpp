// What holds when the machine fails: the proofs of one program, and what it may be told.
#pragma once

#include <cstdint>
#include <string>

#include "tests/storage/faults/power_disk.hpp"

namespace semel::faults {

struct Wanted {
  std::uint64_t seed = 0;
  bool is_long = false;
  std::uint64_t count = 0;  ///< of images, or of lives; 0: as the proof has it
  PowerDisk::Lie lie = PowerDisk::Lie::none;
  std::uint64_t lie_every = 0;  ///< 0: as the proof has it
  bool any_order = false;       ///< of appended sectors
  bool must_find = false;
  std::string keep{};
  [[nodiscard]] bool lies() const noexcept { return lie != PowerDisk::Lie::none; }
  /// The verdict is turned round: something is wrong on purpose.
  [[nodiscard]] bool finds() const noexcept { return must_find || lies(); }
};

inline constexpr int skipped = 77;

// Each prints its figure in the last line and returns the exit code.
[[nodiscard]] int prove_images(const Wanted& wanted);

/// What happens to a storage in its lives. None: it is closed and opened again.
struct Schedule {
  std::string name{};  ///< as it was asked for
  bool loses_power = false;
  bool is_killed = false;
  bool fills_up = false;  ///< a small file system, which gets space back
  bool steps_clock = false;
  bool fails_syncs = false;
  bool is_slow = false;      ///< for a while
  bool is_copied = false;    ///< backed up, restored, swapped
  bool is_damaged = false;   ///< copies of it are
  bool is_upgraded = false;  ///< it begins as an earlier release left it

  /// Whether some lives end by being closed.
  [[nodiscard]] bool is_closed() const noexcept {
    return fills_up || steps_clock || fails_syncs || is_slow || is_copied || is_damaged ||
           is_upgraded;
  }
  [[nodiscard]] bool takes_long() const noexcept { return fills_up || fails_syncs || is_slow; }
};
[[nodiscard]] int prove_lives(const Wanted& wanted, const Schedule& schedule);

}  // namespace semel::faults
