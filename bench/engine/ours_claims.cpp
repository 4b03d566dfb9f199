// Question: what do claims cost over the plain SET NX + SET that they replace?
// Method:   claim + complete of new keys in a namespace; SET if_absent + SET if_present in a store.
// Compare:  the two, each in its own process, same keys and same 8-byte result.
// Report:   nanoseconds of one thread for a cycle, two threads working.
#include "bench/engine/ours.hpp"
#include "semel/claims.hpp"

namespace semel::bench {

namespace {

template <class Cycle>
double ns_per_cycle(const Setup& setup, Cycle&& cycle) {
  const double seconds = run_lanes(setup.threads, [&](Lane& lane) {
    const auto [begin, end] = lane.share(setup.operations);
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) cycle(i);
    lane.stop();
  });
  return seconds * 1e9 * setup.threads / static_cast<double>(setup.operations);
}

}  // namespace

double measure_claim_cycles(const Setup& setup) {
  const auto engine = open_engine(setup.operations);
  auto claims = engine->claims("work", {.lease = Millis{60'000}, .result_ttl = long_ttl});
  require(claims.has_value(), "claims: an error");
  const double ns = ns_per_cycle(setup, [&](std::uint64_t i) {
    const Key key = key_of(i);
    const std::uint64_t result = value_of(i);
    const ClaimOutcome claim = claims->claim({.key = bytes_of(key)});
    require(claim.answer == ClaimAnswer::granted, "a new claim was not granted");
    const OwnerOutcome done =
        claims->complete({.key = bytes_of(key), .epoch = claim.epoch, .payload = bytes_of(result)});
    require(done.answer == OwnerAnswer::ok, "an owner could not complete");
  });
  require(engine->size(0) == setup.operations, "cycles left another number of records");
  for (std::uint64_t i = 0; i < setup.operations; i += 997) {
    const ClaimOutcome again = claims->claim({.key = bytes_of(key_of(i))});
    require(again.answer == ClaimAnswer::replay && number_of(again.result) == value_of(i),
            "a completed claim did not replay its result");
  }
  return ns;
}

double measure_store_cycles(const Setup& setup) {
  OurMap map{setup.operations};
  const double ns = ns_per_cycle(setup, [&](std::uint64_t i) {
    const Key key = key_of(i);
    claim_fresh(map, i);
    require(map.overwrite(key, value_of(i)), "a claimed key was not there to complete");
  });
  require(map.size() == setup.operations, "cycles left another number of records");
  return ns;
}

}  // namespace semel::bench
