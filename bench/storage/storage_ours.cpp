// Question: what do 64 callers of `synced` get, and how long is the way back?
// Method:   a thread for each caller, each asking again when it has its answer; and an open,
//           recover of a directory that was filled before. What was acknowledged is looked for.
// Compare:  a bare loop that appends and syncs the same bytes, and Redis, in the same round.
// Report:   answers a second; records a second.
#include "bench/storage/storage_ours.hpp"

#include <atomic>
#include <ctime>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

namespace semel::bench {

double process_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

Ground::Ground(const std::string& directory, Durability durability, std::uint64_t records) {
  Version first_version = 1;
  if (!directory.empty()) {
    auto storage = Storage::open({.directory = directory + "/storage"}, bench_clock());
    if (!storage) fail(storage.error().message().c_str());
    storage_ = *std::move(storage);
    first_version = storage_->first_version();
  }
  // A limit, not a reservation of memory: generous, so that no figure is of an engine that is full.
  const std::size_t wanted = std::size_t{records} * 512 + (std::size_t{512} << 20);
  auto engine = Engine::open({.clock = &bench_clock(),
                              .journal = storage_.get(),
                              .durability = durability,
                              .memory_bytes = std::min(wanted, limits::memory_bytes_max),
                              .background = Millis{1},
                              .first_version = first_version});
  if (!engine) fail(engine.error().message().c_str());
  engine_ = *std::move(engine);
}

RecoveryReport Ground::recover() {
  const auto report = storage_->recover(*engine_);
  if (!report) fail(report.error().message().c_str());
  return *report;
}

double Ground::close() {
  engine_.reset();
  const double begin = process_cpu_ns();
  storage_.reset();
  return process_cpu_ns() - begin;
}

bool set_new(Store& store, std::uint64_t index, Bytes bytes) {
  const auto result =
      store.set(bytes_of(key_of(index)), bytes,
                {.condition = Condition::if_absent, .expiry = Expiry::in(long_ttl), .get = true});
  if (!result.ok() && result.error().code == ErrorCode::refused) return false;
  if (!result.ok()) fail(result.error().message().c_str());
  require(result->stored && !result->previous, "a new key was not granted");
  return true;
}

namespace {

constexpr std::uint64_t synced_room = 4'000'000;

/// Keys of one caller: far from those of all others.
std::uint64_t index_of(unsigned caller, std::uint64_t call) {
  return (std::uint64_t{caller} << 40) | call;
}

/// Runs `ask(caller, call)` on a thread for each caller until the time is over; returns the answers
/// of each, and the seconds from the first question to the last answer.
template <class Ask>
double run_callers(const SyncedSetup& setup, std::vector<std::uint64_t>& answers, Ask&& ask) {
  const auto ticks = static_cast<std::uint64_t>(setup.seconds * 1e9 * ticks_per_ns());
  std::latch ready{setup.callers + 1};
  std::vector<std::uint64_t> ends(setup.callers);
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> begin{0};
  for (unsigned caller = 0; caller < setup.callers; ++caller) {
    threads.emplace_back([&, caller] {
      ready.arrive_and_wait();
      std::uint64_t call = 0;
      do {
        std::uint64_t none = 0;
        // mo: relaxed: the first thread that runs sets it; it is a time, not an order.
        begin.compare_exchange_strong(none, __rdtsc(), std::memory_order_relaxed);
        ask(caller, call++);
        ends[caller] = __rdtsc();
        // mo: relaxed: set above by this thread or by another one.
      } while (ends[caller] - begin.load(std::memory_order_relaxed) < ticks);
      answers[caller] = call;
    });
  }
  ready.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  // mo: relaxed: the threads have been joined.
  const std::uint64_t first = begin.load(std::memory_order_relaxed);
  return static_cast<double>(*std::max_element(ends.begin(), ends.end()) - first) / ticks_per_ns() *
         1e-9;
}

SyncedFigures figures_of(Ground& ground, const std::vector<std::uint64_t>& answers,
                         double seconds) {
  const StorageStats stats = ground.storage().stats();
  const auto all =
      static_cast<double>(std::accumulate(answers.begin(), answers.end(), std::uint64_t{0}));
  require(stats.bytes > 0 && stats.syncs > 0, "nothing was synced, yet callers had answers");
  static_cast<void>(ground.close());
  return {.rate = all / seconds,
          .log_bytes = static_cast<double>(stats.bytes) / all,
          .calls_per_sync = all / static_cast<double>(stats.syncs)};
}

void check_synced(const SyncedSetup& setup, const std::vector<std::uint64_t>& answers) {
  Ground again{setup.directory, Durability::memory, synced_room};
  static_cast<void>(again.recover());
  require(
      again.engine().size(0) == std::accumulate(answers.begin(), answers.end(), std::uint64_t{0}),
      "recovery brought back another number of records than were acknowledged");
  Store store = again.engine().store();
  for (unsigned caller = 0; caller < setup.callers; ++caller) {
    const std::uint64_t last = index_of(caller, answers[caller] - 1);
    const auto found = store.get(bytes_of(key_of(last)));
    require(found.ok() && *found && number_of(**found) == value_of(last),
            "the last acknowledged record of a caller did not come back");
  }
}

/// One of many callers that share the storage's thread: asks again when it has its answer.
struct Caller {
  Engine* engine;
  unsigned number;
  std::uint64_t end_ticks;
  std::latch* done;
  std::uint64_t answers = 0;

  void ask() {
    Store store = engine->store();
    until_taken([&] { return set_new(store, index_of(number, answers)); });
    engine->confirm_async(Durability::synced, [this](const Status& status) {
      require(status.has_value(), "a callback received a failure");
      ++answers;
      if (__rdtsc() < end_ticks) return ask();
      done->count_down();
    });
  }
};

}  // namespace

SyncedFigures measure_synced_threads(const SyncedSetup& setup) {
  std::vector<std::uint64_t> answers(setup.callers);
  SyncedFigures figures;
  {
    Ground ground{setup.directory, Durability::synced, synced_room};
    const double seconds = run_callers(setup, answers, [&](unsigned caller, std::uint64_t call) {
      Store store = ground.engine().store();
      until_taken([&] { return set_new(store, index_of(caller, call)); });
    });
    figures = figures_of(ground, answers, seconds);
  }
  check_synced(setup, answers);
  return figures;
}

SyncedFigures measure_synced_callbacks(const SyncedSetup& setup) {
  std::vector<std::uint64_t> answers(setup.callers);
  SyncedFigures figures;
  {
    Ground ground{setup.directory, Durability::memory, synced_room};
    std::latch done{setup.callers};
    const std::uint64_t begin = __rdtsc();
    const auto ticks = static_cast<std::uint64_t>(setup.seconds * 1e9 * ticks_per_ns());
    std::vector<Caller> callers;
    for (unsigned number = 0; number < setup.callers; ++number) {
      callers.push_back({&ground.engine(), number, begin + ticks, &done});
    }
    for (Caller& caller : callers) caller.ask();
    done.wait();
    const double seconds = static_cast<double>(__rdtsc() - begin) / ticks_per_ns() * 1e-9;
    for (const Caller& caller : callers) answers[caller.number] = caller.answers;
    figures = figures_of(ground, answers, seconds);
  }
  check_synced(setup, answers);
  return figures;
}

double measure_recovery(const std::string& directory, std::uint64_t records) {
  static_cast<void>(bench_clock());  // its thread is of the service, not of the recovery
  const std::uint64_t begin = __rdtsc();
  Ground ground{directory, Durability::logged, records};
  static_cast<void>(ground.recover());
  const double seconds = static_cast<double>(__rdtsc() - begin) / ticks_per_ns() * 1e-9;
  require(ground.engine().size(0) == records, "recovery brought back another number of records");
  Store store = ground.engine().store();
  for (std::uint64_t i = 0; i < records; i += 997) {
    const auto found = store.get(bytes_of(key_of(i)));
    require(found.ok() && *found && number_of(**found) == value_of(i),
            "recovery brought back another value");
  }
  return static_cast<double>(records) / seconds;
}

}  // namespace semel::bench
