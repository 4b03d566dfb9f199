// How many timers a record has over its life.
// Words: early, later = an end that moves to before or behind the one it had; push = a change that
// makes a timer; pass = the clock moves, advance runs.
#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// A store beside what is known of it: the end of each key, and until when timers may be there that
/// changes have made or left behind.
class TimedKeys {
 public:
  explicit TimedKeys(std::uint64_t seed) : random_{seed} {}

  [[nodiscard]] std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  [[nodiscard]] std::string any_key() { return std::to_string(below(key_count)); }

  /// The key has a record that ends at `end`; none: it does not end.
  void note(const std::string& key, std::optional<std::int64_t> end) {
    const auto old = ends_.find(key);
    const bool was_timed = old != ends_.end() && old->second.has_value();
    if (end && (!was_timed || *end < *old->second)) pushed_.insert(*end);
    // The timer of the old end stays until it fires, at that end at the latest.
    if (was_timed && end != old->second) pushed_.insert(*old->second);
    ends_[key] = end;
  }
  void note_deleted(const std::string& key) {
    note(key, {});
    ends_.erase(key);
    pushed_.insert(now_ + 1'000);  // of a delete marker, perhaps
  }

  void change() {
    const std::string key = any_key();
    const auto held = ends_.find(key);
    const bool is_there = held != ends_.end();
    const std::int64_t end = now_ + 1 + below(below(4) == 0 ? 2'000 : 60);
    switch (below(8)) {
      case 0:
        CHECK(*f.store().del(key) == is_there);
        return note_deleted(key);
      case 1:
        CHECK(*f.store().persist(key) == (is_there && held->second.has_value()));
        if (is_there) note(key, {});
        return;
      case 2:
        REQUIRE(f.put(key, "kept", Expiry::keep()));
        return note(key, is_there ? held->second : std::nullopt);
      case 3:
        CHECK(*f.store().expire(key, Expiry::at(at(end))) == is_there);
        if (is_there) note(key, end);
        return;
      case 4:
        REQUIRE(f.put(key, "for ever"));
        return note(key, {});
      default:
        REQUIRE(f.put(key, "v", Expiry::at(at(end))));
        return note(key, end);
    }
  }
  void renew(const std::string& key) {
    const auto held = ends_.find(key);
    std::int64_t end = now_ + 1 + below(60);
    if (held != ends_.end() && held->second) end = std::max(end, *held->second);
    REQUIRE(f.put(key, "renewed", Expiry::at(at(end))));
    note(key, end);
  }
  void pass(std::int64_t ms) {
    f.pass(Millis{ms});
    now_ += ms;
    pushed_.erase(pushed_.begin(), pushed_.upper_bound(now_));
    std::erase_if(ends_, [this](const auto& held) { return held.second && *held.second <= now_; });
  }

  [[nodiscard]] std::size_t timed() const {
    std::size_t count = 0;
    for (const auto& [key, end] : ends_) count += end.has_value() ? 1 : 0;
    return count;
  }
  void check() {
    const Stats stats = f.engine->stats();
    REQUIRE(stats.records == ends_.size());  // what has ended is gone, to the millisecond
    REQUIRE(stats.records_with_ttl == timed());
    REQUIRE(stats.wheel_items >= timed());
    // One that fires is set again in its own place, once for each change, or not at all.
    REQUIRE(stats.wheel_items <= pushed_.size() + timed());
  }

  EngineFixture f{};
  static constexpr int key_count = 40;

 private:
  [[nodiscard]] Timestamp at(std::int64_t ms) const { return begin_ + Millis{ms}; }

  const Timestamp begin_ = f.clock.now();
  std::mt19937_64 random_;
  std::int64_t now_ = 0;  // since begin_
  std::map<std::string, std::optional<std::int64_t>> ends_;
  std::multiset<std::int64_t> pushed_;
};

}  // namespace

TEST_CASE("timers: ends that move at random leave no more timers than changes have made",
          "[engine][expiry][model]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  TimedKeys keys{seed};
  for (int round = 0; round < 3; ++round) {
    for (int step = 0; step < 3'000; ++step) {
      for (std::int64_t changes = keys.below(12); changes != 0; --changes) keys.change();
      keys.pass(keys.below(8));
      keys.check();
    }
    // Those that early ends have left come to an end, however often records are renewed.
    for (int step = 0; step < 500; ++step) {
      for (int key = 0; key < TimedKeys::key_count; ++key) keys.renew(std::to_string(key));
      keys.pass(1 + keys.below(14));
      keys.check();
    }
    // One that fires takes the mark of a renewal with it, and those are 7 ms apart: of an end
    // that is at most 60 ms away there are no more.
    CHECK(keys.f.engine->stats().wheel_items <= 9 * keys.timed());
    CHECK(keys.timed() > TimedKeys::key_count / 2);  // some have ended in the last step
    CHECK(broken_rules(*keys.f.engine) == "");
  }
  keys.pass(100'000);
  keys.check();
  CHECK(keys.f.engine->stats().wheel_items == 0);
}

TEST_CASE("timers: an end that moves to later makes none", "[engine][expiry]") {
  EngineFixture f;
  constexpr int count = 3'000;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < count; ++i) {
      REQUIRE(f.put(std::to_string(i), "v", Expiry::in(Millis{100 + round * 3})));
    }
    f.pass(5ms);
    CHECK(f.engine->stats().wheel_items == count);
  }
  f.pass(100ms + 39 * 3ms - 5ms - 1ms);
  CHECK(f.engine->stats().records == count);
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().wheel_items == 0);
}

TEST_CASE("timers: an early end before a later one leaves none that are set again and again",
          "[engine][expiry]") {
  EngineFixture f;
  for (int round = 0; round < 200; ++round) {
    REQUIRE(f.put("k", "v", Expiry::in(500ms)));
    REQUIRE(f.put("k", "v", Expiry::in(20ms)));
    f.pass(1ms);
    CHECK(f.engine->stats().wheel_items <= 22);
  }
  for (int round = 0; round < 30; ++round) {
    REQUIRE(f.put("k", "v", Expiry::in(500ms)));
    f.pass(20ms);
  }
  CHECK(f.engine->stats().wheel_items == 1);
  f.pass(480ms);
  CHECK(f.engine->stats().records == 0);
}

TEST_CASE("timers: a claim that is renewed and completed has one", "[engine][expiry][claims]") {
  EngineFixture f;
  Policy policy;
  policy.lease = 100ms;
  policy.result_ttl = 1'000ms;
  policy.unique_ttl = 5'000ms;
  policy.attempts_ttl = 100ms;
  Claims ns = f.claims("ns", policy);
  for (const int renewals : {0, 1, 50}) {
    const ClaimOutcome granted = ns.claim({.key = "k"});
    REQUIRE(granted.answer == ClaimAnswer::granted);
    for (int i = 0; i < renewals; ++i) {
      f.pass(60ms);
      REQUIRE(ns.renew({.key = "k", .epoch = granted.epoch}).answer == OwnerAnswer::ok);
      CHECK(f.engine->stats().wheel_items <= 1);
    }
    REQUIRE(ns.complete({.key = "k", .epoch = granted.epoch, .payload = "r"}).answer ==
            OwnerAnswer::ok);
    f.pass(999ms);
    CHECK(f.engine->stats().wheel_items == 1);
    CHECK(ns.claim({.key = "k"}).result == "r");
    f.pass(1ms);
    CHECK(ns.claim({.key = "k"}).result_expired);
    f.pass(3'999ms);
    CHECK(f.engine->stats().records == 1);
    f.pass(1ms);
    CHECK(f.engine->stats().records == 0);
    CHECK(f.engine->stats().wheel_items == 0);
  }
}

namespace {

/// Leases of 100 ms. A record stays for 10 s after its lease, or after its end.
Policy leased() {
  Policy policy;
  policy.lease = 100ms;
  policy.result_ttl = 10'000ms;
  policy.attempts_ttl = 10'000ms;
  return policy;
}

/// Claims and ends keys as `random` has it, on `ns`.
void claim_and_end(Claims& ns, std::mt19937_64& random) {
  const std::string key = std::to_string(random() % 8);
  const ClaimOutcome granted = ns.claim({.key = key, .lease = Millis{1 + random() % 12}});
  if (granted.answer != ClaimAnswer::granted) return;
  switch (random() % 4) {
    case 0:
      return;  // its lease ends
    case 1:
      static_cast<void>(ns.release({.key = key, .epoch = granted.epoch}));
      return;
    case 2:
      static_cast<void>(
          ns.renew({.key = key, .epoch = granted.epoch, .lease = Millis{1 + random() % 12}}));
      [[fallthrough]];
    default:
      static_cast<void>(ns.complete({.key = key, .epoch = granted.epoch, .payload = "r"}));
  }
}

}  // namespace

TEST_CASE("timers: of claims that end within their leases each has one",
          "[engine][expiry][claims]") {
  EngineFixture f;
  Claims ns = f.claims("ns", leased());
  constexpr std::size_t count = 1'000;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = std::to_string(i);
    const ClaimOutcome granted = ns.claim({.key = key});
    REQUIRE(ns.complete({.key = key, .epoch = granted.epoch, .payload = "r"}).answer ==
            OwnerAnswer::ok);
  }
  for (const Millis step : {0ms, 99ms, 1ms, 1ms, 9'898ms}) {  // to the lease's end, and on
    f.pass(step);
    CHECK(f.engine->stats().wheel_items == count);
    CHECK(f.engine->stats().records == count);
  }
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().wheel_items == 0);
}

TEST_CASE("timers: a claim that outlives its lease is kept to its own end, whatever becomes of it",
          "[engine][expiry][claims]") {
  EngineFixture f;
  Claims ns = f.claims("ns", leased());
  const auto left_after = [&](Millis time) {
    f.pass(time);
    return f.engine->stats().records;
  };
  SECTION("nothing") {
    REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
    CHECK(left_after(100ms) == 1);
    CHECK(left_after(9'999ms) == 1);
    CHECK(f.engine->stats().wheel_items == 1);
    CHECK(left_after(1ms) == 0);
  }
  SECTION("a late completion") {
    const ClaimOutcome granted = ns.claim({.key = "k"});
    CHECK(left_after(150ms) == 1);
    REQUIRE(ns.complete({.key = "k", .epoch = granted.epoch, .payload = "r"}).late);
    CHECK(left_after(9'999ms) == 1);
    CHECK(left_after(1ms) == 0);
  }
  SECTION("a takeover, and another") {
    REQUIRE(ns.claim({.key = "k"}).answer == ClaimAnswer::granted);
    CHECK(left_after(100ms) == 1);
    REQUIRE(ns.claim({.key = "k"}).takeover);
    CHECK(left_after(5'000ms) == 1);
    REQUIRE(ns.claim({.key = "k"}).takeover);
    CHECK(left_after(10'099ms) == 1);
    CHECK(left_after(1ms) == 0);
  }
  f.pass(20'000ms);
  CHECK(f.engine->stats().wheel_items == 0);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("timers: one that fires beside a change that still relies on it is set again",
          "[engine][expiry][claims]") {
  EngineFixture f;
  Policy policy = leased();
  policy.result_ttl = 200ms;
  Claims ns = f.claims("ns", policy);
  const ClaimOutcome granted = ns.claim({.key = "k"});
  // The wheel is ahead of the clock that the owner has read.
  engine::EngineUpkeep& upkeep = engine::impl_of(*f.engine).upkeep();
  static_cast<void>(upkeep.advance(f.clock.now() + 100ms, 1'000, true));
  REQUIRE(ns.complete({.key = "k", .epoch = granted.epoch, .payload = "r"}).answer ==
          OwnerAnswer::ok);
  f.pass(199ms);
  CHECK(f.engine->stats().records == 1);
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
}

TEST_CASE("timers: of claims that threads end while leases end none is lost",
          "[engine][expiry][claims][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 1}};
  Policy policy = leased();
  policy.result_ttl = 5ms;
  policy.attempts_ttl = 20ms;
  Claims ns = f.claims("ns", policy);
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int i = 0; i < 20'000; ++i) claim_and_end(ns, random);
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  while (running.load(std::memory_order_acquire) != 0) {
    f.clock.advance(1ms);
    static_cast<void>(f.engine->advance(20));
  }
  for (std::thread& thread : threads) thread.join();
  f.pass(32ms);  // a lease, and attempts_ttl
  CHECK(f.engine->stats().records == 0);
  f.pass(1'000ms);  // delete markers
  CHECK(f.engine->stats().wheel_items == 0);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("timers: compaction keeps the timer of an end that moved to later", "[engine][expiry]") {
  EngineFixture f;
  constexpr int count = 1'000;
  // Many that end early, so that the wheel and the queues are looked through, and for each key an
  // end that has moved to later.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < count; ++i) {
      const std::string key = std::to_string(i);
      REQUIRE(f.put(key, "v", Expiry::in(Millis{50'000 + round})));
      REQUIRE(f.put(key, "v", Expiry::in(Millis{40'000 - round})));
      REQUIRE(f.put(key, "v", Expiry::in(60'000ms)));
    }
    f.pass(1ms);
  }
  CHECK(f.engine->stats().wheel_items < 100'000);
  f.pass(59'998ms);
  CHECK(f.engine->stats().records == count);
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().wheel_items == 0);
}

TEST_CASE("timers: of ends that threads move while they fire none is lost",
          "[engine][expiry][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 1}};
  std::atomic<int> running{2};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int i = 0; i < 20'000; ++i) {
        const std::string key = std::to_string(random() % 8);
        if (random() % 8 == 0) {
          static_cast<void>(f.store().del(key));
        } else {
          static_cast<void>(f.put(key, "v", Expiry::in(Millis{1 + random() % 12})));
        }
      }
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  while (running.load(std::memory_order_acquire) != 0) {
    f.clock.advance(1ms);
    static_cast<void>(f.engine->advance(20));
  }
  for (std::thread& thread : threads) thread.join();
  f.pass(12ms);
  CHECK(f.engine->stats().records == 0);  // each ended by a timer of its own
  CHECK(f.engine->size(0) == 0);
  f.pass(1'000ms);  // delete markers
  CHECK(f.engine->stats().wheel_items == 0);
  CHECK(f.engine->stats().bytes_records == 0);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("timers: one that fires beside a long section is set again", "[engine][expiry][race]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v", Expiry::in(10ms)));
  REQUIRE(f.put("k", "v", Expiry::in(1'000ms)));
  {
    auto section = f.engine->section({});
    REQUIRE(section.has_value());
    section->yield();
    std::thread{[&] {
      static_cast<void>(f.engine->host().set_no_wait(true));
      f.pass(10ms);
      static_cast<void>(f.engine->host().set_no_wait(false));
    }}.join();
    section->resume();
  }
  f.pass(989ms);
  CHECK(f.engine->stats().records == 1);
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
}

}  // namespace semel::tests
