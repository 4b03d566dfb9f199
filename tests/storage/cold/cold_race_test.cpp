// Operations against a running spill, on real threads. Each thread knows exactly what its own keys
// hold; keys that all claim are granted once.
#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "tests/storage/cold/cold_fixture.hpp"

namespace semel::tests {

namespace {

constexpr unsigned worker_count = 3;

/// Calls of one thread on keys of its own, and what they must answer.
class Worker {
 public:
  Worker(Engine& engine, unsigned number, std::uint64_t seed)
      : engine_(engine), number_(number), random_(seed + number) {}

  void run(const std::atomic<bool>& stop, std::vector<std::atomic<std::uint32_t>>& grants) {
    // mo: acquire [cold_race.stop]
    while (!stop.load(std::memory_order_acquire) && wrong_.empty()) {
      steps_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a count
      const std::size_t at = random_() % held_.size();
      const std::string key = std::to_string(number_) + "/" + std::to_string(at);
      Store store = engine_.store();
      std::int64_t& held = held_[at];
      switch (random_() % 8) {
        case 0:
          expect(store.del(key).value() == (held != 0), "del", key);
          held = 0;
          break;
        case 1:
        case 2:
          expect(store.set(key, "1", {.condition = Condition::if_absent})->stored == (held == 0),
                 "set nx", key);
          if (held == 0) held = 1;
          break;
        case 3:
        case 4:
          expect(store.incr_by(key, 1).value() == ++held, "incr", key);
          break;
        case 5: {
          // All threads claim these.
          const std::size_t shared = random_() % grants.size();
          const bool stored =
              store.set("s" + std::to_string(shared), "x", {.condition = Condition::if_absent})
                  ->stored;
          // mo: relaxed: looked at when the threads have ended.
          if (stored) grants[shared].fetch_add(1, std::memory_order_relaxed);
          break;
        }
        default:
          expect(store.get(key).value().value_or("0") == std::to_string(held), "get", key);
          break;
      }
    }
  }
  [[nodiscard]] std::uint64_t steps() const noexcept {
    return steps_.load(std::memory_order_relaxed);  // mo: relaxed: a count
  }
  [[nodiscard]] const std::string& wrong() const noexcept { return wrong_; }

 private:
  void expect(bool right, const char* what, const std::string& key) {
    if (!right && wrong_.empty()) wrong_ = std::string{what} + " " + key;
  }

  Engine& engine_;
  const unsigned number_;
  std::mt19937_64 random_;
  std::atomic<std::uint64_t> steps_{0};
  std::array<std::int64_t, 64> held_{};
  std::string wrong_;
};

}  // namespace

TEST_CASE("cold race: calls beside a running spill answer exactly, and a key is granted once",
          "[storage][cold][race]") {
  const Directory directory{cold_medium};
  ManualClock clock;
  MemoryJournal journal;
  ColdLife process{directory, clock, GENERATE(true, false) ? &journal : nullptr,
                   Options{.shard_count = 4}};
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::vector<std::atomic<std::uint32_t>> grants(2'000);
  std::deque<Worker> workers;
  for (unsigned i = 0; i < worker_count; ++i) workers.emplace_back(*process.engine, i, seed);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&] { worker.run(stop, grants); });
  }
  SpillReport all;
  const auto steps = [&] {
    std::uint64_t total = 0;
    for (const Worker& worker : workers) total += worker.steps();
    return total;
  };
  for (std::uint64_t i = 1; i <= 50; ++i) {
    // There is something to spill, and somebody to be in the way.
    for (int waits = 0; steps() < i * 1'000 && waits < 10'000'000; ++waits) {
      std::this_thread::yield();
    }
    const SpillReport report = process.spill();
    all.records += report.records;
    all.changed += report.changed;
  }
  stop.store(true, std::memory_order_release);  // mo: release [cold_race.stop]
  for (std::thread& thread : threads) thread.join();
  CHECK(all.records > 1'000);
  for (const Worker& worker : workers) CHECK(worker.wrong() == "");
  std::size_t granted = 0;
  for (std::size_t i = 0; i < grants.size(); ++i) {
    // mo: relaxed: the threads have ended.
    const std::uint32_t times = grants[i].load(std::memory_order_relaxed);
    if (times > 1) FAIL("key s" << i << " was granted " << times << " times");
    granted += times;
    const bool there = process.engine->store().exists("s" + std::to_string(i)).value();
    if (there != (times == 1)) FAIL("key s" << i << " is not where it should be");
  }
  CHECK(granted > 500);
  CHECK(process.cold.store->stats().found > 100);
  CHECK(process.broken() == "");
}

}  // namespace semel::tests
