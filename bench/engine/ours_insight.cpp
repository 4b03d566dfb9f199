// Question: how fast is the whole table read, and what does a consistent cut cost a writer?
// Method:   scan in steps of 1,000; snapshot alone, then with one thread overwriting; sections of
//           two keys; the engine's own count of bytes.
// Compare:  none of the peers has these.
// Report:   records, overwrites and sections a second.
#include <array>
#include <thread>

#include "bench/engine/ours.hpp"
#include "semel/engine_host.hpp"
#include "semel/journal.hpp"

namespace semel::bench {

namespace {

/// `work` on core 0, timed.
template <class Work>
double seconds_of(Work&& work) {
  return run_lanes(1, [&](Lane& lane) {
    lane.start();
    work();
    lane.stop();
  });
}

/// Overwrites a second on core 1 while `work` runs here.
template <class Work>
double writer_rate(OurMap& map, const Setup& setup, Work&& work) {
  std::atomic<bool> stop{false};
  double rate = 0;
  std::thread writer{[&] {
    pin_to_core(1);
    std::uint64_t done = 0;
    const std::uint64_t begin = __rdtsc();
    // mo: relaxed: when it stops is not exact.
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t index = uniform(done++, 1, setup.records);
      require(map.overwrite(key_of(index), value_of(index)), "a record was not there");
    }
    const double ns = static_cast<double>(__rdtsc() - begin) / ticks_per_ns();
    rate = static_cast<double>(done) / ns * 1e9;
  }};
  work();
  // mo: relaxed: see above.
  stop.store(true, std::memory_order_relaxed);
  writer.join();
  return rate;
}

double scan_seconds(OurMap& map, const Setup& setup) {
  std::uint64_t visited = 0;
  const double seconds = seconds_of([&] {
    std::uint64_t cursor = 0;
    ScanOptions options;
    options.count = 1'000;
    do {
      const auto next = map.engine().scan(cursor, options, [&](const ScanItem&) { ++visited; });
      require(next.has_value(), "scan: an error");
      cursor = *next;
    } while (cursor != 0);
  });
  require(visited >= setup.records, "a scan missed records that were there all the time");
  return seconds;
}

double snapshot_seconds(OurMap& map, const Setup& setup) {
  std::uint64_t visited = 0;
  const double seconds = seconds_of([&] {
    const Status status = map.engine().host().snapshot([&](const Mutation&) { ++visited; });
    require(status.has_value(), "snapshot: an error");
  });
  require(visited >= setup.records, "a snapshot missed records");
  return seconds;
}

double section_rate(OurMap& map, const Setup& setup) {
  const std::uint64_t total = std::max<std::uint64_t>(setup.operations / 10, 1);
  const double seconds = seconds_of([&] {
    StoreOutcome outcome;
    for (std::uint64_t i = 0; i < total; ++i) {
      const std::array keys{key_of(uniform(i, 5, setup.records)),
                            key_of(uniform(i, 6, setup.records))};
      const std::array refs{KeyRef{.key = bytes_of(keys[0])}, KeyRef{.key = bytes_of(keys[1])}};
      auto section = map.engine().section(refs);
      require(section.has_value(), "section: an error");
      for (const Key& key : keys) {
        section->apply({.verb = Verb::get, .key = bytes_of(key)}, outcome);
        require(outcome.found, "a record was not there");
      }
    }
  });
  return static_cast<double>(total) / seconds;
}

}  // namespace

Insight measure_insight(const Setup& setup) {
  Insight figures;
  OurMap map{setup.records};
  const auto records = static_cast<double>(setup.records);
  new_keys(map, setup);
  map.engine().advance();  // counts the wheel
  const Stats stats = map.engine().stats();
  figures.bytes_records = static_cast<double>(stats.bytes_records) / records;
  figures.bytes_table = static_cast<double>(stats.bytes_table) / records;
  figures.bytes_wheel = static_cast<double>(stats.bytes_wheel) / records;
  figures.load = stats.slots == 0 ? 0 : records / static_cast<double>(stats.slots);
  figures.scan = records / scan_seconds(map, setup);
  figures.snapshot = records / snapshot_seconds(map, setup);
  figures.writer_alone = writer_rate(map, setup, [] { pause_ns(300'000'000); });
  figures.writer_beside = writer_rate(
      map, setup, [&] { figures.snapshot_with_writer = records / snapshot_seconds(map, setup); });
  figures.sections = section_rate(map, setup);
  return figures;
}

}  // namespace semel::bench
