// Storages are copied, backed up, restored, swapped, repaired and reopened at random, with clocks
// that step and boots in between.
//
//   proof_faults --fault restore [--long] [--seed N] [--must-find]
//
// Each directory has a history: what was finished in it, or in what it was copied from, before the
// copy. What must hold: no epoch is granted twice over all directories and lives, and what is
// finished in the history of a directory is never granted there again. Two thirds of the storages
// have a cold store, to which they spill; it is copied, backed up, restored and swapped with them.
// With the cold store of another directory, or of another time, a storage is refused. Remote owners
// hold claims with leases that end between any two lives: a start begins them again, and starts
// that are interrupted before they have recovered, half of all, take nothing from them. With
// --must-find the verdict is turned round, for a storage with a planted fault (planted.py).
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "semel/engine_host.hpp"
#include "semel/storage_tools.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t key_count = 2'000;
constexpr std::uint64_t steps_short = 400;
constexpr std::uint64_t steps_long = 10'000;
constexpr std::size_t directories_max = 6;
constexpr std::size_t backups_max = 3;
constexpr std::uint64_t shown_errors = 12;
/// Copies of copies: 1,300 use up the versions (docs/decisions/0028-identity-of-a-storage.md).
constexpr unsigned copies_max = 400;
constexpr std::uint64_t lock_count = 12;

/// A machine whose n-th step on the storage's own files fails, and all after it: what is left is
/// what a killed process leaves.
class DyingDisk final : public storage::Disk {
 public:
  DyingDisk(std::string boot, std::uint64_t steps) : boot_(std::move(boot)), left_(steps) {}
  [[nodiscard]] std::string boot_id() override { return boot_; }
  [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override {
    if (is_dead()) return dead(path);
    return Disk::create(path, bytes);
  }
  [[nodiscard]] Status sync(int descriptor, const std::string& path) override {
    return is_dead() ? Status{dead(path)} : Disk::sync(descriptor, path);
  }
  [[nodiscard]] Status sync_part(char* memory, const std::string& path, std::size_t from,
                                 std::size_t to) override {
    return is_dead() ? Status{dead(path)} : Disk::sync_part(memory, path, from, to);
  }
  [[nodiscard]] Status remove(const std::string& path) override {
    return is_dead() ? Status{dead(path)} : Disk::remove(path);
  }

 private:
  [[nodiscard]] bool is_dead() noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);  // mo: relaxed: a count
    while (left != 0 &&                                          // mo: relaxed: as above
           !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left == 0;
  }
  [[nodiscard]] static Error dead(const std::string& path) {
    return {ErrorCode::storage_failed, path + ": the process has ended"};
  }
  const std::string boot_;
  std::atomic<std::uint64_t> left_;
};

struct History {
  std::set<std::string> finished;
  std::set<std::string> held;  ///< by remote owners
  std::uint64_t line = 0;      ///< the same in all copies of one storage
  unsigned copies = 0;         ///< of copies, up to this one
  bool is_tiered = false;      ///< it has a cold store
  std::uint64_t stamp = 0;     ///< of its last life; a copy from the same moment has the same
};

struct Total {
  std::uint64_t steps = 0;
  std::uint64_t lives = 0;
  std::uint64_t copies = 0;
  std::uint64_t backups = 0;
  std::uint64_t restores = 0;
  std::uint64_t swaps = 0;
  std::uint64_t boots = 0;
  std::uint64_t grants = 0;
  std::uint64_t repeats = 0;
  std::uint64_t epochs_twice = 0;
  std::uint64_t granted_again = 0;
  std::uint64_t spills = 0;
  std::uint64_t mixed = 0;  // storages and cold stores that do not belong together
  std::uint64_t interrupted = 0;
  std::uint64_t holds = 0;  // looked for
  std::uint64_t holds_lost = 0;
  std::uint64_t failed = 0;
};

std::string cold_of(const std::string& directory, const History& history) {
  return history.is_tiered ? directory + "-cold" : std::string{};
}

class Restores {
 public:
  explicit Restores(std::uint64_t seed) : random_(seed), seed_(seed) {}
  void one_step();
  [[nodiscard]] std::uint64_t wrong() const noexcept {
    return total_.epochs_twice + total_.granted_again + total_.holds_lost + total_.failed;
  }
  /// Whether nothing was wrong.
  [[nodiscard]] bool report() const;

 private:
  using Histories = std::map<std::string, History>;

  [[nodiscard]] std::string fresh_name(const char* kind) {
    return scratch_ / (kind + std::to_string(++names_));
  }
  [[nodiscard]] Histories::iterator any_of(Histories& all) {
    return std::next(all.begin(), static_cast<std::ptrdiff_t>(random_.below(all.size())));
  }
  void fail(const std::string& what);
  void work(const std::string& directory, History& history);
  void interrupt_start(const std::string& directory, const History& history);
  void claim_some(World& world, History& history);
  void hold_some(World& world, History& history);
  void spill(World& world);
  void mix();
  [[nodiscard]] static StorageOptions options_of(const std::string& directory,
                                                 storage::Disk& disk) {
    StorageOptions options;
    options.directory = directory;
    options.log_bytes = std::size_t{1} << 20;
    options.disk = &disk;
    return options;
  }
  void copy();
  void restore();
  void swap();
  void drop();
  void step_clocks();

  proofs::Random random_;
  const std::uint64_t seed_;
  const Scratch scratch_;
  std::optional<ManualClock> clock_{std::in_place};
  std::uint64_t boot_ = 1;
  std::uint64_t names_ = 0;
  std::uint64_t stamps_ = 0;
  Histories storages_;
  Histories backups_;
  std::set<std::pair<std::uint64_t, Epoch>> epochs_;  // of a line
  std::uint64_t said_ = 0;
  Total total_;
};

void Restores::fail(const std::string& what) {
  if (said_++ >= shown_errors) return;
  std::printf("restore: seed %llu, step %llu: %s\n", static_cast<unsigned long long>(seed_),
              static_cast<unsigned long long>(total_.steps), what.c_str());
}

void Restores::claim_some(World& world, History& history) {
  // What is finished stays so for the whole proof.
  auto opened = world.engine->claims(
      "kept", {.lease = 1h, .result_ttl = limits::ttl_max / 2, .unique_ttl = limits::ttl_max / 2});
  if (!opened) {
    ++total_.failed;
    return fail("claims: " + opened.error().message());
  }
  Claims claims = *opened;
  for (int i = 0; i < 15; ++i) {
    const std::string key = std::to_string(random_.below(key_count));
    const ClaimOutcome outcome = claims.claim({.key = key});
    const bool is_finished = history.finished.contains(key);
    if (outcome.answer != ClaimAnswer::granted) {
      ++total_.repeats;
      continue;
    }
    ++total_.grants;
    if (!epochs_.insert({history.line, outcome.epoch}).second) {
      ++total_.epochs_twice;
      fail("epoch " + std::to_string(outcome.epoch) + " is granted twice");
    }
    if (is_finished) {
      ++total_.granted_again;
      fail(key + " is finished and granted again");
    }
    if (random_.chance(1, 3)) continue;  // its owner dies with the process
    const OwnerOutcome done = claims.complete({.key = key, .epoch = outcome.epoch});
    if (done.error == ErrorCode::ok && done.answer == OwnerAnswer::ok) {
      history.finished.insert(key);
    }
  }
}

/// What is held must be so, whatever was between; then some more is.
void Restores::hold_some(World& world, History& history) {
  auto locks = world.engine->claims("locks", {.lease = 1s, .attempts_ttl = 1ms});
  if (!locks) {
    ++total_.failed;
    return fail("locks: " + locks.error().message());
  }
  for (const std::string& key : history.held) {
    ++total_.holds;
    if (locks->claim({.key = key}).answer == ClaimAnswer::in_flight) continue;
    ++total_.holds_lost;
    fail(key + " is held and granted");
  }
  for (int i = 0; i < 2; ++i) {
    const std::string key = std::to_string(random_.below(lock_count));
    if (history.held.contains(key)) {
      const auto view = locks->get(key);
      if (view && locks->release({.key = key, .epoch = view->epoch}).answer == OwnerAnswer::ok) {
        history.held.erase(key);
      }
    } else if (locks->claim({.key = key, .session = SessionId{0}}).answer == ClaimAnswer::granted) {
      history.held.insert(key);
    }
  }
}

/// Killed at one of its first steps, or ended by a signal before it has recovered.
void Restores::interrupt_start(const std::string& directory, const History& history) {
  ++total_.interrupted;
  const std::string boot = "boot " + std::to_string(boot_);
  if (random_.chance(1, 3)) {
    tests::BootDisk disk{boot};
    if (const auto unused = Storage::open(options_of(directory, disk), *clock_); !unused) {
      ++total_.failed;
      fail(directory + " is not opened: " + unused.error().message());
    }
  } else {
    DyingDisk disk{boot, random_.between(1, 12)};
    // It may be opened, if it has fewer steps.
    static_cast<void>(open_world(options_of(directory, disk), *clock_, Durability::logged,
                                 Joins::no, cold_of(directory, history)));
  }
  step_clocks();
}

void Restores::spill(World& world) {
  if (world.cold == nullptr || !random_.chance(1, 3)) return;
  // What is drained may become void.
  if (random_.chance(1, 2) && !world.storage->drain()) fail("drain");
  const auto done = world.engine->host().spill();
  ++total_.spills;
  // What is finished never ends, so the generations of long lines of copies are used up.
  if (done || done.error().detail.find("generations") != std::string::npos) return;
  ++total_.failed;
  fail("spill: " + done.error().message());
}

/// A storage with the cold store of another one.
void Restores::mix() {
  if (storages_.size() < 2) return;
  const auto one = any_of(storages_);
  const auto other = any_of(storages_);
  if (!one->second.is_tiered || !other->second.is_tiered) return;
  if (one->second.stamp == other->second.stamp) return;  // from the same moment: the same content
  tests::BootDisk disk{"boot " + std::to_string(boot_)};
  ++total_.mixed;
  if (open_world(options_of(one->first, disk), *clock_, Durability::logged, Joins::no,
                 cold_of(other->first, other->second))) {
    ++total_.failed;
    fail(one->first + " is opened with the cold store of " + other->first);
  }
}

void Restores::work(const std::string& directory, History& history) {
  if (random_.chance(1, 2)) interrupt_start(directory, history);
  tests::BootDisk disk{"boot " + std::to_string(boot_)};
  const StorageOptions options = options_of(directory, disk);
  auto world =
      open_world(options, *clock_, Durability::logged, Joins::no, cold_of(directory, history));
  history.stamp = ++stamps_;
  ++total_.lives;
  if (!world) {
    ++total_.failed;
    return fail(directory + " is not opened: " + world.error().message());
  }
  hold_some(*world, history);
  claim_some(*world, history);
  spill(*world);
  if (random_.chance(1, 4) && !world->storage->drain()) fail("drain");
  if (random_.chance(1, 4) && backups_.size() < backups_max) {
    const std::string backup = fresh_name("backup");
    if (const auto made = world->storage->backup(backup); !made) {
      ++total_.failed;
      return fail("backup: " + made.error().message());
    }
    ++total_.backups;
    backups_[backup] = history;
  }
  claim_some(*world, history);
  spill(*world);
  // A second opening, by another path, must not get in.
  std::filesystem::create_directory_symlink(directory, scratch_ / "link");
  StorageOptions second = options;
  second.directory = scratch_ / "link";
  if (Storage::open(second, *clock_)) {
    ++total_.failed;
    fail(directory + " is opened twice");
  }
  std::filesystem::remove(scratch_ / "link");
}

/// By the tools of the system, while no process uses it.
void Restores::copy() {
  if (storages_.empty() || storages_.size() >= directories_max) return;
  const auto from = any_of(storages_);
  if (from->second.copies >= copies_max) return;
  const std::string to = fresh_name("copy");
  History history = from->second;
  std::filesystem::copy(from->first, to, std::filesystem::copy_options::recursive);
  if (history.is_tiered) {
    std::filesystem::copy(cold_of(from->first, history), cold_of(to, history),
                          std::filesystem::copy_options::recursive);
  }
  ++history.copies;
  storages_[to] = std::move(history);
  ++total_.copies;
}

void Restores::restore() {
  if (backups_.empty() || storages_.size() >= directories_max) return;
  const auto from = any_of(backups_);
  if (Storage::open({.directory = from->first}, *clock_)) {
    ++total_.failed;
    fail(from->first + " is a backup and was opened");
  }
  const std::string to = fresh_name("restored");
  if (const Status made = restore_backup(from->first, to); !made) {
    ++total_.failed;
    return fail("restore: " + made.error().message());
  }
  ++total_.restores;
  History history = from->second;
  history.stamp = ++stamps_;
  if (history.is_tiered) std::filesystem::rename(to + "/cold", cold_of(to, history));
  ++history.copies;
  storages_[to] = std::move(history);
}

/// Two directories take each other's place, or one takes that of a lost one.
void Restores::swap() {
  if (storages_.size() < 2) return;
  const auto one = any_of(storages_);
  const auto other = any_of(storages_);
  if (one == other) return;
  const auto rename = [](const std::string& from, const std::string& to, bool is_tiered) {
    std::filesystem::rename(from, to);
    if (is_tiered) std::filesystem::rename(from + "-cold", to + "-cold");
  };
  const std::string aside = scratch_ / "aside";
  rename(one->first, aside, one->second.is_tiered);
  rename(other->first, one->first, other->second.is_tiered);
  rename(aside, other->first, one->second.is_tiered);
  std::swap(one->second, other->second);
  ++total_.swaps;
}

void Restores::drop() {
  Histories& from = random_.chance(1, 2) ? storages_ : backups_;
  if (from.size() < 2) return;
  const auto gone = any_of(from);
  std::filesystem::remove_all(gone->first);
  std::filesystem::remove_all(gone->first + "-cold");
  from.erase(gone);
}

void Restores::step_clocks() {
  clock_->advance(Millis{static_cast<std::int64_t>(random_.between(2'000, 3'600'000))});
  const Millis by{static_cast<std::int64_t>(random_.below(90'000'000))};
  if (random_.chance(1, 3)) clock_->step_wall(random_.chance(1, 2) ? by : -by);
  if (!random_.chance(1, 4)) return;
  ++boot_;
  ++total_.boots;
  const std::int64_t unix_ms = clock_->unix_ms();
  clock_.emplace(Millis{static_cast<std::int64_t>(random_.between(1, 2'000'000))}, unix_ms);
}

void Restores::one_step() {
  ++total_.steps;
  step_clocks();
  if (storages_.empty() || (storages_.size() < directories_max && random_.chance(1, 40))) {
    const std::string name = fresh_name("storage");
    History& fresh = storages_[name];
    fresh.line = ++names_;
    fresh.is_tiered = random_.chance(2, 3);
    work(name, fresh);
  }
  switch (random_.below(9)) {
    case 0:
      copy();
      break;
    case 1:
      restore();
      break;
    case 2:
      swap();
      break;
    case 3:
      drop();
      break;
    case 4:
      mix();
      break;
    default:
      break;
  }
  const auto used = any_of(storages_);
  work(used->first, used->second);
}

bool Restores::report() const {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "restore: %llu steps, %llu lives, %llu copies, %llu backups, %llu restores, %llu swaps, %llu "
      "boots, %llu spills, %llu mixed, %llu starts interrupted, %llu grants, %llu repeats, %llu "
      "holds; %llu epochs twice, %llu granted again, %llu holds lost, %llu failed\n",
      number(total_.steps), number(total_.lives), number(total_.copies), number(total_.backups),
      number(total_.restores), number(total_.swaps), number(total_.boots), number(total_.spills),
      number(total_.mixed), number(total_.interrupted), number(total_.grants),
      number(total_.repeats), number(total_.holds), number(total_.epochs_twice),
      number(total_.granted_again), number(total_.holds_lost), number(total_.failed));
  return wrong() == 0;
}

}  // namespace

int prove_restore(const Wanted& wanted) {
  Restores proof{wanted.seed};
  const std::uint64_t steps = wanted.is_long ? steps_long : steps_short;
  for (std::uint64_t i = 0; i < steps && !(wanted.must_find && proof.wrong() > 0); ++i) {
    proof.one_step();
  }
  return proof.report() != wanted.must_find ? 0 : 1;
}

}  // namespace semel::faults
