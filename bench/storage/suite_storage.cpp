// Question: does durability reach its goals, and what does it cost?
// Method:   each measurement in a process and a directory of its own, ours and the peers' taking
//           turns in rounds; every answer is checked, and what was acknowledged is recovered.
// Compare:  the engine without a storage, Redis 7.0 over a Unix socket, a loop that appends and
//           syncs; ratios within one round.
// Report:   medians over the rounds, a row for each goal.
#include "bench/storage/suite_storage.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_peers.hpp"
#include "bench/storage/storage_place.hpp"
#include "bench/storage/storage_work.hpp"

namespace semel::bench {

namespace {

constexpr unsigned callers = 64;
constexpr double bytes_free_per_record = 500;  // what a run needs of the disk, with room to spare

// --- synced -------------------------------------------------------------------------------------

/// How 64 callers wait for `synced`: each form is measured in every round and has rows of its own.
struct Form {
  const char* name;
  SyncedFigures (*measure)(const SyncedSetup&);
  double at_least;  ///< of the bare loop
};
constexpr std::array<Form, 2> forms{{{"64 threads", measure_synced_threads, 0.7},
                                     {"64 callbacks", measure_synced_callbacks, 0.95}}};

struct SyncedRounds {
  std::vector<SyncedFigures> ours;
  std::vector<double> bare;  // records a second
};

void add_synced_rows(const Work& work, const std::array<SyncedRounds, forms.size()>& all,
                     const std::vector<RedisFigures>& redis) {
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const std::string name = std::string{"synced, "} + forms[i].name;
    const auto ours = each(all[i].ours, [](const SyncedFigures& f) { return f.rate / 1e3; });
    work.report().rows.push_back(
        row_of(name + " (k/s)",
               {.ours = ours, .peer = each(all[i].bare, [](double rate) { return rate / 1e3; })},
               "append + fdatasync of 64", ratio_at_least(forms[i].at_least)));
    work.report().rows.push_back(row_of(
        name + ", against Redis (k/s)",
        {.ours = ours, .peer = each(redis, [](const RedisFigures& f) { return f.rate / 1e3; })},
        "Redis always, 64 connections", ratio_at_least(3)));
    work.note(
        name + ": answers a sync; log (bytes a mutation)",
        figure(median(each(all[i].ours, [](const SyncedFigures& f) { return f.calls_per_sync; }))) +
            "; " +
            figure(median(each(all[i].ours, [](const SyncedFigures& f) { return f.log_bytes; }))));
  }
}

void synced_group(Work& work) {
  Context& context = work.context;
  std::array<SyncedRounds, forms.size()> all;
  std::vector<RedisFigures> redis;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    double bare_rate = 0;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const auto ours =
          work.measured(std::string{"synced, "} + forms[i].name, [&](const std::string& directory) {
            return forms[i].measure(
                {.directory = directory, .callers = callers, .seconds = work.seconds_synced});
          });
      if (!ours) continue;
      const auto bytes = static_cast<std::size_t>(ours->log_bytes * callers);
      const auto bare =
          work.measured("bare loop, append + fdatasync", [&](const std::string& directory) {
            return measure_bare_loop(directory, bytes, work.seconds_synced) * callers;
          });
      if (!bare) continue;
      all[i].ours.push_back(*ours);
      all[i].bare.push_back(*bare);
      bare_rate = *bare;
    }
    // As much as the disk could take in the time; Redis may need a few times that.
    const double requests = std::clamp(bare_rate * work.seconds_synced, 2'000.0, 2e6);
    keep(redis,
         work.measured_redis("Redis, always, 64 connections", [&](const std::string& directory) {
           return measure_redis_load({.directory = directory,
                                      .sync = "always",
                                      .clients = callers,
                                      .threads = 1,
                                      .pipeline = 1,
                                      .requests = static_cast<std::uint64_t>(requests)});
         }));
  }
  add_synced_rows(work, all, redis);
}

// --- recovery -----------------------------------------------------------------------------------

void recovery_group(Work& work) {
  Context& context = work.context;
  const std::uint64_t records = context.options.records;
  const ScratchDirectory ours{work.root};
  const ScratchDirectory snapshot{work.root};
  context.round = 0;
  // Made once; the rounds read them.
  const auto filled = context.measured("fill a storage for recovery", [&] {
    require(!ours.path().empty(), "there is no directory to measure in");
    const LoadFigures made =
        measure_load({.directory = ours.path(), .batch = 16, .records = records, .seconds = 300});
    require(made.made == static_cast<double>(records), "the storage was not filled in time");
    return disk_use(ours.path()).all;
  });
  const bool redis = work.redis && !snapshot.path().empty();
  const auto saved = redis
                         ? context.measured("make a snapshot of Redis",
                                            [&] { return make_snapshot(snapshot.path(), records); })
                         : std::optional<double>{};
  Rounds against_redis;
  for (context.round = 0; filled && context.round < context.options.rounds; ++context.round) {
    const auto rate =
        context.measured("recovery", [&] { return measure_recovery(ours.path(), records); });
    if (rate) against_redis.ours.push_back(*rate / 1e6);
    if (!saved) {
      if (!work.redis) context.say("SKIPPED, redis-server is not installed: Redis, RDB load");
      work.skipped += work.redis ? 0 : 1;
      continue;
    }
    const auto peer = context.measured(
        "Redis, RDB load", [&] { return measure_snapshot_load(snapshot.path(), records); });
    if (peer) against_redis.peer.push_back(*peer / 1e6);
  }
  work.report().rows.push_back(row_of("recovery, 32-byte keys, 2 threads (M records/s)",
                                      {.ours = against_redis.ours, .peer = {}}, "",
                                      figure_at_least(3, "M/s")));
  work.report().rows.push_back(row_of("recovery against the load of a snapshot (M records/s)",
                                      against_redis, "Redis, RDB load", ratio_at_least(3)));
  if (filled)
    work.note("files recovered from (bytes a record)",
              figure(*filled / static_cast<double>(records)));
  if (saved)
    work.note("Redis' snapshot (bytes a record)", figure(*saved / static_cast<double>(records)));
}

// --- tails --------------------------------------------------------------------------------------

void tails_group(Work& work) {
  Context& context = work.context;
  std::vector<Tail> idle;  // what the machine alone costs
  std::vector<ClaimTails> with;
  std::vector<ClaimTails> without;
  TailSetup setup{.directory = {},
                  .living = std::min<std::uint64_t>(context.options.records / 10, 1'000'000),
                  .seconds = work.seconds_tail};
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    // As long as the claims: the worst of a shorter time would be smaller by itself.
    keep(idle, context.measured("idle loops", [&] { return idle_tail(2, work.seconds_tail); }));
    const auto quiet = context.measured("claims at memory level, no storage",
                                        [&] { return measure_claim_tails(setup); });
    const auto busy = work.measured("claims at memory level beside a loaded storage",
                                    [&](const std::string& directory) {
                                      TailSetup stored = setup;
                                      stored.directory = directory;
                                      return measure_claim_tails(stored);
                                    });
    if (!quiet || !busy) continue;
    without.push_back(*quiet);
    with.push_back(*busy);
  }
  const auto p999 = [](const ClaimTails& tails) { return tails.all.p999; };
  Report& report = work.report();
  report.rows.push_back(row_of("p99.9 of a memory-level claim beside a loaded storage (ns)",
                               {.ours = each(with, p999), .peer = each(without, p999)},
                               "Semel, no storage", ratio_at_most(3)));
  // All rounds are one time: the median of their worst claims would hide the worst.
  const auto worst_ms = [](const std::vector<Tail>& tails) {
    double worst = 0;
    for (const Tail& tail : tails) worst = std::max(worst, tail.max);
    return worst / 1e6;
  };
  std::vector<Tail> claims;
  for (const ClaimTails& figures : with) claims.push_back(figures.all);
  if (!claims.empty() && !idle.empty()) {
    report.rows.push_back(
        row_of("worst of all claims beside a loaded storage, above the worst of idle loops (ms)",
               {.ours = {std::max(0.0, worst_ms(claims) - worst_ms(idle))}, .peer = {}}, "",
               figure_at_most(5, "ms")));
    std::string each_round;
    for (const Tail& tail : claims) each_round += text("%.1f ", tail.max / 1e6);
    work.note("worst claims of the rounds; worst of idle loops (ms)",
              each_round + "; " + figure(worst_ms(idle)));
  }
  const auto add_tail = [&](const char* name, const std::vector<ClaimTails>& rounds,
                            Tail ClaimTails::*tail) {
    std::vector<Tail> tails;
    for (const ClaimTails& figures : rounds) tails.push_back(figures.*tail);
    report.tails.push_back({name, middle(tails)});
  };
  report.tails.push_back({"idle loop, 2 threads", middle(idle)});
  add_tail("memory level, no storage", without, &ClaimTails::all);
  add_tail("memory level, loaded storage", with, &ClaimTails::all);
  add_tail("memory level, no storage, new keys", without, &ClaimTails::fresh);
  add_tail("memory level, loaded storage, new keys", with, &ClaimTails::fresh);
  const auto of = [](const std::vector<ClaimTails>& rounds, double ClaimTails::*figures) {
    return median(each(rounds, [&](const ClaimTails& tails) { return tails.*figures; }));
  };
  work.note("load beside claims: with storage; without (k records/s)",
            figure(of(with, &ClaimTails::loaded) / 1e3) + "; " +
                figure(of(without, &ClaimTails::loaded) / 1e3));
  work.note("claims repeated because refused; tables at the end (MB)",
            figure(of(with, &ClaimTails::refusals)) + "; " +
                figure(of(with, &ClaimTails::disk_bytes) / 1e6));
}

struct Group {
  const char* name;
  void (*run)(Work&);
  bool by_default = true;  ///< else by its name only: it takes long, or answers a design's question
};
constexpr std::array<Group, 7> groups{{{"logged", logged_group},
                                       {"bytes", bytes_group},
                                       {"synced", synced_group},
                                       {"recovery", recovery_group},
                                       {"tails", tails_group},
                                       {"backup", backup_group, false},
                                       {"files", files_group, false}}};

/// Empty: it can be measured there. Else a sentence.
std::string why_not(const std::string& directory, const std::string& file_system,
                    std::uint64_t records) {
  if (file_system.empty()) return directory + ": there is no such directory";
  if (is_in_memory(file_system)) {
    return directory + " is " + file_system + ", which is memory; --dir must be on a disk";
  }
  const double wanted = static_cast<double>(records) * bytes_free_per_record;
  if (bytes_free(directory) < wanted) {
    return directory +
           text(" has %.0f MB free; %.0f MB are needed", bytes_free(directory) / 1e6, wanted / 1e6);
  }
  return {};
}

}  // namespace

std::vector<std::string> storage_groups() {
  std::vector<std::string> names;
  for (const Group& group : groups) names.emplace_back(group.name);
  return names;
}

bool run_storage_suite(const SuiteOptions& options, Report& report) {
  const std::string file_system = file_system_of(options.directory);
  if (const std::string why = why_not(options.directory, file_system, options.records);
      !why.empty()) {
    std::fprintf(stderr, "semel_bench: %s\n", why.c_str());
    return false;
  }
  const ScratchDirectory root{options.directory};
  if (root.path().empty()) return false;
  std::fprintf(stderr, "semel_bench: below %s, which is %s\n", options.directory.c_str(),
               file_system.c_str());
  Context context{.options = options,
                  .setup = {.records = options.records, .operations = options.records / 2},
                  .report = report};
  Work work{.context = context,
            .root = root.path(),
            .redis = redis_available(),
            .seconds_load = options.quick ? 0.5 : 4,
            .seconds_synced = options.quick ? 0.5 : 2,
            .seconds_tail = options.quick ? 1.0 : 6.0};
  report.notes.push_back({"file system", file_system});
  report.notes.push_back({"Redis", work.redis ? redis_version() : "not installed"});
  for (const Group& group : groups) {
    if (options.only.empty() ? group.by_default : options.only == group.name) group.run(work);
  }
  if (work.skipped > 0) {
    work.note("measurements SKIPPED, redis-server is not installed", text("%u", work.skipped));
  }
  return true;
}

}  // namespace semel::bench
