// The calls whose instructions run.py counts, under callgrind: one function a row.
//
// A row makes `keys` calls on keys of 32 bytes and checks each answer. What its loop costs is in
// its figure, 17 to 46 instructions a call. Rows follow each other on one engine, so that records
// are there. The clock is the engine's own, as programs have it.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/store.hpp"

namespace {

using namespace semel;

constexpr std::size_t key_count = 4'000;

void require(bool good, const char* what) {
  if (good) [[likely]]
    return;
  std::fprintf(stderr, "instructions: %s\n", what);
  std::exit(1);
}

struct Bench {
  std::unique_ptr<Engine> engine;
  Store store;
  Claims claims;
  std::vector<std::string> keys{};      // of strings and claims
  std::vector<std::uint64_t> epochs{};  // of the claims in flight
};

const SetOptions once{
    .condition = Condition::if_absent, .expiry = Expiry::in(Millis{3'600'000}), .get = true};
const SetOptions always{.expiry = Expiry::in(Millis{3'600'000})};
constexpr Bytes value = "consuming";
constexpr Bytes result = "paid";

}  // namespace

// Their names are the rows of expected.txt.
#define SEMEL_ROW extern "C" [[gnu::noinline]] void

SEMEL_ROW row_set_nx_get_new(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const auto set = bench.store.set(key, value, once);
    require(set.ok() && set->stored, "a new key was not stored");
  }
}
SEMEL_ROW row_set_nx_get_repeat(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const auto set = bench.store.set(key, value, once);
    require(set.ok() && !set->stored && set->previous == value, "a repeat was stored");
  }
}
SEMEL_ROW row_get_hit(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const auto found = bench.store.get(key);
    require(found.ok() && *found == value, "a value was lost");
  }
}
SEMEL_ROW row_set_over(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const auto set = bench.store.set(key, value, always);
    require(set.ok() && set->stored, "a key was not overwritten");
  }
}
SEMEL_ROW row_del(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const auto gone = bench.store.del(key);
    require(gone.ok() && *gone, "a key was not there");
  }
}
SEMEL_ROW row_claim_new(Bench& bench) {
  std::size_t i = 0;
  for (const std::string& key : bench.keys) {
    const ClaimOutcome claim = bench.claims.claim({.key = key});
    require(claim.answer == ClaimAnswer::granted, "a key was not free");
    bench.epochs[i++] = claim.epoch;
  }
}
SEMEL_ROW row_claim_in_flight(Bench& bench) {
  for (const std::string& key : bench.keys) {
    require(bench.claims.claim({.key = key}).answer == ClaimAnswer::in_flight, "not in flight");
  }
}
SEMEL_ROW row_complete(Bench& bench) {
  std::size_t i = 0;
  for (const std::string& key : bench.keys) {
    const OwnerOutcome done =
        bench.claims.complete({.key = key, .epoch = bench.epochs[i++], .payload = result});
    require(done.answer == OwnerAnswer::ok, "a claim was not completed");
  }
}
SEMEL_ROW row_replay(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const ClaimOutcome claim = bench.claims.claim({.key = key});
    require(claim.answer == ClaimAnswer::replay && claim.result == result, "not a replay");
  }
}
SEMEL_ROW row_claim_and_complete(Bench& bench) {
  for (const std::string& key : bench.keys) {
    const ClaimOutcome claim = bench.claims.claim({.key = key});
    const OwnerOutcome done =
        bench.claims.complete({.key = key, .epoch = claim.epoch, .payload = result});
    require(done.answer == OwnerAnswer::ok, "a claim was not completed");
  }
}
SEMEL_ROW row_expiry(Bench& bench) {
  while (bench.engine->advance() == 0) {
  }
}

int main() {
  auto opened = Engine::open(
      {.memory_bytes = std::size_t{256} << 20, .hash_seed = 7, .background = std::nullopt});
  require(opened.has_value(), "no engine");
  auto claims = (*opened)->claims("orders", {.lease = Millis{600'000}});
  require(claims.has_value(), "no namespace");
  Store store = (*opened)->store();
  Bench bench{std::move(*opened), store, *claims};
  bench.epochs.resize(key_count);
  for (std::size_t i = 0; i < key_count; ++i) {
    std::string key = std::to_string(i * 2'654'435'761U);
    bench.keys.push_back("order:" + std::string(26 - key.size(), '0') + key);
  }
  row_set_nx_get_new(bench);
  row_set_nx_get_repeat(bench);
  row_get_hit(bench);
  row_set_over(bench);
  row_del(bench);
  row_claim_new(bench);
  row_claim_in_flight(bench);
  row_complete(bench);
  row_replay(bench);

  for (std::string& key : bench.keys) key[0] = 'x';
  row_claim_and_complete(bench);

  // By a clock that stands still: ends that lie in two slots of the wheel would also count how it
  // moves timers from one level to the other.
  ManualClock clock;
  auto timed = Engine::open({.clock = &clock,
                             .memory_bytes = std::size_t{256} << 20,
                             .hash_seed = 7,
                             .background = std::nullopt});
  require(timed.has_value(), "no engine");
  Store timed_store = (*timed)->store();
  Bench ending{std::move(*timed), timed_store, *claims};
  const Expiry soon = Expiry::in(Millis{1});
  for (const std::string& key : bench.keys) {
    require(timed_store.set(key, value, {.expiry = soon}).ok(), "a key was not stored");
  }
  clock.advance(Millis{1});
  row_expiry(ending);
  require(ending.engine->stats().records == 0, "a key has not ended");
}
