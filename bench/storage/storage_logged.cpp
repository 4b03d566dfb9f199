// Question: how much of the memory-only rate is left at `logged`, and what is it against Redis?
// Method:   SET NX, and claim + complete, of new keys by two threads, single and in batches; Redis
//           driven by redis-benchmark with a pipeline of 16.
// Compare:  the engine without a storage; Redis for a CPU second of the serving process: all of
//           redis-server without its clients, all of our process with its clients in it, and with
//           the closing of the storage.
// Report:   rows of the four goals; CPU and bytes of each kind of load as notes.
#include <array>

#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_peers.hpp"
#include "bench/storage/storage_work.hpp"

namespace semel::bench {

namespace {

constexpr unsigned redis_pipeline = 16;

struct Variant {
  const char* name;
  bool claims;
  std::size_t batch;
  double at_least;  ///< of the rate without a storage
};
constexpr std::array<Variant, 4> variants{{{"SET NX", false, 1, 0.8},
                                           {"claim + complete", true, 1, 0.55},
                                           {"SET NX, batches of 16", false, 16, 0.8},
                                           {"claim + complete, batches of 16", true, 16, 0.55}}};

struct LoadRounds {
  std::vector<LoadFigures> memory_only;
  std::vector<LoadFigures> logged;
};

Load load_of(const Work& work, const Variant& variant) {
  return {.claims = variant.claims,
          .batch = variant.batch,
          .records = work.loads(),
          .seconds = work.seconds_load};
}

void measure_variant(Work& work, const Variant& variant, LoadRounds& rounds) {
  Load load = load_of(work, variant);
  const auto memory_only = work.measured(std::string{"memory only, "} + variant.name,
                                         [&](const std::string&) { return measure_load(load); });
  load.durability = Durability::logged;
  load.look_back = work.context.round == 0;
  const auto logged =
      work.measured(std::string{"logged, "} + variant.name, [&](const std::string& directory) {
        load.directory = directory;
        return measure_load(load);
      });
  if (!memory_only || !logged) return;
  rounds.memory_only.push_back(*memory_only);
  rounds.logged.push_back(*logged);
}

std::vector<double> rates_of(const std::vector<LoadFigures>& rounds) {
  return each(rounds, [](const LoadFigures& f) { return f.rate / 1e6; });
}
std::string middle_of(const std::vector<LoadFigures>& rounds, double LoadFigures::*figures) {
  return figure(median(each(rounds, [&](const LoadFigures& f) { return f.*figures; })));
}

void add_load_rows(const Work& work, const std::array<LoadRounds, variants.size()>& all) {
  double refusals = 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const LoadRounds& rounds = all[i];
    const std::string name = variants[i].name;
    const Row row = row_of("logged, " + name + ", 2 threads (M/s)",
                           {.ours = rates_of(rounds.logged), .peer = rates_of(rounds.memory_only)},
                           "Semel, memory only", ratio_at_least(variants[i].at_least));
    if (variants[i].batch == 1) {
      work.report().rows.push_back(row);
    } else {
      work.note(name + ": logged; memory only (M/s); ratio",
                figure(row.ours) + "; " + figure(row.peer) + "; " + figure(row.ratio));
    }
    const auto cpu = [&](const LoadFigures& figures) {
      return figures.cpu_ns / (variants[i].claims ? 2 : 1);
    };
    work.note(name + ": CPU, logged; memory only (ns a mutation)",
              figure(median(each(rounds.logged, cpu))) + "; " +
                  figure(median(each(rounds.memory_only, cpu))));
    work.note(name + ": log (bytes a mutation)", middle_of(rounds.logged, &LoadFigures::log_bytes));
    if (!rounds.logged.empty()) {  // the first round alone looks back
      work.note(name + ": drained, disk; tables (bytes a record)",
                figure(rounds.logged[0].disk_bytes) + "; " + figure(rounds.logged[0].table_bytes));
    }
    for (const LoadFigures& figures : rounds.logged) refusals += figures.refusals;
  }
  work.note("logged: calls repeated because they were refused", text("%.0f", refusals));
}

void add_everysec_rows(const Work& work, const std::array<LoadRounds, variants.size()>& all,
                       const std::vector<RedisFigures>& redis) {
  const auto per_cpu = each(redis, [](const RedisFigures& f) { return f.per_cpu_second / 1e6; });
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].claims) continue;
    const auto ours =
        each(all[i].logged, [](const LoadFigures& f) { return f.cpu_ns > 0 ? 1e3 / f.cpu_ns : 0; });
    work.report().rows.push_back(
        row_of(std::string{"logged, "} + variants[i].name + ", for a CPU second (M)",
               {.ours = ours, .peer = per_cpu}, "Redis everysec, pipeline 16", ratio_at_least(5)));
  }
  if (redis.empty()) return;
  work.note("Redis everysec (M/s); its share of a processor",
            figure(median(each(redis, [](const RedisFigures& f) { return f.rate / 1e6; }))) + "; " +
                figure(median(each(redis, [](const RedisFigures& f) { return f.server_share; }))));
}

}  // namespace

void logged_group(Work& work) {
  Context& context = work.context;
  std::array<LoadRounds, variants.size()> all;
  std::vector<LoadFigures> beside;
  std::vector<RedisFigures> redis;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    for (std::size_t i = 0; i < variants.size(); ++i) measure_variant(work, variants[i], all[i]);
    keep(beside,
         work.measured("memory level on a storage, SET NX", [&](const std::string& directory) {
           Load load = load_of(work, variants[0]);
           load.directory = directory;
           return measure_load(load);
         }));
    keep(redis,
         work.measured_redis("Redis, everysec, pipeline 16", [&](const std::string& directory) {
           return measure_redis_load({.directory = directory,
                                      .sync = "everysec",
                                      .clients = 50,
                                      .threads = 2,
                                      .pipeline = redis_pipeline,
                                      .requests = work.loads() * 2 / 5});
         }));
  }
  add_load_rows(work, all);
  add_everysec_rows(work, all, redis);
  work.note("SET NX at memory level on a storage (M/s)", figure(median(rates_of(beside))));
  work.note(
      "the same: CPU (ns a mutation); calls repeated",
      middle_of(beside, &LoadFigures::cpu_ns) + "; " +
          text("%.0f", median(each(beside, [](const LoadFigures& f) { return f.refusals; }))));
}

}  // namespace semel::bench
