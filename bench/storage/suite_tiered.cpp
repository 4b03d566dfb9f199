// Question: how fast are new keys claimed when most of the window is on disk, and what does a key
//           cost there?
// Method:   2 threads set keys of 16 random bytes, if absent, with a ttl of a day, one call a key;
//           the engine has a limit of 21.5 bytes a key and spills by its own thread. The cores are
//           shared by all three. A call that is refused for memory waits 1 ms and asks again. Then
//           a million keys are asked for once more: half of them are old, half are new.
// Compare:  nothing; the goals are absolute.
// Report:   claims/s over the whole fill, and in its slowest tenth; lookups on disk for keys that
//           were new; bytes of all files; the answers, all of which must be right.
#include "bench/storage/suite_tiered.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/harness/harness.hpp"
#include "bench/harness/keys.hpp"
#include "bench/harness/suite_context.hpp"
#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"

namespace semel::bench {

namespace {

constexpr unsigned threads = 2;
constexpr unsigned tenths = 10;
Bytes short_key(const Key& key) noexcept {
  return {reinterpret_cast<const char*>(key.data()), 16};
}

struct Figures {
  double seconds = 0;
  double slowest = 0;  // claims/s of the slowest tenth
  std::uint64_t refused = 0;
  std::uint64_t lookups = 0;
  std::uint64_t parts = 0;
  std::uint64_t generations = 0;
  std::uint64_t spills = 0;
  double bytes_disk = 0;
  double bytes_used_peak = 0;
  double bytes_filters = 0;
  double bytes_cold = 0;
  double resident_peak = 0;
  double old_us = 0;  // of one repeat, on the sample
  double new_us = 0;
  std::uint64_t sample_lookups = 0;  // on disk, for the new half of the sample
};

/// A directory that goes with the run.
class Directory {
 public:
  Directory() {
    std::string name = std::filesystem::temp_directory_path() / "semel_bench_XXXXXX";
    require(mkdtemp(name.data()) != nullptr, "no directory for the cold store");
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] double bytes() const {
    double total = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator{path_}) {
      if (file.is_regular_file()) total += static_cast<double>(file.file_size());
    }
    return total;
  }

 private:
  std::string path_;
};

class Tiered {
 public:
  explicit Tiered(std::uint64_t records) : records_(records) {
    const auto wanted = static_cast<std::size_t>(static_cast<double>(records) * 21.4748);
    const std::size_t memory = std::max(wanted, std::size_t{16} << 20);
    const std::size_t cache = std::min(memory / 16, std::size_t{8} << 20);
    auto cold =
        open_cold_directory({.directory = directory_.path(), .cache_bytes = cache}, bench_clock());
    if (!cold) fail(cold.error().message().c_str());
    cold_ = *std::move(cold);
    auto engine = Engine::open({.clock = &bench_clock(),
                                .cold = cold_.get(),
                                .memory_bytes = memory,
                                .background = Millis{10}});
    if (!engine) fail(engine.error().message().c_str());
    engine_ = *std::move(engine);
  }

  void fill(Figures& figures) {
    const std::uint64_t begin = ticks_after();
    std::vector<std::thread> running;
    for (unsigned thread = 0; thread < threads; ++thread) {
      running.emplace_back([this, thread] { fill_share(thread); });
    }
    watch(figures, begin);
    for (std::thread& thread : running) thread.join();
    figures.seconds = static_cast<double>(ticks_after() - begin) / ticks_per_ns() * 1e-9;
    figures.refused = refused_.load(std::memory_order_relaxed);  // mo: relaxed: threads have ended
    figures.lookups = cold_->stats().lookups;
    figures.spills = engine_->stats().spills;
  }

  /// Every key but the last ones leaves, so that the figures on disk are of whole generations.
  void finish(Figures& figures) {
    const auto done = engine_->host().spill();
    if (!done) fail(done.error().message().c_str());
    const ColdStats stats = cold_->stats();
    require(stats.records >= records_ / 2, "half of the records are not on disk");
    figures.bytes_disk = directory_.bytes() / static_cast<double>(stats.records);
    figures.bytes_filters = static_cast<double>(stats.filter_bytes);
    figures.bytes_cold = static_cast<double>(stats.memory_bytes);
    figures.parts = stats.parts;
    figures.generations = stats.generations;
    figures.resident_peak = memory_of_process().peak;
  }

  void sample(Figures& figures) {
    const std::uint64_t half = std::min<std::uint64_t>(500'000, records_ / 4);
    StoreOutcome outcome;
    const std::uint64_t begin = ticks_after();
    for (std::uint64_t i = 0; i < half; ++i) {
      claim(uniform(i, 7, records_), outcome);
      require(outcome.error == ErrorCode::ok && outcome.found && !outcome.applied,
              "an old key was taken for a new one");
    }
    const std::uint64_t middle = ticks_after();
    const std::uint64_t before = cold_->stats().lookups;
    for (std::uint64_t i = 0; i < half; ++i) {
      claim_new(records_ + i, outcome);
    }
    const std::uint64_t end = ticks_after();
    const double each = 1e-3 / ticks_per_ns() / static_cast<double>(half);
    figures.old_us = static_cast<double>(middle - begin) * each;
    figures.new_us = static_cast<double>(end - middle) * each;
    figures.sample_lookups = (cold_->stats().lookups - before) * 1'000'000 / half;
  }

 private:
  void claim(std::uint64_t index, StoreOutcome& outcome) {
    const Key key = key_of(index);
    StoreOp op;
    op.verb = Verb::set;
    op.condition = Condition::if_absent;
    op.expiry = Expiry::in(Millis{86'400'000});
    op.key = short_key(key);
    engine_->host().apply(op, outcome);
  }

  /// Waits where memory is full, for a spill to make room.
  void claim_new(std::uint64_t index, StoreOutcome& outcome) {
    claim(index, outcome);
    while (outcome.error == ErrorCode::memory_full) {
      refused_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
      require(engine_->stats().spills_failed < 10, "no memory, and spills fail");
      pause_ns(1'000'000);
      claim(index, outcome);
    }
    require(outcome.error == ErrorCode::ok, "a claim of a new key failed");
    require(outcome.applied && !outcome.found, "a new key was taken for an old one");
  }

  void fill_share(unsigned thread) {
    const std::uint64_t begin = records_ / threads * thread;
    const std::uint64_t end = thread + 1 == threads ? records_ : begin + records_ / threads;
    StoreOutcome outcome;
    for (std::uint64_t i = begin; i < end; ++i) {
      claim_new(i, outcome);
      if ((i & 1023) == 1023) done_.fetch_add(1024, std::memory_order_relaxed);  // mo: a count
    }
    done_.fetch_add((end & 1023) + 1024, std::memory_order_relaxed);  // mo: relaxed: a count
  }

  /// Follows the fill: the rate of each tenth, the most memory used.
  void watch(Figures& figures, std::uint64_t begin) {
    std::uint64_t last_time = begin;
    std::uint64_t last_done = 0;
    for (unsigned tenth = 1; tenth <= tenths;) {
      pause_ns(20'000'000);
      const Stats stats = engine_->stats();
      figures.bytes_used_peak =
          std::max(figures.bytes_used_peak, static_cast<double>(stats.bytes_used));
      const std::uint64_t done = done_.load(std::memory_order_relaxed);  // mo: relaxed: a count
      if (done < records_ / tenths * tenth) continue;
      const std::uint64_t now = ticks_after();
      const double rate = static_cast<double>(done - last_done) * ticks_per_ns() * 1e9 /
                          static_cast<double>(now - last_time);
      const auto mega = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
      const ColdStats cold = cold_->stats();
      std::fprintf(stderr,
                   "  tenth %u: %.0f claims/s; %.0f MB used: records %.0f, table %.0f, wheel %.0f,"
                   " cold %.0f; %llu generations, %llu lookups on disk\n",
                   tenth, rate, mega(stats.bytes_used), mega(stats.bytes_records),
                   mega(stats.bytes_table), mega(stats.bytes_wheel), mega(cold.memory_bytes),
                   static_cast<unsigned long long>(cold.generations),
                   static_cast<unsigned long long>(cold.lookups));
      figures.slowest = figures.slowest == 0 ? rate : std::min(figures.slowest, rate);
      last_time = now;
      last_done = done;
      ++tenth;
    }
  }

  const std::uint64_t records_;
  Directory directory_;
  std::unique_ptr<ColdStore> cold_;
  std::unique_ptr<Engine> engine_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> refused_{0};
};

Figures measure(std::uint64_t records) {
  Figures figures;
  Tiered tiered{records};
  tiered.fill(figures);
  tiered.finish(figures);
  tiered.sample(figures);
  return figures;
}

}  // namespace

void run_tiered_suite(const SuiteOptions& options, Report& report) {
  const auto figures = in_child([&] { return measure(options.records); });
  if (!figures) {
    report.wrong = true;
    return;
  }
  const auto records = static_cast<double>(options.records);
  const auto row = [&](const char* name, double value, Goal goal) {
    report.rows.push_back(row_of(name, {.ours = {value}, .peer = {}}, "", std::move(goal)));
  };
  row("new keys claimed, 2 threads (k/s)", records / figures->seconds / 1e3,
      figure_at_least(300, "k/s"));
  row("disk lookups for new keys, whole fill (%)",
      100 * static_cast<double>(figures->lookups) / records, figure_at_most(1, "%"));
  row("disk lookups for new keys, full window (%)",
      static_cast<double>(figures->sample_lookups) / 1e4, figure_at_most(1, "%"));
  row("disk, all files (bytes/key)", figures->bytes_disk, figure_at_most(25, "B"));
  auto& notes = report.notes;
  notes.push_back({"slowest tenth of the fill (k/s)", figure(figures->slowest / 1e3)});
  notes.push_back({"memory used at most; filters; all of the cold store (MB)",
                   text("%.0f; %.0f; %.0f", figures->bytes_used_peak / 1e6,
                        figures->bytes_filters / 1e6, figures->bytes_cold / 1e6)});
  notes.push_back({"resident at most (MB)", figure(figures->resident_peak / 1e6)});
  notes.push_back({"generations; parts; spills",
                   text("%llu; %llu; %llu", static_cast<unsigned long long>(figures->generations),
                        static_cast<unsigned long long>(figures->parts),
                        static_cast<unsigned long long>(figures->spills))});
  notes.push_back({"calls refused for memory, and repeated",
                   text("%llu", static_cast<unsigned long long>(figures->refused))});
  notes.push_back({"sample, 1 thread: old key; new key (us)",
                   text("%.2f; %.2f", figures->old_us, figures->new_us)});
}

}  // namespace semel::bench
