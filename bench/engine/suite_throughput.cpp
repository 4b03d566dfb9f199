// Question: how fast are W1..W5, what does a second thread add, what does a record weigh?
// Method:   a round runs the engine, the peers, the engine again in their midst, then the engine on
//           one thread; each in a process of its own.
// Compare:  ratios within the round; the engine's two runs count as their mean.
// Report:   rows of W1..W5, of the second thread and of memory; the table of every map.
#include <array>

#include "bench/harness/suite_context.hpp"

namespace semel::bench {

namespace {

constexpr std::array<const char*, workload_count> workload_titles{
    "W1 new keys, growing", "W2 repeats, uniform", "W3 90/10", "W4 repeats, zipf 0.99",
    "W5 claim + complete + release"};

struct Race {
  std::vector<Contestant> peers = inline_peers();
  std::vector<std::vector<Throughput>> peer_rounds{peers.size()};
  std::vector<Throughput> ours;
  std::vector<Throughput> ours_alone;  ///< one thread
};

/// The engine's two runs of a round as one.
Throughput mean(const Throughput& one, const Throughput& other) {
  return middle(std::vector{one, other});
}

void run_race(Context& context, Race& race) {
  const Contestant ours = semel_store();
  const auto run = [&](const Contestant& map, unsigned threads) {
    return context.measured(
        map.name + text(", W1..W5, %u thread%s", threads, threads > 1 ? "s" : ""),
        [&] { return map.throughput(context.with_threads(threads)); });
  };
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    // A round counts only if all of its measurements are there: its figures belong together.
    const auto first = run(ours, 2);
    std::vector<std::optional<Throughput>> peers(race.peers.size());
    std::optional<Throughput> second;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (race.peers[i].available()) peers[i] = run(race.peers[i], 2);
      if (i == peer_onetbb) second = run(ours, 2);
    }
    const auto alone = run(ours, 1);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (peers[i]) race.peer_rounds[i].push_back(*peers[i]);
    }
    if (first && second) race.ours.push_back(mean(*first, *second));
    if (alone) race.ours_alone.push_back(*alone);
  }
}

void add_race_row(Report& report, const Race& race, std::size_t work, std::size_t peer,
                  const char* against, double goal) {
  const auto rate = [&](const Throughput& t) { return t.rate[work] / 1e6; };
  const bool there = race.peers[peer].available();
  report.rows.push_back(
      row_of(text("%s, against %s (M/s)", workload_titles[work], against),
             {.ours = each(race.ours, rate), .peer = each(race.peer_rounds[peer], rate)},
             race.peers[peer].name + (there ? "" : " (not available)"), ratio_at_least(goal)));
}

/// The peer that is best at `work`.
std::size_t best_peer(const Race& race, std::size_t work) {
  std::size_t best = 0;
  double most = -1;
  for (std::size_t i = 0; i < race.peers.size(); ++i) {
    if (race.peer_rounds[i].empty()) continue;
    const double rate = middle(race.peer_rounds[i]).rate[work];
    if (rate > most) {
      most = rate;
      best = i;
    }
  }
  return best;
}

void add_memory_rows(Report& report, const Race& race) {
  const auto end = [](const Throughput& t) { return t.bytes_per_record; };
  const auto peak = [](const Throughput& t) { return t.bytes_per_record_peak; };
  report.rows.push_back(
      row_of("memory after W1 (resident bytes a record)",
             {.ours = each(race.ours, end), .peer = each(race.peer_rounds[peer_libcuckoo], end)},
             race.peers[peer_libcuckoo].name, figure_at_most(80, "B")));
  report.rows.push_back(row_of("peak while growing against the end (bytes a record)",
                               {.ours = each(race.ours, peak), .peer = each(race.ours, end)},
                               "Semel, at the end", ratio_at_most(1.10)));
}

}  // namespace

void throughput_group(Context& context) {
  Race race;
  run_race(context, race);
  Report& report = context.report;
  add_race_row(report, race, 0, peer_libcuckoo, "libcuckoo", 2.0);
  add_race_row(report, race, 0, peer_onetbb, "oneTBB", 3.0);
  add_race_row(report, race, 0, peer_flat_shards, "sharded flat map", 1.2);
  add_race_row(report, race, 1, peer_libcuckoo, "libcuckoo", 1.0);
  for (std::size_t work = 2; work < workload_count; ++work) {
    add_race_row(report, race, work, best_peer(race, work), "best peer", 1.1);
  }
  constexpr std::array<double, workload_count> concurrent_goals{1.0, 0.9, 1.1, 0.8, 1.0};
  for (std::size_t work = 0; work < workload_count; ++work) {
    add_race_row(report, race, work, peer_concurrent, "boost::concurrent_flat_map",
                 concurrent_goals[work]);
  }
  for (std::size_t work = 0; work < workload_count; ++work) {
    const auto rate = [&](const Throughput& t) { return t.rate[work] / 1e6; };
    report.rows.push_back(
        row_of(text("second thread, %s (M/s)", workload_titles[work]),
               {.ours = each(race.ours, rate), .peer = each(race.ours_alone, rate)},
               "Semel, 1 thread", ratio_at_least(1.7)));
  }
  add_memory_rows(report, race);

  const auto add_map = [&](const std::string& name, const std::vector<Throughput>& rounds) {
    report.maps.push_back(
        {.name = name, .figures = rounds.empty() ? std::nullopt : std::optional{middle(rounds)}});
  };
  add_map("Semel", race.ours);
  for (std::size_t i = 0; i < race.peers.size(); ++i) {
    add_map(race.peers[i].name, race.peer_rounds[i]);
  }
  add_map("Semel, 1 thread", race.ours_alone);
}

}  // namespace semel::bench
