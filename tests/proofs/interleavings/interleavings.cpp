// The interleavings proof: the slot protocol under every schedule of pairs and triples of calls
// with few preemptions.
//
// proof_interleavings [--long] [--seed N] [--replay SCENARIO --schedule LIST] [--list]
// The seed chooses the keys' hash bits. A violation is printed with the line that replays it. The
// last line is the figure, the exit code the verdict.
//
//   explored   claim, complete, release, expire, grow on one key, and on two keys that share a line
//              (twins share all hash bits, siblings part in a split), from every Start, beside a
//              thread that stands still at each stage of growth; and lookups beside splits
//   checked    after each schedule: an order of the calls explains all answers and what is left;
//              versions only grow; no record is lost, doubled or misplaced; nothing frozen or
//              retired changes; no fiber waits for one that is stopped
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/proofs/arguments.hpp"
#include "tests/proofs/interleavings/slot_world.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEMEL_PROOFS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEMEL_PROOFS_SLOW 1
#endif
#endif

namespace {

using namespace semel::proofs;

#ifdef SEMEL_PROOFS_SLOW
constexpr bool is_slow = true;  // a sanitizer looks at the accesses, not at the answers
#else
constexpr bool is_slow = false;
#endif

constexpr std::array calls{Call::claim, Call::complete, Call::release, Call::expire, Call::grow};
constexpr std::array starts{Start::absent, Start::held,     Start::over,   Start::dead,
                            Start::ending, Start::done,     Start::buried, Start::nearly_full,
                            Start::full,   Start::littered, Start::halves, Start::far,
                            Start::wrapped};
constexpr std::array start_names{"absent", "held",   "over",        "dead", "ending",
                                 "done",   "buried", "nearly_full", "full", "littered",
                                 "halves", "far",    "wrapped"};
constexpr std::array stalled_names{
    "", "/before_key", "/after_key", "/all_frozen", "/half_public", "/first_line"};
constexpr std::array pair_names{"", "/twin", "/sibling"};

struct Group {
  const char* name;
  Explorer::Limits limits;
  std::vector<Scenario> scenarios;
};

/// Where a scenario begins.
struct Place {
  Start start;
  Stalled stalled = Stalled::nowhere;
};

std::vector<Place> places() {
  std::vector<Place> all;
  for (const Start start : starts) all.push_back({start});
  for (const Start start : {Start::held, Start::absent, Start::dead}) {
    for (const Stalled stalled :
         {Stalled::before_key, Stalled::after_key, Stalled::all_frozen, Stalled::half_public}) {
      all.push_back({start, stalled});
    }
  }
  all.push_back({Start::wrapped, Stalled::first_line});
  return all;
}

void add(Group& group, Place place, Pair pair, std::vector<std::vector<Step>> fibers) {
  Scenario scenario;
  scenario.start = place.start;
  scenario.stalled = place.stalled;
  scenario.pair = pair;
  scenario.name = start_names[static_cast<std::size_t>(place.start)];
  scenario.name += stalled_names[static_cast<std::size_t>(place.stalled)];
  scenario.name += pair_names[static_cast<std::size_t>(pair)];
  char between = ':';
  for (const std::vector<Step>& fiber : fibers) {
    for (const Step& step : fiber) {
      scenario.name += between + std::string{name_of(step.call)} + std::to_string(step.key);
      between = '>';
    }
    between = '+';
  }
  scenario.fibers = std::move(fibers);
  group.scenarios.push_back(std::move(scenario));
}

Group pairs_on_one_key(const Explorer::Limits& limits) {
  Group group{"pairs on one key", limits, {}};
  for (const Place place : places()) {
    for (const Call first : calls) {
      for (const Call second : calls) add(group, place, Pair::alone, {{{first}}, {{second}}});
    }
  }
  return group;
}

/// The fibers differ in the versions they hold, so their order matters a little; only the long form
/// tries all orders.
Group triples_on_one_key(const Explorer::Limits& limits, bool all_orders) {
  Group group{"triples on one key", limits, {}};
  for (const Place place : places()) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (std::size_t j = all_orders ? 0 : i; j < calls.size(); ++j) {
        for (std::size_t k = all_orders ? 0 : j; k < calls.size(); ++k) {
          add(group, place, Pair::alone, {{{calls[i]}}, {{calls[j]}}, {{calls[k]}}});
        }
      }
    }
  }
  return group;
}

Group pairs_on_two_keys(const Explorer::Limits& limits) {
  Group group{"pairs on two keys", limits, {}};
  for (const Place place : places()) {
    for (const Pair pair : {Pair::twin, Pair::sibling}) {
      for (const Call first : calls) {
        for (const Call second : calls) add(group, place, pair, {{{first}}, {{second, 1}}});
      }
    }
  }
  return group;
}

Group triples_on_two_keys(const Explorer::Limits& limits) {
  Group group{"triples on two keys", limits, {}};
  for (const Place place : places()) {
    for (const Pair pair : {Pair::twin, Pair::sibling}) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        for (std::size_t j = i; j < calls.size(); ++j) {
          for (const Call other : calls) {
            add(group, place, pair, {{{calls[i]}}, {{calls[j]}}, {{other, 1}}});
          }
        }
      }
    }
  }
  return group;
}

/// Owners that finish what they were granted.
Group cycles(const Explorer::Limits& limits) {
  Group group{"owners from grant to end", limits, {}};
  const std::vector<Step> complete{{Call::claim}, {Call::complete, 0, true}};
  const std::vector<Step> release{{Call::claim}, {Call::release, 0, true}};
  const std::vector<Step> again{{Call::claim}, {Call::release, 0, true}, {Call::claim}};
  for (const Place place : places()) {
    for (const auto& first : {complete, release, again}) {
      for (const auto& second : {complete, release}) {
        add(group, place, Pair::alone, {first, second});
        add(group, place, Pair::alone, {second, first});
      }
      for (const Call call : calls) {
        add(group, place, Pair::alone, {first, {{call}}});
        add(group, place, Pair::alone, {{{call}}, first});
      }
    }
    add(group, place, Pair::alone, {release, release, {{Call::grow}}});
    add(group, place, Pair::alone, {complete, release, {{Call::expire}}});
  }
  return group;
}

/// The depth hint, the upper half, the lower half: seen by readers and writers on both sides.
Group splits(const Explorer::Limits& limits) {
  Group group{"splits and lookups", limits, {}};
  for (const Start start : {Start::held, Start::absent, Start::full, Start::halves, Start::far}) {
    for (const Pair pair : {Pair::twin, Pair::sibling}) {
      for (const std::uint8_t grown : {std::uint8_t{0}, std::uint8_t{1}}) {
        for (const Call writer : {Call::claim, Call::complete, Call::release, Call::grow}) {
          for (const std::uint8_t written : {std::uint8_t{0}, std::uint8_t{1}}) {
            for (const std::uint8_t read : {std::uint8_t{0}, std::uint8_t{1}}) {
              add(group, {start}, pair,
                  {{{Call::grow, grown}}, {{writer, written}}, {{Call::lookup, read}}});
            }
            add(group, {start}, pair,
                {{{Call::grow, grown}, {Call::grow, grown}},
                 {{writer, written}, {Call::lookup, written}}});
          }
        }
      }
    }
  }
  return group;
}

std::vector<Group> groups(bool is_long) {
  Explorer::Limits limits;
  limits.preemptions = is_long ? 3 : (is_slow ? 1 : 2);
  Explorer::Limits pairs = limits;
  pairs.bits_are_changes = is_long;
  Explorer::Limits one_key = pairs;
  if (is_long) one_key.preemptions = 4;
  std::vector<Group> all;
  all.push_back(pairs_on_one_key(one_key));
  all.push_back(pairs_on_two_keys(pairs));
  all.push_back(cycles(limits));
  all.push_back(splits(limits));
  all.push_back(triples_on_one_key(limits, is_long));
  all.push_back(triples_on_two_keys(limits));
  return all;
}

struct Totals {
  std::uint64_t schedules = 0;
  std::uint64_t merged = 0;
  std::uint64_t scenarios = 0;
  std::uint64_t limited = 0;
  std::uint64_t violations = 0;
};

constexpr std::uint64_t shown_max = 5;  // violations printed in full

void tell(const Scenario& scenario, const Explorer::Result& result, std::uint64_t seed) {
  std::printf("  VIOLATION in %s: %s\n  replay: --seed %llu --replay '%s' --schedule %s\n",
              scenario.name.c_str(), result.failure.c_str(), static_cast<unsigned long long>(seed),
              scenario.name.c_str(), result.schedule.c_str());
}

Explorer::Result explore(const Scenario& scenario, const Explorer::Limits& limits,
                         std::uint64_t seed, Bug bug) {
  SlotWorld world{scenario, seed, bug};
  Explorer explorer{world};
  return explorer.explore(limits);
}

void explore_group(const Group& group, std::uint64_t seed, Totals& totals) {
  Totals own;
  for (const Scenario& scenario : group.scenarios) {
    const Explorer::Result result = explore(scenario, group.limits, seed, Bug::none);
    own.schedules += result.schedules;
    own.merged += result.merged;
    ++own.scenarios;
    if (!result.complete) ++own.limited;
    if (result.failure.empty()) continue;
    if (totals.violations + ++own.violations <= shown_max) tell(scenario, result, seed);
  }
  std::printf("%-25s %6llu scenarios, %9llu schedules (%llu ended in a known state), bound %u",
              group.name, static_cast<unsigned long long>(own.scenarios),
              static_cast<unsigned long long>(own.schedules),
              static_cast<unsigned long long>(own.merged), group.limits.preemptions);
  if (own.limited != 0) {
    std::printf(", %llu cut short", static_cast<unsigned long long>(own.limited));
  }
  std::printf(", %llu violations\n", static_cast<unsigned long long>(own.violations));
  std::fflush(stdout);
  totals.schedules += own.schedules;
  totals.merged += own.merged;
  totals.scenarios += own.scenarios;
  totals.limited += own.limited;
  totals.violations += own.violations;
}

/// True if some scenario shows the planted bug that is fine without it.
bool catches(Bug bug, const std::vector<Group>& all, std::uint64_t seed) {
  std::uint64_t schedules = 0;
  for (const Group& group : all) {
    for (const Scenario& scenario : group.scenarios) {
      const Explorer::Result result = explore(scenario, group.limits, seed, bug);
      schedules += result.schedules;
      if (result.failure.empty()) continue;
      if (!explore(scenario, group.limits, seed, Bug::none).failure.empty()) continue;
      const std::string reason = result.failure.substr(0, result.failure.find('\n'));
      std::printf("planted %-24s caught after %llu schedules, %s: %s\n", name_of(bug),
                  static_cast<unsigned long long>(schedules), scenario.name.c_str(),
                  reason.c_str());
      return true;
    }
  }
  std::printf("planted %-24s NOT CAUGHT in %llu schedules\n", name_of(bug),
              static_cast<unsigned long long>(schedules));
  return false;
}

int replay(const std::string& name, const std::string& schedule, std::uint64_t seed) {
  for (const Group& group : groups(true)) {
    for (const Scenario& scenario : group.scenarios) {
      if (scenario.name != name) continue;
      SlotWorld world{scenario, seed};
      Explorer explorer{world};
      const Explorer::Result result = explorer.replay(schedule, stdout);
      std::printf("%s %s: %s\n", name.c_str(), result.schedule.c_str(),
                  result.failure.empty() ? "all is well" : result.failure.c_str());
      return result.failure.empty() ? 0 : 1;
    }
  }
  std::fprintf(stderr, "--replay %s: no such scenario\n", name.c_str());
  return 2;
}

int prove(bool is_long, std::uint64_t seed) {
  const std::vector<Group> all = groups(is_long);
  Totals totals;
  for (const Group& group : all) explore_group(group, seed, totals);
  std::size_t caught = 0;
  for (std::size_t bug = 1; bug <= bug_count; ++bug) {
    if (catches(static_cast<Bug>(bug), all, seed)) ++caught;
  }
  std::printf(
      "interleavings: %llu schedules over %llu scenarios, %llu violations, %zu of %zu planted bugs "
      "caught\n",
      static_cast<unsigned long long>(totals.schedules),
      static_cast<unsigned long long>(totals.scenarios),
      static_cast<unsigned long long>(totals.violations), caught, bug_count);
  return totals.violations == 0 && caught == bug_count ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** argument_texts) {
  std::vector<char*> shared{argument_texts[0]};
  std::string scenario;
  std::string schedule;
  for (int i = 1; i < argument_count; ++i) {
    const bool has_value = i + 1 < argument_count;
    if (std::strcmp(argument_texts[i], "--replay") == 0 && has_value) {
      scenario = argument_texts[++i];
    } else if (std::strcmp(argument_texts[i], "--schedule") == 0 && has_value) {
      schedule = argument_texts[++i];
    } else {
      shared.push_back(argument_texts[i]);
    }
  }
  const auto arguments = parse_arguments(static_cast<int>(shared.size()), shared.data());
  if (!arguments) return 2;
  const std::uint64_t seed = arguments->seed.value_or(fresh_seed());
  if (!scenario.empty()) return replay(scenario, schedule, seed);
  std::printf("interleavings: seed %llu\n", static_cast<unsigned long long>(seed));
  return prove(arguments->is_long, seed);
}
