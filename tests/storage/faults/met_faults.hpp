// The faults that a storage meets while it is worked on, one beside the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/storage/faults/crew.hpp"
#include "tests/storage/faults/failed_syncs.hpp"
#include "tests/storage/faults/full_disk.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/slow_disk.hpp"

namespace semel::faults {

struct MetFaults {
  static constexpr std::size_t log_bytes = std::size_t{1} << 20;  ///< of the storage

  std::optional<FullDisk> full{};
  std::optional<FailedSyncs> failed_syncs{};
  std::optional<SlowDisk> slow{};

  /// Before there are threads. `say` is told each finding.
  MetFaults(const Schedule& schedule, bool is_long,
            const std::function<void(const std::string&)>& say);

  [[nodiscard]] bool can_be_played() const { return !full || full->is_mounted(); }
  /// One after the other; `is_closed`: the process ends by being closed. Ends when `disk` is cut.
  void meet(World& world, const Ledger& ledger, Crew& crew, PowerDisk& disk, proofs::Random& random,
            Millis late, bool is_closed);
  /// What was wrong meanwhile.
  [[nodiscard]] std::uint64_t findings() const noexcept;
  /// Whether they came about in these lives: else nothing was proved.
  [[nodiscard]] bool came_about(std::uint64_t lives) const noexcept;
  void report(const std::string& name) const;
};

}  // namespace semel::faults
