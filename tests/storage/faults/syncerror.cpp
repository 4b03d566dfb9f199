// The n-th sync fails, for n = 1, 2, 3, ..: those of the log, then those of RocksDB's files.
//
//   proof_faults --fault syncerror [--long] [--seed N]
//
// What must hold when a sync of the log failed: the call that rested on it and every call after it
// is not acknowledged; new work is refused within 100 ms; the process stays up, memory is read as
// before, and the statistics say why. A sync of RocksDB's may be done again from the log, and work
// may go on. In both cases the storage is opened again, after the end of the process or after a
// power cut in turn, and everything that was acknowledged is there. The disk does what a system
// does after a failed fsync: the next one says that all is well and has not written what failed.
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr unsigned thread_count = 2;
constexpr std::uint64_t syncs_long = 200;
constexpr std::uint64_t step_short = 7;    // the short form takes every seventh
constexpr std::uint64_t calls_after = 40;  // of each thread, when the sync has failed
// What is promised of a machine that does nothing else. The short form runs among other tests, and
// judges what was refused, not how busy the machine was.
constexpr Millis refusal_limit = 100ms;
constexpr Millis refusal_limit_short = 2'000ms;
constexpr Millis run_limit = 20'000ms;  // in which that many syncs must come about
constexpr std::uint64_t shown_errors = 12;

struct Total {
  std::uint64_t runs = 0;
  std::uint64_t failed_syncs = 0;
  std::uint64_t while_opening = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t acknowledged_after = 0;
  std::uint64_t late_refusals = 0;
  std::uint64_t went_on = 0;  ///< after a failed sync of RocksDB's
  std::uint64_t bad_reads = 0;
  std::uint64_t silent = 0;  // no trouble in the statistics
  std::uint64_t lost = 0;
  std::uint64_t not_opened = 0;
  Millis slowest_refusal{0};
};

/// What one thread saw after the failure.
struct After {
  std::uint64_t acknowledged = 0;
  std::optional<Millis> refused_after{};  ///< none: it was not
};

class SyncError {
 public:
  SyncError(std::uint64_t seed, Millis limit) : random_(seed), seed_(seed), limit_(limit) {}
  void one_run(PowerDisk::Failing failing, std::uint64_t number);
  [[nodiscard]] int report() const;

 private:
  [[nodiscard]] StorageOptions options_of(PowerDisk& disk, const std::string& root) const;
  void work(World& world, PowerDisk& disk, PowerDisk::Failing failing, Ledger& ledger,
            const Clock& clock, Durability level);
  [[nodiscard]] After work_until_refused(Worker& worker, World& world, PowerDisk& disk,
                                         Durability level, Timestamp deadline, Millis patience);
  void look(World& world, PowerDisk::Failing failing, Ledger& ledger, Durability level);
  void reopen(const std::string& root, Ledger& ledger, std::int64_t unix_ms, bool same_boot);
  void say(const std::string& what);

  proofs::Random random_;
  const std::uint64_t seed_;
  const Millis limit_;
  const SystemClock clock_;
  const Scratch scratch_;
  std::string run_;
  std::string trouble_;
  std::uint64_t said_ = 0;
  Total total_;
};

void SyncError::say(const std::string& what) {
  if (said_++ >= shown_errors) return;
  std::printf("syncerror: seed %llu, %s: %s\n", static_cast<unsigned long long>(seed_),
              run_.c_str(), what.c_str());
}

StorageOptions SyncError::options_of(PowerDisk& disk, const std::string& root) const {
  StorageOptions options;
  options.directory = root + "/storage";
  options.sync_every = 5ms;
  options.span = 1'000ms;
  options.disk = &disk;
  options.log_bytes = std::size_t{1} << 20;
  options.garbage_bytes = std::size_t{1} << 20;
  options.confirm_within = 10'000ms;
  return options;
}

/// How often somebody was told that something is on the disk.
std::uint64_t synced(const Tally& tally, Durability level) {
  return tally.confirmed + (level == Durability::synced ? tally.acknowledged : 0);
}

After SyncError::work_until_refused(Worker& worker, World& world, PowerDisk& disk, Durability level,
                                    Timestamp deadline, Millis patience) {
  After after;
  std::uint64_t calls = 0;
  bool refused = false;
  while (calls < calls_after && clock_.now() < deadline) {
    const bool failed_before = disk.has_failed();
    const std::uint64_t before = synced(worker.tally(), level);
    worker.step();
    if (!failed_before) continue;
    ++calls;
    after.acknowledged += synced(worker.tally(), level) - before;
    if (!refused && !world.storage->accepts_writes()) {
      refused = true;
      after.refused_after = clock_.now() - disk.fail_time();
    }
    // RocksDB's own threads tell what happened to them a little later.
    if (!refused && clock_.now() - disk.fail_time() < patience) calls = 0;
  }
  return after;
}

void SyncError::work(World& world, PowerDisk& disk, PowerDisk::Failing failing, Ledger& ledger,
                     const Clock& clock, Durability level) {
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::thread> threads;
  std::array<After, thread_count> after;
  const Timestamp deadline = clock_.now() + run_limit;
  // After a failed sync of RocksDB's the work may as well go on.
  const Millis patience = failing == PowerDisk::Failing::disk ? limit_ : refusal_limit;
  for (unsigned t = 0; t < thread_count; ++t) {
    workers.push_back(std::make_unique<Worker>(
        world, ledger, clock,
        Worker::Options{.thread = t, .level = level, .seed = random_.bits(), .process = "1"}));
    threads.emplace_back([&, t, worker = workers.back().get()] {
      after[t] = work_until_refused(*worker, world, disk, level, deadline, patience);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (unsigned t = 0; t < thread_count; ++t) {
    total_.acknowledged += workers[t]->tally().acknowledged;
    const std::optional<Millis> refused = after[t].refused_after;
    if (refused) total_.slowest_refusal = std::max(total_.slowest_refusal, *refused);
    if (failing == PowerDisk::Failing::rocksdb) {
      total_.went_on += refused || t != 0 ? 0 : 1;
      continue;
    }
    if (after[t].acknowledged > 0) {
      total_.acknowledged_after += after[t].acknowledged;
      say(std::to_string(after[t].acknowledged) + " acknowledged after the failed sync");
    }
    if (disk.has_failed() && refused.value_or(Millis::max()) > limit_) {
      ++total_.late_refusals;
      say("new work is not refused in time");
    }
  }
}

/// Memory is there, and somebody can read what happened.
void SyncError::look(World& world, PowerDisk::Failing failing, Ledger& ledger, Durability level) {
  const StorageStats stats = world.storage->stats();
  const bool tells = !stats.trouble.empty() && !stats.accepting;
  if (!tells && (failing == PowerDisk::Failing::disk || !stats.accepting)) {
    ++total_.silent;
    say("the statistics do not tell");
  } else if (tells && trouble_.empty()) {
    trouble_ = stats.trouble;
  }
  if (level != Durability::memory) return;
  for (auto& [key, history] : ledger) {
    const auto state = state_of(world, key);
    if (state) continue;
    ++total_.bad_reads;
    say(key + " cannot be read: " + state.error().message());
    return;
  }
}

void SyncError::reopen(const std::string& root, Ledger& ledger, std::int64_t unix_ms,
                       bool same_boot) {
  PowerDisk disk{{.root = root,
                  .image = root + "_never",
                  .boot = same_boot ? "first" : "second",
                  .seed = random_.bits()}};
  const JumpingClock clock{unix_ms};
  auto world = open_world(options_of(disk, root), clock, Durability::logged);
  if (!world) {
    ++total_.not_opened;
    say("not opened again: " + world.error().message());
    return;
  }
  const auto found =
      compare(*world, ledger, clock, Timestamp{}, [this](const std::string& what) { say(what); });
  if (!found || !found->right()) ++total_.lost;
}

void SyncError::one_run(PowerDisk::Failing failing, std::uint64_t number) {
  run_ = std::string{failing == PowerDisk::Failing::disk ? "log" : "rocksdb"} + " sync " +
         std::to_string(number);
  const bool power_cut = random_.chance(1, 2);
  const std::string root = scratch_ / "root";
  const std::string image = scratch_ / "image";
  Ledger ledger = new_ledger(thread_count);
  const Durability level = random_.chance(1, 4) ? Durability::memory : Durability::synced;
  std::int64_t unix_ms = 0;
  {
    PowerDisk disk{{.root = root,
                    .image = image,
                    .boot = "first",
                    .seed = random_.bits(),
                    .failing = failing,
                    .fail_at = number}};
    const JumpingClock clock;
    auto world = open_world(options_of(disk, root), clock, level);
    ++total_.runs;
    if (world) {
      work(*world, disk, failing, ledger, clock, level);
      if (disk.has_failed()) look(*world, failing, ledger, level);
    } else {
      ++total_.while_opening;
      if (!disk.has_failed()) say("not opened: " + world.error().message());
    }
    total_.failed_syncs += disk.has_failed() ? 1 : 0;
    if (power_cut) disk.cut();
    unix_ms = clock.unix_ms();
  }
  reopen(power_cut ? image : root, ledger, unix_ms, !power_cut);
  std::error_code code;
  std::filesystem::remove_all(root, code);
  std::filesystem::remove_all(image, code);
}

int SyncError::report() const {
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("syncerror: told as: %s\n", trouble_.c_str());
  std::printf(
      "syncerror: %llu acknowledged before; %llu failed while it was opened; slowest "
      "refusal %lld ms\n",
      number(total_.acknowledged), number(total_.while_opening),
      static_cast<long long>(total_.slowest_refusal.count()));
  std::printf(
      "syncerror: %llu runs, %llu failed syncs, %llu acknowledged after, %llu refused too "
      "late, %llu untold, %llu unreadable, %llu lost, %llu not opened again\n",
      number(total_.runs), number(total_.failed_syncs), number(total_.acknowledged_after),
      number(total_.late_refusals), number(total_.silent), number(total_.bad_reads),
      number(total_.lost), number(total_.not_opened));
  const std::uint64_t bad = total_.acknowledged_after + total_.late_refusals + total_.silent +
                            total_.bad_reads + total_.lost + total_.not_opened;
  return bad == 0 && total_.failed_syncs * 4 >= total_.runs * 3 ? 0 : 1;
}

}  // namespace

int prove_syncerror(const Wanted& wanted) {
  SyncError proof{wanted.seed, wanted.is_long ? refusal_limit : refusal_limit_short};
  const std::uint64_t step = wanted.is_long ? 1 : step_short;
  for (const auto failing : {PowerDisk::Failing::disk, PowerDisk::Failing::rocksdb}) {
    for (std::uint64_t n = 1; n <= syncs_long; n += step) proof.one_run(failing, n);
  }
  return proof.report();
}

}  // namespace semel::faults
