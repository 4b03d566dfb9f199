// Question: what do growth and expiry cost the claim that meets them?
// Method:   growth: new keys into an empty engine, every claim timed; then the clock (manual) goes
//           past every ttl, all records are swept, and as many new keys go into the table that has
//           grown. Expiry: half of the records live on, the other half ends spread over 10 s while
//           one core advances the wheel every 10 ms and the other claims (9 of 10 are repeats of
//           living records, 1 is new); before, the same with nothing ending.
// Compare:  the engine with itself in one process.
// Report:   tails; CPU time of the advancing thread for a record.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "bench/engine/ours.hpp"
#include "semel/engine_host.hpp"

namespace semel::bench {

namespace {

constexpr std::uint64_t advance_every_ns = 10'000'000;
constexpr std::uint64_t first_fresh = std::uint64_t{1} << 40;

void advance_fully(Engine& engine) {
  while (engine.advance() == 0) {
  }
}

/// Makes records [begin, end) with two threads; `expiry_of(i)` is the end of each.
template <class ExpiryOf>
void fill(Engine& engine, const Setup& setup, std::uint64_t begin, std::uint64_t end,
          ExpiryOf&& expiry_of) {
  run_lanes(setup.threads, [&](Lane& lane) {
    Store store = engine.store();
    const auto share = lane.share(end - begin);
    lane.start();
    for (std::uint64_t i = begin + share.begin; i < begin + share.end; ++i) {
      const std::uint64_t value = value_of(i);
      const auto result =
          store.set(bytes_of(key_of(i)), bytes_of(value),
                    {.condition = Condition::if_absent, .expiry = expiry_of(i), .get = true});
      require(result.has_value() && result->stored, "a new key was not granted");
    }
    lane.stop();
  });
}

/// The claims of one core until `stop`, each timed. `fresh` is the index of the next new key.
Tail timed_claims(OurMap& map, std::uint64_t living, std::uint64_t& fresh,
                  const std::atomic<bool>& stop) {
  Histogram seen;
  // mo: relaxed: when it stops is not exact.
  for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
    const bool is_new = base::mix_bits(i) % 10 == 0;
    const std::uint64_t index = is_new ? fresh++ : uniform(i, 3, living);
    const Key key = key_of(index);
    const std::uint64_t started = ticks_before();
    const Claimed claimed = map.claim(key, value_of(index));
    seen.add(ticks_after() - started);
    require(claimed.granted == is_new, "a claim during expiry: not the right answer");
    require(is_new || claimed.previous == value_of(index), "a repeat returned another value");
  }
  return seen.tail(ticks_per_ns());
}

struct Phase {
  Tail claims;
  double cpu_ns = 0;  ///< of all advances
};

/// One core claims while the other advances every 10 ms, until `until` on the clock.
Phase run_phase(OurMap& map, std::uint64_t living, std::uint64_t& fresh, Timestamp until) {
  Phase phase;
  std::atomic<bool> stop{false};
  std::thread claimant{[&] {
    pin_to_core(0);
    phase.claims = timed_claims(map, living, fresh, stop);
  }};
  std::thread sweeper{[&] {
    pin_to_core(1);
    Engine& engine = map.engine();
    std::uint64_t cpu = 0;
    while (engine.clock().now() < until) {
      const std::uint64_t before = thread_cpu_ns();
      advance_fully(engine);
      cpu += thread_cpu_ns() - before;
      pause_ns(advance_every_ns);
    }
    phase.cpu_ns = static_cast<double>(cpu);
    // mo: relaxed: see timed_claims.
    stop.store(true, std::memory_order_relaxed);
  }};
  claimant.join();
  sweeper.join();
  return phase;
}

/// None: the machine was so slow that records ended before the measurement began. `slack` is the
/// time that is left for the second fill, as a multiple of what the first took.
std::optional<ExpiryCost> try_expiry(const Setup& setup, int slack) {
  const std::int64_t spread_ms =
      std::max<std::int64_t>(static_cast<std::int64_t>(setup.records / 1000), 200);
  // Long enough for a p99.9 of the quiet phase.
  const std::int64_t quiet_ms = std::max<std::int64_t>(spread_ms / 4, 200);
  // The bench sweeps by itself, so that the cost can be measured.
  OurMap map{setup.records * 3, nullptr, Expiry::in(long_ttl), false};
  Engine& engine = map.engine();

  const Timestamp before_fill = engine.clock().now();
  fill(engine, setup, 0, setup.records, [](std::uint64_t) { return Expiry::in(long_ttl); });
  const Timestamp filled = engine.clock().now();
  const Timestamp first_end = filled + slack * (filled - before_fill) + Millis{quiet_ms + 200};
  fill(engine, setup, setup.records, 2 * setup.records, [&](std::uint64_t i) {
    const std::uint64_t at = uniform(i, 9, static_cast<std::uint64_t>(spread_ms));
    return Expiry::at(first_end + Millis{static_cast<std::int64_t>(at)});
  });
  std::uint64_t fresh = first_fresh;
  advance_fully(engine);
  const std::uint64_t expired_before = engine.stats().expired;
  const Phase quiet = run_phase(map, setup.records, fresh, engine.clock().now() + Millis{quiet_ms});
  if (engine.clock().now() >= first_end) return std::nullopt;
  require(engine.stats().expired == expired_before && expired_before == 0,
          "records ended before their time");

  while (engine.clock().now() < first_end - Millis{1}) pause_ns(1'000'000);
  const Timestamp last_end = first_end + Millis{spread_ms};
  const Phase expiring = run_phase(map, setup.records, fresh, last_end);
  advance_fully(engine);
  const Timestamp swept = engine.clock().now();
  require(engine.stats().expired == setup.records, "not every record was expired just once");
  require(map.size() == setup.records + (fresh - first_fresh), "records were lost");
  return ExpiryCost{.cpu_ns_per_record = expiring.cpu_ns / static_cast<double>(setup.records),
                    .quiet = quiet.claims,
                    .expiring = expiring.claims,
                    .lag_ms = static_cast<double>((swept - last_end).count())};
}

}  // namespace

GrowthTails measure_growth_tails(const Setup& setup) {
  GrowthTails figures;
  ManualClock clock;
  OurMap map{setup.records, &clock};
  Engine& engine = map.engine();
  figures.growing = timed_new_keys(map, setup, 0);
  require(map.size() == setup.records, "W1 left another number of records than it made");
  figures.slots_first = static_cast<double>(engine.stats().slots);

  clock.advance(long_ttl + Millis{1'000});
  advance_fully(engine);
  engine.host().quiesce();
  require(map.size() == 0, "records outlived their ttl");
  const Stats before = engine.stats();
  figures.slots_before = static_cast<double>(before.slots);
  figures.grown = timed_new_keys(map, setup, first_fresh);
  require(map.size() == setup.records, "the second fill left another number of records");
  figures.growth_steps = static_cast<double>(engine.stats().growth_steps - before.growth_steps);
  return figures;
}

ExpiryCost measure_expiry(const Setup& setup) {
  for (const int slack : {3, 12, 48}) {
    if (const auto cost = try_expiry(setup, slack)) return *cost;
    std::fprintf(stderr, "semel_bench: too slow to fill in time; again with more time\n");
  }
  fail("the machine is too slow to fill the table before its records end");
}

}  // namespace semel::bench
