// Question: what do the engine's single calls cost on W1..W5, and its wheel, and one hot key?
// Method:   the workloads of the peers; W1 with and without ttl; all threads on one key.
// Compare:  peers in the same run; the engine with itself.
// Report:   rates, resident bytes, tails.
#include "bench/engine/ours.hpp"

#include <algorithm>

#include "semel/claims.hpp"

namespace semel::bench {

std::unique_ptr<Engine> open_engine(std::uint64_t records, const Clock* clock, bool background) {
  // A limit, not a reservation of memory: generous, so that no figure is of an engine that is full.
  const std::size_t wanted = std::size_t{records} * 512 + (std::size_t{256} << 20);
  // As a service runs it: the wheel turns, and memory is touched ahead of need, on a thread of the
  // engine's, which competes with the claimants for the same two processors.
  auto engine = Engine::open({.clock = clock == nullptr ? &bench_clock() : clock,
                              .memory_bytes = std::min(wanted, limits::memory_bytes_max),
                              .background = background ? std::optional{Millis{1}} : std::nullopt});
  if (!engine) fail(engine.error().message().c_str());
  return *std::move(engine);
}

Contestant semel_store() {
  return contestant<OurMap>("Semel");
}

double measure_new_keys(const Setup& setup, bool with_ttl) {
  OurMap map{setup.records, nullptr, with_ttl ? Expiry::in(long_ttl) : Expiry::clear()};
  const double seconds = new_keys(map, setup);
  require(map.size() == setup.records, "W1 left another number of records than it made");
  const std::uint64_t timed = map.engine().stats().records_with_ttl;
  require(timed == (with_ttl ? setup.records : 0), "W1 left another number of timers");
  return static_cast<double>(setup.records) / seconds;
}

HotKey measure_hot_key(const Setup& setup) {
  OurMap map{1'000};
  auto claims = map.engine().claims("hot", {});
  require(claims.has_value(), "claims: an error");
  const Key key = key_of(7);
  const auto rate_of = [&](auto&& claim_once) {
    std::atomic<std::uint64_t> granted{0};
    const double seconds = run_lanes(setup.threads, [&](Lane& lane) {
      const auto [begin, end] = lane.share(setup.operations);
      std::uint64_t own = 0;
      lane.start();
      for (std::uint64_t i = begin; i < end; ++i) own += claim_once(lane.index()) ? 1 : 0;
      lane.stop();
      // mo: relaxed: read after the threads have been joined.
      granted.fetch_add(own, std::memory_order_relaxed);
    });
    // mo: relaxed: see above.
    require(granted.load(std::memory_order_relaxed) == 1, "a hot key was not granted just once");
    return static_cast<double>(setup.operations) / seconds;
  };
  HotKey figures;
  figures.store = rate_of([&](unsigned lane) { return map.claim(key, lane + 1).granted; });
  figures.claims = rate_of([&](unsigned) {
    const ClaimAnswer answer = claims->claim({.key = bytes_of(key)}).answer;
    require(answer == ClaimAnswer::granted || answer == ClaimAnswer::in_flight,
            "a hot claim was neither granted nor in flight");
    return answer == ClaimAnswer::granted;
  });
  return figures;
}

}  // namespace semel::bench
