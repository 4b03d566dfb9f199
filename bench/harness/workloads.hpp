// W1..W5 over any map. A map gives:
//   explicit Map(std::uint64_t records)            empty; `records` is a limit, not a reservation
//   struct Map::Scope { explicit Scope(Map&); }    what a thread needs while it works
//   Claimed claim(const Key&, std::uint64_t value) insert if absent or ended, else the old value
//   bool overwrite(const Key&, std::uint64_t)      true if it was there
//   bool erase(const Key&)                         true if it was there
//   std::uint64_t size()                           records that live
#pragma once

#include <memory>
#include <vector>

#include "bench/harness/contestant.hpp"
#include "bench/harness/harness.hpp"
#include "bench/harness/keys.hpp"

namespace semel::bench {

struct Claimed {
  bool granted = false;
  std::uint64_t previous = 0;  ///< if not granted
};

/// First index of keys that W1 does not make; each lane has its own.
[[nodiscard]] inline std::uint64_t fresh_index(unsigned workload, const Lane& lane) noexcept {
  return (std::uint64_t{workload} << 40) | (std::uint64_t{lane.index()} << 36);
}

template <class Map>
void claim_fresh(Map& map, std::uint64_t index) {
  require(map.claim(key_of(index), value_of(index)).granted, "a new key was not granted");
}

template <class Map>
void claim_again(Map& map, std::uint64_t index) {
  const Claimed claimed = map.claim(key_of(index), value_of(index) + 1);
  require(!claimed.granted, "a repeat was granted");
  require(claimed.previous == value_of(index), "a repeat returned another value");
}

template <class Map>
double new_keys(Map& map, const Setup& setup) {
  return run_lanes(setup.threads, [&](Lane& lane) {
    typename Map::Scope scope{map};
    const auto [begin, end] = lane.share(setup.records);
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) claim_fresh(map, i);
    lane.stop();
  });
}

template <class Map>
double repeats(Map& map, const Setup& setup) {
  return run_lanes(setup.threads, [&](Lane& lane) {
    typename Map::Scope scope{map};
    const auto [begin, end] = lane.share(setup.operations);
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) {
      claim_again(map, uniform(i, lane.index(), setup.records));
    }
    lane.stop();
  });
}

template <class Map>
double mostly_repeats(Map& map, const Setup& setup) {
  return run_lanes(setup.threads, [&](Lane& lane) {
    typename Map::Scope scope{map};
    const auto [begin, end] = lane.share(setup.operations);
    std::uint64_t fresh = fresh_index(3, lane);
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) {
      if (base::mix_bits(i) % 10 == 0) {
        claim_fresh(map, fresh++);
      } else {
        claim_again(map, uniform(i, lane.index() + 16, setup.records));
      }
    }
    lane.stop();
  });
}

template <class Map>
double zipf_repeats(Map& map, const Setup& setup) {
  return run_lanes(setup.threads, [&](Lane& lane) {
    typename Map::Scope scope{map};
    const auto [begin, end] = lane.share(setup.operations);
    // The choices were drawn before; reading them as a stream costs the same for every map.
    std::uint64_t touched = 0;
    for (std::uint64_t i = begin; i < end; ++i) touched += setup.zipf[i];
    require(touched != 0, "no zipf choices");
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) claim_again(map, setup.zipf[i]);
    lane.stop();
  });
}

template <class Map>
double cycles(Map& map, const Setup& setup) {
  return run_lanes(setup.threads, [&](Lane& lane) {
    typename Map::Scope scope{map};
    const auto [begin, end] = lane.share(setup.operations / 3);
    const std::uint64_t first = fresh_index(5, lane);
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) {
      const std::uint64_t index = first + i;
      claim_fresh(map, index);
      const Key key = key_of(index);
      require(map.overwrite(key, value_of(index) + 2), "a claimed key was not there to complete");
      require(map.erase(key), "a completed key was not there to release");
    }
    lane.stop();
  });
}

template <class Map>
Throughput measure_throughput(const Setup& setup) {
  const double before = memory_of_process().now;
  const auto map = std::make_unique<Map>(setup.records);
  const auto records = static_cast<double>(setup.records);
  const auto operations = static_cast<double>(setup.operations);
  Throughput figures;
  figures.rate[0] = records / new_keys(*map, setup);
  const Memory after = memory_of_process();
  figures.bytes_per_record = (after.now - before) / records;
  figures.bytes_per_record_peak = (after.peak - before) / records;
  require(map->size() == setup.records, "W1 left another number of records than it made");
  if (setup.workloads > 1) figures.rate[1] = operations / repeats(*map, setup);
  if (setup.workloads > 3) figures.rate[3] = operations / zipf_repeats(*map, setup);
  if (setup.workloads > 4) {
    figures.rate[4] = static_cast<double>(setup.operations / 3 * 3) / cycles(*map, setup);
    require(map->size() == setup.records, "W5 left records behind");
  }
  // The last one, because it alone leaves more records than it found.
  if (setup.workloads > 2) figures.rate[2] = operations / mostly_repeats(*map, setup);
  return figures;
}

/// Claims of new keys 0..records-1 + `first`, each of them timed.
template <class Map>
Tail timed_new_keys(Map& map, const Setup& setup, std::uint64_t first) {
  std::vector<Histogram> seen(setup.threads);
  run_lanes(setup.threads, [&](Lane& lane) {
    typename Map::Scope scope{map};
    const auto [begin, end] = lane.share(setup.records);
    Histogram& histogram = seen[lane.index()];
    lane.start();
    for (std::uint64_t i = begin; i < end; ++i) {
      const Key key = key_of(first + i);
      const std::uint64_t value = value_of(first + i);
      const std::uint64_t started = ticks_before();
      const Claimed claimed = map.claim(key, value);
      histogram.add(ticks_after() - started);
      require(claimed.granted, "a new key was not granted");
    }
    lane.stop();
  });
  for (unsigned i = 1; i < setup.threads; ++i) seen[0].merge(seen[i]);
  return seen[0].tail(ticks_per_ns());
}

template <class Map>
Tail measure_growth_tail(const Setup& setup) {
  const auto map = std::make_unique<Map>(setup.records);
  const Tail tail = timed_new_keys(*map, setup, 0);
  require(map->size() == setup.records, "W1 left another number of records than it made");
  return tail;
}

template <class Map>
[[nodiscard]] Contestant contestant(std::string name) {
  return {.name = std::move(name),
          .throughput = measure_throughput<Map>,
          .growth_tail = measure_growth_tail<Map>};
}

}  // namespace semel::bench
