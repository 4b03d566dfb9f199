#include "tests/storage/faults/met_faults.hpp"

#include <cstdio>

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr Millis refusal_limit = 100ms;  // on a machine that does nothing else
constexpr Millis refusal_limit_short = 2'000ms;

}  // namespace

MetFaults::MetFaults(const Schedule& schedule, bool is_long,
                     const std::function<void(const std::string&)>& say) {
  if (schedule.fills_up) full.emplace(say);
  if (schedule.fails_syncs) {
    failed_syncs.emplace(say, is_long ? refusal_limit : refusal_limit_short);
  }
  if (schedule.is_slow) slow.emplace(say, log_bytes, is_long);
}

void MetFaults::meet(World& world, const Ledger& ledger, Crew& crew, PowerDisk& disk,
                     proofs::Random& random, Millis late, bool is_closed) {
  if (slow && !disk.is_broken()) slow->meet(world, crew.own(), disk, random.chance(1, 3));
  if (is_closed || full) disk.set_delay(0ms);
  if (full && !disk.is_broken()) {
    full->meet(world, crew.own(), crew.observer(), disk, random.bits(), random.chance(1, 2));
  }
  if (failed_syncs) failed_syncs->judge(world, ledger, disk, crew.own().level(), late);
}

std::uint64_t MetFaults::findings() const noexcept {
  return (full ? full->total().findings() : 0) + (failed_syncs ? failed_syncs->findings() : 0) +
         (slow ? slow->total().findings() : 0);
}

bool MetFaults::came_about(std::uint64_t lives) const noexcept {
  return (!failed_syncs || failed_syncs->total().processes * 8 >= lives) &&
         (!slow || slow->total().spells * 40 >= lives);
}

void MetFaults::report(const std::string& name) const {
  if (full) std::printf("%s: %s\n", name.c_str(), full->report().c_str());
  if (failed_syncs) std::printf("%s: %s\n", name.c_str(), failed_syncs->report().c_str());
  if (slow) std::printf("%s: %s\n", name.c_str(), slow->report().c_str());
}

}  // namespace semel::faults
