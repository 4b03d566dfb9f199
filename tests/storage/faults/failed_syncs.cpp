#include "tests/storage/faults/failed_syncs.hpp"

#include <algorithm>
#include <thread>

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t log_syncs = 200;
constexpr std::uint64_t rocksdb_syncs = 60;  // more of them are long in coming
constexpr Millis wait_limit = 1'500ms;
/// RocksDB's own threads tell what happened to them a little later, or the work goes on.
constexpr Millis rocksdb_patience = 100ms;

}  // namespace

void FailedSyncs::choose(PowerDisk::Options& options, proofs::Random& random) {
  const bool of_log = random.chance(1, 2);
  failing_ = of_log ? PowerDisk::Failing::disk : PowerDisk::Failing::rocksdb;
  refused_after_.reset();
  options.failing = failing_;
  // The first ones are those of the start.
  const std::uint64_t last = of_log ? log_syncs : rocksdb_syncs;
  options.fail_at = random.between(1, random.chance(1, 4) ? 12 : last);
}

bool FailedSyncs::is_awaited(const PowerDisk& disk, Timestamp begun) const {
  return !disk.has_failed() && system_.now() - begun < wait_limit;
}

void FailedSyncs::look(World& world, const PowerDisk& disk) {
  if (refused_after_ || !disk.has_failed() || world.storage->accepts_writes()) return;
  refused_after_ = system_.now() - disk.fail_time();
}

void FailedSyncs::judge(World& world, const Ledger& ledger, const PowerDisk& disk, Durability level,
                        Millis late) {
  if (!disk.has_failed() || disk.is_cut()) return;
  const bool of_log = failing_ == PowerDisk::Failing::disk;
  const Millis limit = of_log ? limit_ + late : rocksdb_patience;
  for (look(world, disk);
       !refused_after_ && !disk.is_cut() && system_.now() - disk.fail_time() <= limit;
       look(world, disk)) {
    std::this_thread::yield();
  }
  const StorageStats stats = world.storage->stats();
  if (disk.is_cut()) return;
  if (refused_after_) total_.slowest_refusal = std::max(total_.slowest_refusal, *refused_after_);
  if (of_log && refused_after_.value_or(Millis::max()) > limit) {
    found(total_.late, "new work is not refused in time after a failed sync");
  }
  const bool tells = !stats.trouble.empty() && !stats.accepting;
  if (!tells && (of_log || !stats.accepting)) {
    found(total_.untold, "the statistics do not tell of a failed sync");
  }
  if (tells && total_.trouble.empty()) total_.trouble = stats.trouble;
  total_.went_on += !of_log && stats.accepting ? 1 : 0;
  if (level != Durability::memory) return;
  for (const auto& [key, history] : ledger) {
    const auto state = state_of(world, key);
    if (state || disk.is_cut()) continue;
    return found(total_.unreadable,
                 key + " cannot be read after a failed sync: " + state.error().message());
  }
}

void FailedSyncs::count(const PowerDisk& disk) {
  if (!disk.has_failed()) return;
  ++total_.processes;
  total_.of_log += failing_ == PowerDisk::Failing::disk ? 1 : 0;
}

std::string FailedSyncs::report() const {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  return "in " + number(total_.processes) + " processes a sync failed, in " +
         number(total_.of_log) + " one of the log; " + number(total_.went_on) +
         " went on; slowest refusal " + std::to_string(total_.slowest_refusal.count()) +
         " ms; told as: " + total_.trouble + "; " + number(acknowledged_after()) +
         " acknowledged after, " + number(total_.late) + " refused too late, " +
         number(total_.untold) + " untold, " + number(total_.unreadable) + " unreadable";
}

}  // namespace semel::faults
