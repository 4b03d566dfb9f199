// Directories of one storage beside the one that is worked in: copies of it, what was restored from
// its backups, and what became of them. Each has a promise of its own. Between two lives one takes
// the place of another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/storage/faults/findings.hpp"
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/promise.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

/// A storage and its cold store, if it has one, in one directory.
struct Place {
  std::string root{};
  Promise promise{};  ///< of what is in it
  bool is_tiered = false;
  std::uint64_t stamp = 0;  ///< of the process that had both open last; a copy has the same
  [[nodiscard]] std::string storage() const { return root + "/storage"; }
  [[nodiscard]] std::string cold() const { return is_tiered ? root + "/cold" : std::string{}; }
};

/// Of a process that opens it.
[[nodiscard]] StorageOptions options_of(const Place& place, storage::Disk& disk);

/// Of the main thread. What must hold is in lives.cpp.
class Places {
 public:
  struct Total {
    std::uint64_t backups = 0;
    std::uint64_t restores = 0;
    std::uint64_t copies = 0;
    std::uint64_t swaps = 0;
    std::uint64_t mixed = 0;   ///< storages and cold stores that do not belong together
    std::uint64_t unused = 0;  ///< opened and not recovered
  };

  /// All of these must outlive it. `may_be_full`: no space is no finding.
  Places(const Scratch& scratch, proofs::Random& random, Findings& findings, bool may_be_full)
      : scratch_(scratch), random_(random), findings_(findings), may_be_full_(may_be_full) {}

  /// A new storage begins.
  void clear();
  /// A process has opened and recovered it.
  void opened(Place& place) { place.stamp = ++stamps_; }
  /// Now and then what a program does beside its calls: drains, spills, backs up.
  void act(World& world, const Place& used, Durability level, const Clock& clock,
           const PowerDisk& disk);
  /// Between two lives, when all that was written has reached the disk.
  void meet(Place& used, const Clock& clock, const std::string& boot);
  void outlive_boot();

  [[nodiscard]] const Total& total() const noexcept { return total_; }
  [[nodiscard]] std::string report() const;

 private:
  [[nodiscard]] std::string fresh_name(const char* kind) {
    return scratch_ / (kind + std::to_string(++names_));
  }
  void back_up(World& world, const Place& used, const Clock& clock, const PowerDisk& disk);
  void judge(const char* what, const Status& done, const PowerDisk& disk);
  void add(std::vector<Place>& to, Place place, std::size_t most);
  void take_backups_out(const Place& used);
  void copy(const Place& used);
  void restore(const Clock& clock);
  void swap(Place& used);
  void mix(const Place& used, const Clock& clock, const std::string& boot);
  void open_unused(const Place& used, const Clock& clock, const std::string& boot);

  const Scratch& scratch_;
  proofs::Random& random_;
  Findings& findings_;
  const bool may_be_full_;
  const SystemClock system_;
  std::uint64_t names_ = 0;
  std::uint64_t stamps_ = 0;
  std::vector<Place> others_;
  std::vector<Place> backups_;
  std::vector<Place> made_;  // backups that are still in the directory that is used
  Total total_;
};

}  // namespace semel::faults
