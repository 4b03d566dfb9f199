// Question: does the engine reach its goals against the maps that packages give?
// Method:   each measurement in a process of its own, two threads pinned, ours and the peers'
//           taking turns in rounds; every result of every call is checked.
// Compare:  ratios within one round; a figure of one round is never set against another's.
// Report:   medians over the rounds, a row for each goal.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "bench/engine/ours.hpp"
#include "bench/harness/keys.hpp"
#include "bench/harness/suite_context.hpp"

namespace semel::bench {

namespace {

/// Choices for W4 in memory that children share, so that their figures of memory do not have it.
class ZipfChoices {
 public:
  ZipfChoices(std::uint64_t records, std::uint64_t count) : count_(count) {
    void* const memory =
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "no memory for the choices of W4");
    data_ = static_cast<std::uint32_t*>(memory);
    const Zipf zipf{records, 0.99};
    // Neighbours in rank must not be neighbours in age, or maps that keep records in order of
    // insertion would find the popular ones side by side.
    std::uint64_t stride = 2'654'435'761 % records;
    while (std::gcd(stride, records) != 1) ++stride;
    std::uint64_t draws = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t rank = zipf([&] { return base::mix_bits(work_seed + ++draws); });
      data_[i] = static_cast<std::uint32_t>(rank * stride % records);
    }
  }
  ~ZipfChoices() { munmap(data_, bytes()); }
  ZipfChoices(const ZipfChoices&) = delete;
  ZipfChoices& operator=(const ZipfChoices&) = delete;

  [[nodiscard]] std::span<const std::uint32_t> choices() const noexcept { return {data_, count_}; }

 private:
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(std::uint32_t); }
  std::uint32_t* data_ = nullptr;
  std::uint64_t count_;
};

// --- batches -----------------------------------------------------------------------------------

void batches_group(Context& context) {
  std::vector<Batches> batches;
  std::vector<double> singles;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto single = context.measured("Semel, W1 single calls",
                                         [&] { return measure_new_keys(context.setup, true); });
    const auto batch =
        context.measured("Semel, batches of 16", [&] { return measure_batches(context.setup); });
    if (!single || !batch) continue;
    singles.push_back(*single / 1e6);
    batches.push_back(*batch);
  }
  const auto add = [&](const char* name, double Batches::*batch, std::vector<double> single,
                       double goal) {
    context.report.rows.push_back(
        row_of(name,
               {.ours = each(batches, [&](const Batches& b) { return b.*batch / 1e6; }),
                .peer = std::move(single)},
               "Semel, single calls", ratio_at_least(goal)));
  };
  const auto of = [&](double Batches::*one) {
    return each(batches, [&](const Batches& b) { return b.*one / 1e6; });
  };
  add("batches of 16, claims on W1 (M/s)", &Batches::claim_new, singles, 2.0);
  add("batches of 16, claims on W2 (M/s)", &Batches::claim_repeat,
      of(&Batches::claim_repeat_single), 2.5);
  add("batches of 16, completes on W2 (M/s)", &Batches::complete, of(&Batches::complete_single),
      2.5);
  add("batches of 16, gets on W2 (M/s)", &Batches::get, of(&Batches::get_single), 2.5);
  context.report.notes.push_back(
      {"batches of 16, claims on W4 (M/s)", figure(median(of(&Batches::claim_zipf)))});
  context.report.notes.push_back(
      {"batches of 32, claims on W1 (M/s)", figure(median(of(&Batches::claim_new_32)))});
}

// --- growth ------------------------------------------------------------------------------------

struct GrowthRounds {
  std::vector<Tail> idle_1;
  std::vector<Tail> idle_2;
  std::vector<Tail> ours_1;
  std::vector<Tail> cuckoo_1;
  std::vector<GrowthTails> ours_2;
};

void add_growth_rows(Report& report, const GrowthRounds& rounds) {
  const auto worst_us = [](const Tail& tail) { return tail.max / 1e3; };
  report.rows.push_back(
      row_of("worst claim while growing, 1 thread (us)",
             {.ours = each(rounds.ours_1, worst_us), .peer = each(rounds.idle_1, worst_us)},
             "idle loop", figure_at_most(2'000, "us")));
  report.rows.push_back(
      row_of("worst claim while growing, 1 thread, against libcuckoo (us)",
             {.ours = each(rounds.ours_1, worst_us), .peer = each(rounds.cuckoo_1, worst_us)},
             "libcuckoo", ratio_at_most(0.02)));
  report.rows.push_back(
      row_of("p99.9 of a claim while growing, 2 threads (ns)",
             {.ours = each(rounds.ours_2, [](const GrowthTails& t) { return t.growing.p999; }),
              .peer = each(rounds.ours_2, [](const GrowthTails& t) { return t.grown.p999; })},
             "Semel, table already grown", ratio_at_most(1.5)));

  if (!rounds.ours_2.empty()) {
    const GrowthTails& last = rounds.ours_2.back();
    report.notes.push_back(
        {"slots: first fill, start of second fill; growth steps in it",
         text("%.0f, %.0f; %.0f", last.slots_first, last.slots_before, last.growth_steps)});
  }
}

void growth_group(Context& context) {
  GrowthRounds rounds;
  const Contestant cuckoo = libcuckoo();
  const double idle_seconds = context.options.records >= 5'000'000 ? 2.0 : 0.3;
  const auto keep = [](auto& list, const auto& figures) {
    if (figures) list.push_back(*figures);
  };
  const Setup alone = context.with_threads(1);
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    keep(rounds.idle_1, context.measured("idle loop", [&] { return idle_tail(1, idle_seconds); }));
    keep(rounds.ours_1, context.measured("Semel, every claim timed, 1 thread",
                                         [&] { return semel_store().growth_tail(alone); }));
    if (cuckoo.available()) {
      keep(rounds.cuckoo_1, context.measured("libcuckoo, every claim timed, 1 thread",
                                             [&] { return cuckoo.growth_tail(alone); }));
    }
    keep(rounds.idle_2, context.measured("idle loops", [&] { return idle_tail(2, idle_seconds); }));
    keep(rounds.ours_2, context.measured("Semel, every claim timed, growing and grown, 2 threads",
                                         [&] { return measure_growth_tails(context.setup); }));
  }
  Report& report = context.report;
  add_growth_rows(report, rounds);
  report.tails.push_back({"idle loop, 1 thread", middle(rounds.idle_1)});
  report.tails.push_back({"Semel, 1 thread", middle(rounds.ours_1)});
  report.tails.push_back({"libcuckoo, 1 thread", middle(rounds.cuckoo_1)});
  report.tails.push_back({"idle loop, 2 threads", middle(rounds.idle_2)});
  std::vector<Tail> grown;
  std::vector<Tail> growing;
  for (const GrowthTails& tails : rounds.ours_2) {
    growing.push_back(tails.growing);
    grown.push_back(tails.grown);
  }
  report.tails.push_back({"Semel, 2 threads", middle(growing)});
  report.tails.push_back({"Semel, 2 threads, already grown", middle(grown)});
  // The other peers carry no goal here: once is enough.
  context.round = context.options.rounds - 1;
  for (const Contestant& peer : inline_peers()) {
    if (!peer.available()) continue;
    const auto tail = context.measured(peer.name + ", every claim timed, 2 threads",
                                       [&] { return peer.growth_tail(context.setup); });
    if (tail) report.tails.push_back({peer.name + ", 2 threads", *tail});
  }
}

// --- the rest ----------------------------------------------------------------------------------

void expiry_group(Context& context) {
  std::vector<ExpiryCost> rounds;
  std::vector<double> idle;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto cost = context.measured("Semel, expiry of every record",
                                       [&] { return measure_expiry(context.setup); });
    if (cost) rounds.push_back(*cost);
    const auto control = context.measured("idle loop", [] { return idle_tail(1, 0.3); });
    if (control) idle.push_back(control->p999);
  }
  const auto of = [&](auto&& value) { return each(rounds, value); };
  Report& report = context.report;
  report.rows.push_back(
      row_of("expiry of all records, CPU of advance (ns a record)",
             {.ours = of([](const ExpiryCost& c) { return c.cpu_ns_per_record; }), .peer = {}}, "",
             figure_at_most(60, "ns")));
  report.rows.push_back(row_of("p99.9 of a claim during expiry (ns)",
                               {.ours = of([](const ExpiryCost& c) { return c.expiring.p999; }),
                                .peer = of([](const ExpiryCost& c) { return c.quiet.p999; })},
                               "Semel, nothing ending", ratio_at_most(1.5)));
  report.notes.push_back({"idle loop beside expiry, p99.9 (ns)", figure(median(idle))});
  report.notes.push_back(
      {"worst claim during expiry, quiet before (us)",
       figure(median(of([](const ExpiryCost& c) { return c.expiring.max / 1e3; }))) + ", " +
           figure(median(of([](const ExpiryCost& c) { return c.quiet.max / 1e3; })))});
  report.notes.push_back({"last end to last record removed (ms)",
                          figure(median(of([](const ExpiryCost& c) { return c.lag_ms; })))});
}

void wheel_group(Context& context) {
  Rounds rates;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto with = context.measured("Semel, W1 with ttl",
                                       [&] { return measure_new_keys(context.setup, true); });
    const auto without = context.measured("Semel, W1 without ttl",
                                          [&] { return measure_new_keys(context.setup, false); });
    // And the other way round, so that a drift of the machine falls on both.
    const auto without_2 = context.measured("Semel, W1 without ttl",
                                            [&] { return measure_new_keys(context.setup, false); });
    const auto with_2 = context.measured("Semel, W1 with ttl",
                                         [&] { return measure_new_keys(context.setup, true); });
    if (!with || !without || !with_2 || !without_2) continue;
    rates.ours.push_back((*with + *with_2) / 2e6);
    rates.peer.push_back((*without + *without_2) / 2e6);
  }
  context.report.rows.push_back(row_of("the wheel: W1 with ttl on every record (M/s)", rates,
                                       "Semel, no ttl", ratio_at_least(0.9)));
}

void claims_group(Context& context) {
  Rounds times;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto claims = context.measured("Semel, claim + complete",
                                         [&] { return measure_claim_cycles(context.setup); });
    const auto store = context.measured("Semel, SET NX + SET",
                                        [&] { return measure_store_cycles(context.setup); });
    if (!claims || !store) continue;
    times.ours.push_back(*claims);
    times.peer.push_back(*store);
  }
  context.report.rows.push_back(row_of("claim + complete of claims (ns a cycle)", times,
                                       "Semel, SET NX + SET", ratio_at_most(1.3)));
}

void hot_key_group(Context& context) {
  Rounds store;
  std::vector<double> claims;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    const auto figures =
        context.measured("Semel, hot key", [&] { return measure_hot_key(context.setup); });
    if (!figures) continue;
    store.ours.push_back(figures->store / 1e6);
    claims.push_back(figures->claims / 1e6);
  }
  context.report.rows.push_back(row_of("hot key: 2 threads claim one key, one grant (M/s)", store,
                                       "", figure_at_least(5, "M/s")));
  context.report.notes.push_back(
      {"hot key of claims, in_flight answers (M/s)", figure(median(claims))});
}

void insight_group(Context& context) {
  context.round = context.options.rounds - 1;
  const auto figures = context.measured("Semel, scan, snapshot, sections",
                                        [&] { return measure_insight(context.setup); });
  if (!figures) return;
  auto& notes = context.report.notes;
  notes.push_back({"scan, 1 thread (M records/s)", figure(figures->scan / 1e6)});
  notes.push_back({"snapshot, 1 thread (M records/s)", figure(figures->snapshot / 1e6)});
  notes.push_back({"snapshot while 1 thread overwrites (M records/s)",
                   figure(figures->snapshot_with_writer / 1e6)});
  notes.push_back(
      {"overwrites of that thread; alone (M/s)",
       figure(figures->writer_beside / 1e6) + "; " + figure(figures->writer_alone / 1e6)});
  notes.push_back({"sections of two keys, 1 thread (M/s)", figure(figures->sections / 1e6)});
  notes.push_back({"engine's own count: records + table + wheel (bytes a record)",
                   text("%.1f + %.1f + %.1f", figures->bytes_records, figures->bytes_table,
                        figures->bytes_wheel)});
  notes.push_back({"load of the table after W1", figure(figures->load)});
}

void strings_group(Context& context) {
  context.round = context.options.rounds - 1;
  Setup setup = context.setup;
  setup.workloads = 2;
  for (const Contestant& map :
       {semel_store(), libcuckoo_strings(), boost_flat_shards_strings(), onetbb_strings(),
        std_shards_strings(), boost_concurrent_strings()}) {
    std::optional<Throughput> figures;
    if (map.available()) {
      figures = context.measured(map.name + ", keys of any length, W1 and W2",
                                 [&] { return map.throughput(setup); });
    }
    context.report.maps_strings.push_back({.name = map.name, .figures = figures});
  }
}

struct Group {
  const char* name;
  void (*run)(Context&);
};
constexpr std::array<Group, 9> groups{{{"throughput", throughput_group},
                                       {"batches", batches_group},
                                       {"growth", growth_group},
                                       {"expiry", expiry_group},
                                       {"wheel", wheel_group},
                                       {"claims", claims_group},
                                       {"hot-key", hot_key_group},
                                       {"insight", insight_group},
                                       {"strings", strings_group}}};

}  // namespace

std::vector<std::string> engine_groups() {
  std::vector<std::string> names;
  for (const Group& group : groups) names.emplace_back(group.name);
  return names;
}

void run_engine_suite(const SuiteOptions& options, Report& report) {
  const std::uint64_t operations = std::max<std::uint64_t>(options.records / 2, 3);
  const ZipfChoices zipf{options.records, operations};
  Context context{
      .options = options,
      .setup = {.records = options.records, .operations = operations, .zipf = zipf.choices()},
      .report = report};
  for (const Group& group : groups) {
    if (options.only.empty() || options.only == group.name) group.run(context);
  }
}

}  // namespace semel::bench
