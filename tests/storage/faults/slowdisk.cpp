// The disk takes its time: every sync, and every write of RocksDB, lasts longer.
//
//   proof_faults --fault slowdisk [--long] [--seed N]
//
// One thread looks things up, one writes, one asks for `synced`. What must hold: lookups go on as
// on a quick disk (p99 within twice of that; judged at five times, for the machine does something
// else as well), what waits to be written is bounded, a wait for the disk ends with
// outcome_unknown when confirm_within is over, and memory does not grow.
#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "storage/log/disk.hpp"
#include "tests/storage/faults/hooked_files.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr double ratio_limit = 5;
constexpr std::size_t log_bytes = std::size_t{4} << 20;
constexpr std::int64_t growth_limit_kib = 64 << 10;
constexpr Millis confirm_within = 400ms;
constexpr Millis confirm_slack = 1'000ms;  // to be woken, on a machine with other work
constexpr std::uint64_t keys = 10'000;

/// Only a ratio is taken of these.
std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  static const SystemClock clock;
  return static_cast<std::uint64_t>(clock.now().time_since_epoch().count());
#endif
}

class SlowDisk final : public storage::Disk, private FileHooks {
 public:
  SlowDisk() : env_(make_hooked_env(*this)) {}

  /// From now on. What waits already goes on waiting; zero lets everything go.
  void set_delay(Millis delay) {
    const std::lock_guard lock{mutex_};
    delay_ = delay;
    changed_.notify_all();
  }

  [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override {
    wait();
    return storage::Disk::create(path, bytes);
  }
  [[nodiscard]] Status sync(int descriptor, const std::string& path) override {
    wait();
    return storage::Disk::sync(descriptor, path);
  }
  [[nodiscard]] Status sync_part(char* memory, const std::string& path, std::size_t from,
                                 std::size_t to) override {
    wait();
    return storage::Disk::sync_part(memory, path, from, to);
  }
  [[nodiscard]] Status rename(const std::string& from, const std::string& to) override {
    wait();
    return storage::Disk::rename(from, to);
  }
  [[nodiscard]] rocksdb::Env* env() override { return env_.get(); }

 private:
  rocksdb::IOStatus on(const FileStep& step,
                       const std::function<rocksdb::IOStatus()>& act) override {
    if (step.step == Step::sync || step.step == Step::sync_names || step.step == Step::write) {
      wait();
    }
    return act();
  }
  void wait() {
    std::unique_lock lock{mutex_};
    const Millis delay = delay_;
    if (delay > 0ms) changed_.wait_for(lock, delay, [this] { return delay_ == 0ms; });
  }

  std::unique_ptr<rocksdb::Env> env_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Millis delay_{0};  // under mutex_
};

std::int64_t anonymous_kib() {
  std::ifstream file{"/proc/self/status"};
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, 8, "RssAnon:") == 0) return std::strtoll(line.c_str() + 8, nullptr, 10);
  }
  return 0;
}

/// Counts of durations, sixteen for each power of two. Of one size, however many are counted.
class Histogram {
 public:
  void add(std::uint64_t value) noexcept {
    const std::uint64_t at = value | 16;
    const int power = 63 - std::countl_zero(at);
    const std::uint64_t part = (at >> (power - 4)) & 15;
    ++counts_[static_cast<std::size_t>(power) * 16 + static_cast<std::size_t>(part)];
    ++count_;
  }
  /// The lower bound of the count in which the given part of all has been seen.
  [[nodiscard]] std::uint64_t quantile(double part) const noexcept {
    const auto rank = static_cast<std::uint64_t>(static_cast<double>(count_) * part);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank) return (16 + (i & 15)) << (i / 16 - 4);
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

 private:
  std::array<std::uint64_t, 64 * 16> counts_{};
  std::uint64_t count_ = 0;
};

struct Seen {
  Histogram lookups;  // ticks
  std::uint64_t bad_lookups = 0;
  std::uint64_t written = 0;
  std::uint64_t refused = 0;
  std::uint64_t confirmed = 0;
  std::uint64_t unknown = 0;
  Millis slowest_confirm{0};
  std::uint64_t queued_most = 0;

  [[nodiscard]] double p99() const {
    return static_cast<double>(std::max<std::uint64_t>(1, lookups.quantile(0.99)));
  }
};

/// Three threads for some time. Each writes fields of its own.
class SlowRun {
 public:
  SlowRun(World& world, Millis duration, std::uint64_t seed)
      : world_(world), end_(clock_.now() + duration), seed_(seed) {}

  [[nodiscard]] Seen run() {
    std::vector<std::thread> threads;
    threads.emplace_back([this] { look_up(); });
    threads.emplace_back([this] { write(); });
    threads.emplace_back([this] { confirm(); });
    for (std::thread& thread : threads) thread.join();
    return seen_;
  }

 private:
  [[nodiscard]] bool is_over() const { return clock_.now() >= end_; }
  static void pause() {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock{mutex};
    never.wait_for(lock, 1ms);
  }

  void look_up() {
    proofs::Random random{seed_};
    Store store = world_.engine->store();
    while (!is_over()) {
      for (int i = 0; i < 64; ++i) {
        const std::string key = std::to_string(random.below(keys));
        const std::uint64_t begun = ticks();
        const auto value = store.get(key);
        seen_.lookups.add(ticks() - begun);
        seen_.bad_lookups += value.ok() && *value ? 0 : 1;
      }
    }
  }

  void write() {
    Store store = world_.engine->store();
    const std::string value(200, 'w');
    for (std::uint64_t i = 0; !is_over(); ++i) {
      const auto set = store.set("w" + std::to_string(i % keys), value);
      ++(set.ok() ? seen_.written : seen_.refused);
      seen_.queued_most = std::max(seen_.queued_most, world_.storage->stats().bytes_log);
      if (i % 16 == 0 || !set.ok()) pause();  // a rate that a quick disk keeps up with
    }
  }

  void confirm() {
    while (!is_over()) {
      const auto set = world_.engine->store().set("c", "c");
      const Timestamp begun = clock_.now();
      const Status status = world_.engine->confirm(Durability::synced);
      seen_.slowest_confirm = std::max(seen_.slowest_confirm, clock_.now() - begun);
      ++(status ? seen_.confirmed : seen_.unknown);
      if (!set.ok() || !status) pause();
    }
  }

  World& world_;
  const SystemClock clock_;
  const Timestamp end_;
  const std::uint64_t seed_;
  Seen seen_;
};

class SlowProof {
 public:
  SlowProof(bool is_long, std::uint64_t seed) : is_long_(is_long), seed_(seed) {}
  [[nodiscard]] int run();

 private:
  [[nodiscard]] bool open();
  void with_delay(Millis delay, const Seen& quick);
  [[nodiscard]] bool works_again();
  void limit(bool holds, const char* what);

  const bool is_long_;
  const std::uint64_t seed_;
  const SystemClock clock_;
  const Scratch scratch_;
  SlowDisk disk_;
  World world_;  // ends first
  double worst_ = 0;
  int broken_ = 0;
};

void SlowProof::limit(bool holds, const char* what) {
  if (holds) return;
  ++broken_;
  std::printf("slowdisk: does not hold: %s\n", what);
}

bool SlowProof::open() {
  StorageOptions options;
  options.directory = scratch_ / "storage";
  options.sync_every = 10ms;
  options.disk = &disk_;
  options.log_bytes = log_bytes;
  options.confirm_within = confirm_within;
  auto world = open_world(options, clock_, Durability::logged);
  if (!world) {
    std::printf("slowdisk: %s\n", world.error().message().c_str());
    return false;
  }
  world_ = *std::move(world);
  for (std::uint64_t i = 0; i < keys; ++i) {
    if (!world_.engine->store().set(std::to_string(i), std::string(100, 'k')).ok()) return false;
  }
  return true;
}

void SlowProof::with_delay(Millis delay, const Seen& quick) {
  disk_.set_delay(delay);
  const Millis duration = is_long_ ? std::max(10'000ms, delay + 5'000ms) : 1'500ms;
  const Seen seen = SlowRun{world_, duration, seed_}.run();
  const double ratio = seen.p99() / quick.p99();
  worst_ = std::max(worst_, ratio);
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "slowdisk: +%lld ms: %llu lookups, p99 %.2f of undisturbed; %llu written, %llu "
      "refused, %llu KiB waited at most; %llu confirmed, %llu unknown, slowest %lld ms\n",
      static_cast<long long>(delay.count()), number(seen.lookups.count()), ratio,
      number(seen.written), number(seen.refused), number(seen.queued_most >> 10),
      number(seen.confirmed), number(seen.unknown),
      static_cast<long long>(seen.slowest_confirm.count()));
  limit(ratio <= ratio_limit, "lookups go on as on a quick disk");
  limit(seen.bad_lookups == 0, "lookups find what is there");
  limit(seen.queued_most <= log_bytes, "what waits is bounded by log_bytes");
  limit(seen.slowest_confirm <= confirm_within + confirm_slack, "a wait ends in confirm_within");
  limit(delay < confirm_within || seen.unknown > 0, "a wait that lasts too long is not confirmed");
}

bool SlowProof::works_again() {
  disk_.set_delay(0ms);
  const Timestamp end = clock_.now() + 10'000ms;
  while (clock_.now() < end) {
    if (world_.engine->store().set("after", "1").ok() &&
        world_.engine->confirm(Durability::synced)) {
      return true;
    }
  }
  return false;
}

int SlowProof::run() {
  if (!open()) return 1;
  const std::int64_t before = anonymous_kib();
  const Seen quick = SlowRun{world_, is_long_ ? 10'000ms : 1'500ms, seed_}.run();
  for (const Millis delay : {10ms, 1'000ms, 30'000ms}) with_delay(delay, quick);
  const std::int64_t growth = std::max<std::int64_t>(0, anonymous_kib() - before);
  limit(growth <= growth_limit_kib, "memory grows by 64 MiB at most");
  limit(works_again(), "it works when the disk is quick again");
  std::printf(
      "slowdisk: lookups' p99 %.2f of undisturbed at most, anonymous memory +%lld KiB, "
      "%d limits broken\n",
      worst_, static_cast<long long>(growth), broken_);
  return broken_ == 0 ? 0 : 1;
}

}  // namespace

int prove_slowdisk(const Wanted& wanted) {
  return SlowProof{wanted.is_long, wanted.seed}.run();
}

}  // namespace semel::faults
