// Calls of one thread in process, compiled against two builds of the engine: bench/before.py.
//
// Question: what does a call cost that finds what it needs in the cache?
// Method:   2,000 keys in an order that strides; the least of five passes, so that what else runs
//           on the machine does not count; a key of each call is checked.
// Compare:  the same program with an earlier build.
// Report:   a line a call: name, ns.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace {

using namespace semel;

constexpr std::size_t key_count = 2'000;

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "calls: %s\n", what);
  std::exit(1);
}

template <class Call>
void time_calls(const char* name, std::size_t count, Call&& call) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::max();
  for (int pass = 0; pass < 5; ++pass) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < count; ++i) call(i * 7919 % key_count);
    const std::chrono::duration<double, std::nano> spent = Clock::now() - begin;
    least = std::min(least, spent.count() / static_cast<double>(count));
  }
  std::printf("%s %.2f\n", name, least);
}

void time_strings(Engine& engine, const std::vector<std::string>& keys) {
  Store store = engine.store();
  const SetOptions once{
      .condition = Condition::if_absent, .expiry = Expiry::in(Millis{3'600'000}), .get = true};
  for (const std::string& key : keys) {
    const auto set = store.set(key, "v", once);
    require(set.ok() && set->stored, "a new key was not stored");
  }
  time_calls("SET-NX-GET,-repeat", 2'000'000, [&](std::size_t i) {
    const auto set = store.set(keys[i], "v", once);
    require(set.ok() && !set->stored && set->previous == "v", "a repeat was stored");
  });
  time_calls("GET", 2'000'000, [&](std::size_t i) {
    const auto value = store.get(keys[i]);
    require(value.ok() && *value == "v", "a value was lost");
  });
  const SetOptions again{.condition = Condition::if_present,
                         .expiry = Expiry::in(Millis{3'600'000})};
  time_calls("SET-XX", 500'000, [&](std::size_t i) {
    const auto set = store.set(keys[i], "v", again);
    require(set.ok() && set->stored, "a key was not overwritten");
  });
  std::array<StoreOp, 16> ops;
  std::array<StoreOutcome, 16> outcomes;
  time_calls("16-GETs-in-a-batch", 100'000, [&](std::size_t i) {
    for (std::size_t at = 0; at < ops.size(); ++at) {
      ops[at] = StoreOp{.verb = Verb::get, .key = keys[(i + at * 997) % key_count]};
    }
    engine.host().apply(ops, outcomes);
    require(outcomes[15].error == ErrorCode::ok, "a batch has failed");
  });
}

void time_claims(Engine& engine, const std::vector<std::string>& keys) {
  auto claims = engine.claims("calls", {.lease = Millis{600'000}});
  require(claims.has_value(), "no namespace");
  time_calls("claim-and-release", 500'000, [&](std::size_t i) {
    const ClaimOutcome claim = claims->claim({.key = keys[i]});
    require(claim.answer == ClaimAnswer::granted, "a key was not free");
    const OwnerOutcome release = claims->release({.key = keys[i], .epoch = claim.epoch});
    require(release.answer == OwnerAnswer::ok, "a claim was not released");
  });
  for (const std::string& key : keys) {
    const ClaimOutcome claim = claims->claim({.key = key});
    const OwnerOutcome done = claims->complete({.key = key, .epoch = claim.epoch});
    require(done.answer == OwnerAnswer::ok, "a claim was not completed");
  }
  time_calls("replay", 2'000'000, [&](std::size_t i) {
    require(claims->claim({.key = keys[i]}).answer == ClaimAnswer::replay, "not a replay");
  });
  require(claims->claim({.key = "hot"}).answer == ClaimAnswer::granted, "a new key was not free");
  time_calls("in-flight", 2'000'000, [&](std::size_t) {
    require(claims->claim({.key = "hot"}).answer == ClaimAnswer::in_flight, "not in flight");
  });
}

}  // namespace

int main() {
  auto engine = Engine::open({.memory_bytes = std::size_t{1} << 30});
  require(engine.has_value(), "no engine");
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < key_count; ++i) {
    keys.push_back("key:" + std::to_string(i * 2'654'435'761U));
  }
  time_strings(**engine, keys);
  time_claims(**engine, keys);
}
