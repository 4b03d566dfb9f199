// Proof: nodes agree, whatever their network, disks and clocks do, and go on when it is over.
//
// A simulation for each seed (simulation.hpp). --without GUARD leaves one guard against a defect of
// the library out: then something must be found.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "tests/proofs/arguments.hpp"
#include "tests/replication/core/simulation.hpp"

namespace {

using semel::replication::Guards;
using semel::tests::Simulation;
using semel::tests::SimulationCounts;

const std::map<std::string, bool Guards::*> guards = {
    {"configurations", &Guards::splits_configurations},
    {"rejections", &Guards::drops_stale_rejections},
    {"terms", &Guards::shows_real_term},
    {"trimming", &Guards::trims_compacted},
    {"catch-up", &Guards::waits_for_catch_up},
    {"uncommitted", &Guards::bounds_uncommitted},
    {"transfers", &Guards::gives_lease_up},
    {"restarts", &Guards::sits_out},
    {"hand-over", &Guards::holds_timeout_now},
    {"members", &Guards::keeps_members},
};

/// Beside the core's guards.
const std::set<std::string> others = {"boots", "identities", "tail", "time"};

struct Wanted {
  std::uint64_t seed = 0;
  std::uint64_t seeds = 200;
  std::string without;
};

bool parse(int count, char** texts, Wanted& wanted) {
  wanted.seed = semel::proofs::fresh_seed();
  for (int i = 1; i < count; ++i) {
    const std::string text = texts[i];
    const bool has_value = i + 1 < count;
    if (text == "--long") {
      wanted.seeds = 10'000;
    } else if (text == "--seed" && has_value) {
      wanted.seed = std::strtoull(texts[++i], nullptr, 10);
    } else if (text == "--seeds" && has_value) {
      wanted.seeds = std::strtoull(texts[++i], nullptr, 10);
    } else if (text == "--without" && has_value &&
               (guards.contains(texts[i + 1]) || others.contains(texts[i + 1]))) {
      wanted.without = texts[++i];
    } else {
      std::fprintf(stderr, "%s: unknown; known: --long, --seed N, --seeds N, --without GUARD, of",
                   texts[i]);
      for (const auto& [name, which] : guards) std::fprintf(stderr, " %s", name.c_str());
      for (const std::string& name : others) std::fprintf(stderr, " %s", name.c_str());
      std::fprintf(stderr, "\n");
      return false;
    }
  }
  return true;
}

unsigned long long number(std::uint64_t value) {
  return value;
}

}  // namespace

int main(int count, char** texts) {
  Wanted wanted;
  if (!parse(count, texts, wanted)) return 2;
  Guards on;
  std::set<std::string> without;
  if (guards.contains(wanted.without)) {
    on.*guards.at(wanted.without) = false;
  } else if (!wanted.without.empty()) {
    without.insert(wanted.without);
  }
  std::printf("consensus: seeds %llu to %llu\n", number(wanted.seed),
              number(wanted.seed + wanted.seeds - 1));
  SimulationCounts all;
  std::uint64_t runs = 0;
  std::uint64_t findings = 0;
  for (; runs < wanted.seeds; ++runs) {
    Simulation simulation{wanted.seed + runs, on, without};
    const std::string found = simulation.run();
    all.add(simulation.counts());
    if (found.empty()) continue;
    ++findings;
    std::printf("consensus: seed %llu: %s\n", number(wanted.seed + runs), found.c_str());
    if (!wanted.without.empty() || findings == 5) break;
  }
  std::printf(
      "consensus: %llu messages, %llu crashes, %llu failed syncs, %llu elections, "
      "%llu transfers, %llu changes of members, %llu snapshots taken, %llu installed, "
      "%llu reads, %llu looks at leases, %llu nodes stopped, %llu leases granted, "
      "%llu disks lost, %llu segments lost, %llu boots of all machines\n",
      number(all.messages), number(all.crashes), number(all.failed_syncs), number(all.elections),
      number(all.transfers), number(all.changes), number(all.snapshots), number(all.installs),
      number(all.reads), number(all.leases), number(all.pauses), number(all.leases_granted),
      number(all.wipes), number(all.lost_segments), number(all.boots));
  std::printf("consensus: %llu seeds, %llu commits, %llu acknowledged, %llu findings\n",
              number(runs), number(all.commits), number(all.acknowledged), number(findings));
  return (findings == 0) == wanted.without.empty() ? 0 : 1;
}
