// Question: what does a backup of many records cost the claims beside it?
// Method:   one thread makes claims at `logged`, each timed, 9 of 10 on records that live; another
//           makes new records at a steady pace. Backups are made in turns with equal times without
//           one: by links, by copies at 64 MiB a second, by copies without a limit.
// Compare:  the same threads on the same storage, in the time just before each backup.
// Report:   p99.9 and rate of the claims. Each copied backup is verified, restored and opened: what
//           was acknowledged before it began is in it.
#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "base/stopwatch.hpp"
#include "bench/storage/storage_ours.hpp"
#include "bench/storage/storage_place.hpp"
#include "bench/storage/storage_work.hpp"
#include "semel/storage_tools.hpp"

namespace semel::bench {

namespace {

constexpr std::uint64_t first_fresh = std::uint64_t{1} << 40;
constexpr std::uint64_t first_loaded = std::uint64_t{1} << 41;
constexpr double loads_per_second = 100'000;
constexpr std::uint64_t loads_at_once = 64;
constexpr double seconds_least = 3;  // of the claims that are compared
constexpr std::uint64_t sample_step = 97;

struct Way {
  const char* name;
  BackupOptions options;
};
const std::array<Way, 3> ways{
    {{"links", {}},
     {"copies, 64 MiB/s", {.bytes_per_second = std::uint64_t{64} << 20, .copies = true}},
     {"copies, no limit", {.copies = true}}}};

struct BesideFigures {
  Tail without;
  Tail with;
  double rate_without = 0;  // claims a second
  double rate_with = 0;
  double seconds = 0;  // of one backup
  double bytes = 0;
};
using BackupFigures = std::array<BesideFigures, ways.size()>;

struct Phase {
  Histogram claims;
  std::uint64_t count = 0;
};

/// Claims and loads until the end of this; each claim counts for the phase in which it began.
class Traffic {
 public:
  static constexpr std::size_t phase_count = 2 * ways.size() + 1;  // the last: nothing counts

  Traffic(Engine& engine, std::uint64_t living) : engine_(engine), living_(living) {
    claimant_ = std::thread{[this] { claim(); }};
    loader_ = std::thread{[this] { load(); }};
  }
  ~Traffic() { stop(); }
  void stop() {
    if (!claimant_.joinable()) return;
    stop_.store(true, std::memory_order_relaxed);  // mo: relaxed: when it stops is not exact
    claimant_.join();
    loader_.join();
  }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void enter(std::size_t phase) {
    phase_.store(phase, std::memory_order_relaxed);  // mo: relaxed: one claim more or less
  }
  /// Acknowledged by now.
  [[nodiscard]] std::uint64_t granted() const {
    return granted_.load(std::memory_order_acquire);  // mo: acquire: the answer came before
  }
  [[nodiscard]] std::uint64_t loaded() const {
    return loaded_.load(std::memory_order_acquire);  // mo: acquire: as above
  }
  /// After stop().
  [[nodiscard]] const Phase& phase(std::size_t index) const { return phases_[index]; }

 private:
  [[nodiscard]] bool goes_on() const {
    return !stop_.load(std::memory_order_relaxed);  // mo: relaxed: when it stops is not exact
  }
  void claim() {
    pin_to_core(0);
    Store store = engine_.store();
    std::uint64_t granted = 0;
    for (std::uint64_t i = 0; goes_on(); ++i) {
      const bool is_new = base::mix_bits(i) % 10 == 0;
      const std::uint64_t index = is_new ? first_fresh + granted : uniform(i, 3, living_);
      // mo: relaxed: see enter()
      Phase& phase = phases_[phase_.load(std::memory_order_relaxed)];
      const std::uint64_t started = ticks_before();
      claim_one(store, index, is_new);
      phase.claims.add(ticks_after() - started);
      ++phase.count;
      if (is_new) granted_.store(++granted, std::memory_order_release);  // mo: release: granted()
    }
  }
  static void claim_one(Store& store, std::uint64_t index, bool is_new) {
    const Key key = key_of(index);
    const std::uint64_t value = value_of(index);
    until_taken([&] {
      const auto result = store.set(
          bytes_of(key), bytes_of(value),
          {.condition = Condition::if_absent, .expiry = Expiry::in(long_ttl), .get = true});
      if (!result.ok() && result.error().code == ErrorCode::refused) return false;
      require(result.has_value(), "a claim beside a backup: an error");
      require(result->stored == is_new, "a claim beside a backup: not the right answer");
      return true;
    });
  }
  void load() {
    pin_to_core(1);
    Store store = engine_.store();
    const double ticks_per_load = 1e9 * ticks_per_ns() / loads_per_second;
    const std::uint64_t begin = __rdtsc();
    std::uint64_t made = 0;
    while (goes_on()) {
      if (static_cast<double>(made) * ticks_per_load > static_cast<double>(__rdtsc() - begin)) {
        pause_ns(50'000);
        continue;
      }
      for (std::uint64_t i = 0; i < loads_at_once; ++i, ++made) {
        until_taken([&] { return set_new(store, first_loaded + made); });
      }
      loaded_.store(made, std::memory_order_release);  // mo: release: loaded()
    }
  }

  Engine& engine_;
  const std::uint64_t living_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> phase_{phase_count - 1};
  std::atomic<std::uint64_t> granted_{0};
  std::atomic<std::uint64_t> loaded_{0};
  std::array<Phase, phase_count> phases_{};
  std::thread claimant_;
  std::thread loader_;
};

/// Verified, restored, opened, and asked for a sample of what was acknowledged.
void check_restored(const std::string& backup, std::uint64_t living, std::uint64_t granted,
                    std::uint64_t loaded) {
  const auto check = verify_storage(backup);
  require(check.has_value() && check->is_sound(), "the backup is not sound");
  const std::string restored = backup + ".restored";
  require(std::filesystem::create_directory(restored), "no directory for the restored storage");
  // Where a Ground looks for it.
  require(restore_backup(backup, restored + "/storage").has_value(),
          "the backup cannot be restored");
  Ground ground{restored, Durability::logged, 2 * (living + granted + loaded)};
  static_cast<void>(ground.recover());
  require(ground.engine().size(0) >= living + granted + loaded,
          "the backup has fewer records than were acknowledged before it began");
  Store store = ground.engine().store();
  const auto ask = [&](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = count % sample_step; i < count; i += sample_step) {
      const auto value = store.get(bytes_of(key_of(first + i)));
      require(value.has_value() && *value && number_of(**value) == value_of(first + i),
              "a record that was acknowledged before the backup began is not in it");
    }
  };
  ask(0, living);
  ask(first_fresh, granted);
  ask(first_loaded, loaded);
}

/// Backups in a row, for seconds_least at least; the first stays.
void back_up(Storage& storage, const std::string& to, const Way& way, BesideFigures& figures,
             double& passed) {
  const base::Stopwatch watch;
  for (int n = 0; n == 0 || watch.seconds() < seconds_least; ++n) {
    const std::string name = to + "-" + std::to_string(n);
    const base::Stopwatch one;
    const auto made = storage.backup(name, way.options);
    require(made.has_value(), "a backup failed");
    if (n == 0) {
      figures.seconds = one.seconds();
      figures.bytes = static_cast<double>(made->bytes);
    }
  }
  passed = watch.seconds();
}

BackupFigures measure_backups(const std::string& directory, std::uint64_t living) {
  BackupFigures all;
  const std::string to = directory + "/to-";
  std::uint64_t granted = 0;
  std::uint64_t loaded = 0;
  {
    Ground ground{directory, Durability::logged, 2 * living};
    Store store = ground.engine().store();
    for (std::uint64_t i = 0; i < living; ++i) {
      until_taken([&] { return set_new(store, i); });
    }
    std::array<double, Traffic::phase_count> passed{};
    Traffic traffic{ground.engine(), living};
    pause_ns(1'000'000'000);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t phase = 2 * i;
      const base::Stopwatch watch;
      traffic.enter(phase);
      while (watch.seconds() < 2 * seconds_least) pause_ns(1'000'000);
      passed[phase] = watch.seconds();
      if (i == 1) {
        granted = traffic.granted();
        loaded = traffic.loaded();
      }
      traffic.enter(phase + 1);
      back_up(ground.storage(), to + std::to_string(i), ways[i], all[i], passed[phase + 1]);
      traffic.enter(Traffic::phase_count - 1);
    }
    traffic.stop();
    for (std::size_t i = 0; i < ways.size(); ++i) {
      all[i].without = traffic.phase(2 * i).claims.tail(ticks_per_ns());
      all[i].with = traffic.phase(2 * i + 1).claims.tail(ticks_per_ns());
      all[i].rate_without = static_cast<double>(traffic.phase(2 * i).count) / passed[2 * i];
      all[i].rate_with = static_cast<double>(traffic.phase(2 * i + 1).count) / passed[2 * i + 1];
    }
  }
  check_restored(to + "1-0", living, granted, loaded);
  return all;
}

}  // namespace

void backup_group(Work& work) {
  Context& context = work.context;
  const std::uint64_t records = context.options.records;
  std::vector<BackupFigures> rounds;
  for (context.round = 0; context.round < context.options.rounds; ++context.round) {
    keep(rounds, work.measured("claims beside backups", [&](const std::string& directory) {
      return measure_backups(directory, records);
    }));
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto of = [&](auto&& figure) {
      return each(rounds, [&](const BackupFigures& all) { return figure(all[i]); });
    };
    const std::string name = std::string{"backup by "} + ways[i].name;
    work.report().rows.push_back(
        row_of(name + ": p99.9 of a logged claim beside it (ns)",
               {.ours = of([](const BesideFigures& f) { return f.with.p999; }),
                .peer = of([](const BesideFigures& f) { return f.without.p999; })},
               "Semel, no backup", ratio_at_most(2)));
    work.report().rows.push_back(
        row_of(name + ": claims beside it (k/s)",
               {.ours = of([](const BesideFigures& f) { return f.rate_with / 1e3; }),
                .peer = of([](const BesideFigures& f) { return f.rate_without / 1e3; })},
               "Semel, no backup", ratio_at_least(0.9)));
    work.note(name + ": MB; seconds",
              figure(median(of([](const BesideFigures& f) { return f.bytes / 1e6; }))) + "; " +
                  figure(median(of([](const BesideFigures& f) { return f.seconds; }))));
    work.note(name + ": worst claim with; without (ms)",
              figure(median(of([](const BesideFigures& f) { return f.with.max / 1e6; }))) + "; " +
                  figure(median(of([](const BesideFigures& f) { return f.without.max / 1e6; }))));
  }
}

}  // namespace semel::bench
