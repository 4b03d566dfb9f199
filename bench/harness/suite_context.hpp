// What the groups of the suite `engine` share: a measurement in a child, goals, medians.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "bench/engine/suite_engine.hpp"
#include "bench/harness/harness.hpp"
#include "bench/harness/report.hpp"

namespace semel::bench {

struct Context {
  const SuiteOptions& options;
  Setup setup;
  Report& report;
  unsigned round = 0;

  void say(const std::string& what) const {
    std::fprintf(stderr, "semel_bench: round %u of %u: %s\n", round + 1, options.rounds,
                 what.c_str());
  }

  /// `measure()` in a child; a failure marks the run as wrong.
  template <class Measure>
  auto measured(const std::string& what, Measure&& measure) {
    say(what);
    auto figures = in_child(measure);
    if (!figures) {
      std::fprintf(stderr, "semel_bench: FAILED: %s\n", what.c_str());
      report.wrong = true;
    }
    return figures;
  }

  [[nodiscard]] Setup with_threads(unsigned threads) const {
    Setup changed = setup;
    changed.threads = threads;
    return changed;
  }
};

[[nodiscard]] inline Goal ratio_at_least(double limit) {
  return {.judged = Judged::ratio, .bound = Bound::at_least, .limit = limit, .unit = "x"};
}
[[nodiscard]] inline Goal ratio_at_most(double limit) {
  return {.judged = Judged::ratio, .bound = Bound::at_most, .limit = limit, .unit = "x"};
}
[[nodiscard]] inline Goal figure_at_least(double limit, const char* unit) {
  return {.judged = Judged::figure, .bound = Bound::at_least, .limit = limit, .unit = unit};
}
[[nodiscard]] inline Goal figure_at_most(double limit, const char* unit) {
  return {.judged = Judged::figure, .bound = Bound::at_most, .limit = limit, .unit = unit};
}

/// One value of each round.
template <class Figures, class Value>
[[nodiscard]] std::vector<double> each(const std::vector<Figures>& rounds, Value&& value) {
  std::vector<double> values;
  for (const Figures& figures : rounds) values.push_back(value(figures));
  return values;
}

[[nodiscard]] inline Throughput middle(const std::vector<Throughput>& rounds) {
  Throughput figures;
  for (std::size_t i = 0; i < workload_count; ++i) {
    figures.rate[i] = median(each(rounds, [&](const Throughput& t) { return t.rate[i]; }));
  }
  figures.bytes_per_record =
      median(each(rounds, [](const Throughput& t) { return t.bytes_per_record; }));
  figures.bytes_per_record_peak =
      median(each(rounds, [](const Throughput& t) { return t.bytes_per_record_peak; }));
  return figures;
}

[[nodiscard]] inline Tail middle(const std::vector<Tail>& rounds) {
  return {.p50 = median(each(rounds, [](const Tail& t) { return t.p50; })),
          .p99 = median(each(rounds, [](const Tail& t) { return t.p99; })),
          .p999 = median(each(rounds, [](const Tail& t) { return t.p999; })),
          .max = median(each(rounds, [](const Tail& t) { return t.max; })),
          .samples = median(each(rounds, [](const Tail& t) { return t.samples; }))};
}

/// The group `throughput`: W1..W5 against the peers, the second thread, memory.
void throughput_group(Context& context);

}  // namespace semel::bench
