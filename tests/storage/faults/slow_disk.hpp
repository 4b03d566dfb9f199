// A disk that takes its time under a storage: each sync, and each write of RocksDB, lasts longer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

/// What it asks of a storage is in lives.cpp.
class SlowDisk {
 public:
  struct Total {
    std::uint64_t spells = 0;
    std::uint64_t lookups = 0;
    std::uint64_t confirmed = 0;
    std::uint64_t unknown = 0;
    std::uint64_t most_waiting = 0;  ///< bytes of the log
    double worst_ratio = 0;          ///< of the p99 of lookups to that before
    Millis slowest_confirm{0};
    std::int64_t growth_kib = 0;
    std::uint64_t slow_lookups = 0;
    std::uint64_t bad_lookups = 0;
    std::uint64_t unbounded = 0;  ///< what waits, or memory
    std::uint64_t endless = 0;    ///< waits
    std::uint64_t wrong = 0;      ///< confirmed, and the disk cannot have it
    std::uint64_t not_again = 0;  ///< it did not work on the quick disk
    [[nodiscard]] std::uint64_t findings() const noexcept {
      return slow_lookups + bad_lookups + unbounded + endless + wrong + not_again;
    }
  };
  static constexpr Millis confirm_within{400};
  static constexpr Millis start_delay{2};

  SlowDisk(std::function<void(const std::string&)> say, std::size_t log_bytes, bool is_long)
      : say_(std::move(say)), log_bytes_(log_bytes), is_long_(is_long) {}

  /// Makes `disk` slow for a while, judges what `world` does, and makes it quick again if
  /// `ends_slow` is false. `prober` is this thread's worker, while others go on. Ends when `disk`
  /// is cut or fails.
  void meet(World& world, Worker& prober, PowerDisk& disk, bool ends_slow);

  [[nodiscard]] const Total& total() const noexcept { return total_; }
  [[nodiscard]] std::string report() const;

 private:
  struct Looks;
  [[nodiscard]] Looks look_up(World& world, const Worker& prober, const PowerDisk& disk,
                              Millis duration) const;
  void judge(const Looks& quick, const Looks& slow, Millis delay, std::int64_t growth_kib);
  void judge_again(World& world, Worker& prober, const PowerDisk& disk);
  void limit(bool holds, std::uint64_t& kind, const std::string& what);

  const std::function<void(const std::string&)> say_;
  const std::size_t log_bytes_;
  const bool is_long_;
  const SystemClock clock_;
  bool was_late_ = false;  // lookups, the last time
  Total total_;
};

}  // namespace semel::faults
