#include "tests/storage/faults/slow_disk.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

/// On a machine that does nothing else it is 2.
constexpr double ratio_limit = 5;
constexpr std::uint64_t lookups_min = 4'000;
constexpr std::int64_t growth_limit_kib = 64 << 10;
constexpr Millis confirm_slack = 1'000ms;  // to be woken, on a machine with other work
constexpr Millis again_limit = 10'000ms;

/// Only a ratio is taken of these.
std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  static const SystemClock clock;
  return static_cast<std::uint64_t>(clock.now().time_since_epoch().count());
#endif
}

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

/// Another thread that asks for what was written to be on the disk, again and again.
class Confirming {
 public:
  explicit Confirming(World& world) : world_(world), thread_([this] { run(); }) {}
  ~Confirming() { end(); }
  void end() {
    ends_.store(true, std::memory_order_relaxed);  // mo: relaxed: what it saw is read behind join()
    if (thread_.joinable()) thread_.join();
  }
  std::uint64_t confirmed = 0;  // after end(), as the next ones
  std::uint64_t unknown = 0;
  Millis slowest{0};

 private:
  void run() {
    while (!ends_.load(std::memory_order_relaxed)) {  // mo: relaxed: as above
      const Timestamp begun = clock_.now();
      const Status status = world_.engine->confirm(Durability::synced);
      slowest = std::max(slowest, clock_.now() - begun);
      ++(status ? confirmed : unknown);
      if (!status) std::this_thread::yield();
    }
  }

  World& world_;
  const SystemClock clock_;
  std::atomic<bool> ends_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace

struct SlowDisk::Looks {
  Histogram took;  // ticks
  std::uint64_t bad = 0;
  std::uint64_t most_waiting = 0;
  std::uint64_t confirmed = 0;
  std::uint64_t unknown = 0;
  Millis slowest_confirm{0};
  bool was_refused = false;  // at times

  [[nodiscard]] double p99() const {
    return static_cast<double>(std::max<std::uint64_t>(1, took.quantile(0.99)));
  }
};

void SlowDisk::limit(bool holds, std::uint64_t& kind, const std::string& what) {
  if (holds) return;
  ++kind;
  say_("on the slow disk: " + what);
}

/// At `synced` an answer waits for the disk, as that of a write does.
SlowDisk::Looks SlowDisk::look_up(World& world, const Worker& prober, const PowerDisk& disk,
                                  Millis duration) const {
  Looks looks;
  const std::vector<std::string> keys = prober.strings();
  Store store = world.engine->store();
  Confirming confirming{world};
  const Timestamp end = clock_.now() + duration;
  for (std::size_t i = 0; clock_.now() < end && !disk.is_broken();) {
    for (int n = 0; n < 512 && prober.level() != Durability::synced; ++n, ++i) {
      const std::uint64_t begun = ticks();
      const auto value = store.get(keys[i % keys.size()]);
      looks.took.add(ticks() - begun);
      looks.bad += value.ok() ? 0 : 1;
    }
    std::this_thread::yield();
    looks.was_refused = looks.was_refused || !world.storage->accepts_writes();
    looks.most_waiting = std::max(looks.most_waiting, world.storage->stats().bytes_log);
  }
  confirming.end();
  looks.confirmed = confirming.confirmed;
  looks.unknown = confirming.unknown;
  looks.slowest_confirm = confirming.slowest;
  return looks;
}

void SlowDisk::judge(const Looks& quick, const Looks& slow, Millis delay, std::int64_t growth_kib) {
  const double ratio = slow.p99() / quick.p99();
  total_.lookups += slow.took.count();
  total_.worst_ratio = std::max(total_.worst_ratio, ratio);
  total_.confirmed += slow.confirmed;
  total_.unknown += slow.unknown;
  total_.most_waiting = std::max(total_.most_waiting, slow.most_waiting);
  total_.slowest_confirm = std::max(total_.slowest_confirm, slow.slowest_confirm);
  total_.growth_kib = std::max(total_.growth_kib, growth_kib);
  // Once, or of a few, it may be what else the machine does.
  const bool is_late =
      ratio > ratio_limit && std::min(quick.took.count(), slow.took.count()) >= lookups_min;
  const bool is_again = std::exchange(was_late_, is_late) && is_late;
  limit(!is_again, total_.slow_lookups,
        "lookups' p99 is " + std::to_string(ratio) + " of that before");
  limit(slow.bad == 0, total_.bad_lookups, std::to_string(slow.bad) + " lookups are not answered");
  limit(slow.most_waiting <= log_bytes_, total_.unbounded,
        std::to_string(slow.most_waiting) + " bytes wait");
  limit(growth_kib <= growth_limit_kib, total_.unbounded,
        "memory grew by " + std::to_string(growth_kib) + " KiB");
  limit(slow.slowest_confirm <= confirm_within + confirm_slack, total_.endless,
        "a wait lasted " + std::to_string(slow.slowest_confirm.count()) + " ms");
  // Where work was refused before, on a full disk, there may be nothing to wait for.
  limit(delay < confirm_within || slow.unknown > 0 || quick.was_refused, total_.wrong,
        "a wait that lasts longer than allowed is confirmed");
}

/// As soon as the disk is quick again.
void SlowDisk::judge_again(World& world, Worker& prober, const PowerDisk& disk) {
  const Timestamp end = clock_.now() + again_limit;
  while (clock_.now() < end && !disk.is_broken()) {
    if (prober.step() && world.engine->confirm(Durability::synced)) return;
  }
  limit(disk.is_broken(), total_.not_again, "it is quick again, and nothing is confirmed");
}

void SlowDisk::meet(World& world, Worker& prober, PowerDisk& disk, bool ends_slow) {
  constexpr std::array<Millis, 3> delays{10ms, 1'000ms, 30'000ms};
  disk.set_delay(0ms);
  const std::int64_t before = anonymous_kib();
  const Looks quick = look_up(world, prober, disk, is_long_ ? 1'000ms : 200ms);
  const Millis delay = delays[total_.spells++ % delays.size()];
  disk.set_delay(delay);
  const Millis duration = delay < confirm_within ? 300ms : 2 * confirm_within;
  const Looks slow = look_up(world, prober, disk, is_long_ ? 5 * duration : duration);
  const std::int64_t growth = std::max<std::int64_t>(0, anonymous_kib() - before);
  if (disk.is_broken()) return;
  judge(quick, slow, delay, growth);
  if (ends_slow) return;
  disk.set_delay(0ms);
  judge_again(world, prober, disk);
}

std::string SlowDisk::report() const {
  const auto number = [](auto value) { return std::to_string(value); };
  return number(total_.spells) + " times slow: " + number(total_.lookups) + " lookups, p99 " +
         number(total_.worst_ratio) + " of that before at most; " +
         number(total_.most_waiting >> 10) + " KiB waited at most; " + number(total_.confirmed) +
         " confirmed, " + number(total_.unknown) + " unknown, slowest " +
         number(total_.slowest_confirm.count()) + " ms; memory +" + number(total_.growth_kib) +
         " KiB; " + number(total_.slow_lookups) + " slow lookups, " + number(total_.bad_lookups) +
         " bad ones, " + number(total_.unbounded) + " unbounded, " + number(total_.endless) +
         " endless waits, " + number(total_.wrong) + " wrongly confirmed, " +
         number(total_.not_again) + " did not go on";
}

}  // namespace semel::faults
