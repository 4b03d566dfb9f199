// A small file system that fills up under a storage, and gets space back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

/// A tmpfs of 48 MiB in a mount namespace of the process: nobody else sees it, and it goes with the
/// process. Made before there are threads. What it asks of a storage is in lives.cpp.
class FullDisk {
 public:
  struct Total {
    std::uint64_t lives_ended = 0;  ///< on the full disk
    Millis slowest_refusal{0};
    Millis slowest_recovery{0};
    std::uint64_t unclear = 0;  ///< never refused, or the statistics do not say why
    std::uint64_t slow = 0;     ///< refused, but not at once
    std::uint64_t bad_lookups = 0;
    std::uint64_t not_again = 0;  ///< new work was not accepted when there was space
    [[nodiscard]] std::uint64_t findings() const noexcept {
      return unclear + slow + bad_lookups + not_again;
    }
  };

  explicit FullDisk(std::function<void(const std::string&)> say);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  [[nodiscard]] bool is_mounted() const noexcept { return is_mounted_; }
  [[nodiscard]] const std::string& path() const noexcept { return scratch_.path(); }
  [[nodiscard]] const Total& total() const noexcept { return total_; }
  [[nodiscard]] std::string report() const;
  void give_space() const;
  /// To be called before a start: what the process before has left may be too little even for the
  /// text that RocksDB logs, at which RocksDB with assertions ends the process.
  void leave_room() const;

  /// Fills the disk, unless it is full, judges what `world` does then, and gives space back if
  /// `ends_full` is false. `prober` is this thread's worker. Ends when `disk` is cut or fails.
  void meet(World& world, Worker& prober, Observer& observer, const PowerDisk& disk,
            std::uint64_t seed, bool ends_full);

 private:
  [[nodiscard]] std::string ballast() const { return scratch_ / "ballast"; }
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] std::size_t bytes_free() const;
  [[nodiscard]] bool fill(std::size_t left) const;
  void judge_refusals(World& world, Worker& prober, const PowerDisk& disk);
  void judge_recovery(World& world, Worker& prober, const PowerDisk& disk);
  void found(std::uint64_t& kind, const std::string& what);

  const std::function<void(const std::string&)> say_;
  const SystemClock system_;
  const Scratch scratch_;
  const bool is_mounted_;
  Total total_;
};

}  // namespace semel::faults
