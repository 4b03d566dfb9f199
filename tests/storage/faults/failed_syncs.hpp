// Syncs that fail under a storage, one in each process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

/// What it asks of a storage is in lives.cpp. Of the main thread, except for told_after().
class FailedSyncs {
 public:
  struct Total {
    std::uint64_t processes = 0;  ///< in which a sync failed
    std::uint64_t of_log = 0;     ///< of them
    std::uint64_t went_on = 0;    ///< after a failed sync of RocksDB's
    std::uint64_t late = 0;       ///< new work was not refused in time
    std::uint64_t untold = 0;     ///< the statistics do not say why
    std::uint64_t unreadable = 0;
    Millis slowest_refusal{0};
    std::string trouble{};  ///< as the first one was told
  };

  /// Of a process whose calls were refused this often, nothing new is heard.
  static constexpr unsigned refusals_max = 40;

  /// `limit`: by when new work must be refused.
  FailedSyncs(std::function<void(const std::string&)> say, Millis limit)
      : say_(std::move(say)), limit_(limit) {}

  /// Draws the sync of the next process that fails.
  void choose(PowerDisk::Options& options, proofs::Random& random);
  /// Whether it may still come about within a time that is worth a wait.
  [[nodiscard]] bool is_awaited(const PowerDisk& disk, Timestamp begun) const;
  /// Notes when new work was first refused. To be called often.
  void look(World& world, const PowerDisk& disk);
  /// A call began after the failure, and so often somebody was told that something is on the disk.
  void told_after(std::uint64_t times) noexcept {
    if (failing_ != PowerDisk::Failing::disk) return;
    // mo: relaxed: read when the threads have ended
    acknowledged_after_.fetch_add(times, std::memory_order_relaxed);
  }
  /// If one has failed, waits for what must come of it, and judges. `late`: of this machine.
  void judge(World& world, const Ledger& ledger, const PowerDisk& disk, Durability level,
             Millis late);
  /// At the end of a process.
  void count(const PowerDisk& disk);

  [[nodiscard]] const Total& total() const noexcept { return total_; }
  [[nodiscard]] std::uint64_t acknowledged_after() const noexcept {
    return acknowledged_after_.load(std::memory_order_relaxed);  // mo: relaxed: as above
  }
  [[nodiscard]] std::uint64_t findings() const noexcept {
    return acknowledged_after() + total_.late + total_.untold + total_.unreadable;
  }
  [[nodiscard]] std::string report() const;

 private:
  void found(std::uint64_t& kind, const std::string& what) {
    ++kind;
    say_(what);
  }

  const std::function<void(const std::string&)> say_;
  const Millis limit_;
  const SystemClock system_;
  PowerDisk::Failing failing_ = PowerDisk::Failing::none;  // of this process, as below
  std::optional<Millis> refused_after_{};
  std::atomic<std::uint64_t> acknowledged_after_{0};
  Total total_;
};

}  // namespace semel::faults
