// Time is read after waiting: no lease and no ttl is counted from before a wait for a section.
// Words: late = a call that has read the clock, and then waits until the section has ended.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Counts how often it was read.
class CountingClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override {
    const Timestamp time = clock_.now();
    // mo: release [test.clock_reads]: a thread that sees the read may move the clock.
    reads_.fetch_add(1, std::memory_order_release);
    return time;
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return clock_.unix_ms(); }
  void advance(Millis by) noexcept { clock_.advance(by); }
  [[nodiscard]] int reads() const noexcept {
    // mo: acquire [test.clock_reads]
    return reads_.load(std::memory_order_acquire);
  }

 private:
  mutable std::atomic<int> reads_{0};
  ManualClock clock_;
};

struct Late {
  CountingClock clock;
  std::unique_ptr<Engine> engine =
      Engine::open({.clock = &clock, .durability = Durability::memory}).value();
  Claims claims = engine->claims("n", Policy{.lease = 100ms, .issued = false}).value();
  Store store = engine->store();

  /// Runs `call` beside a section that ends 400 ms after the call has read the clock, while it
  /// waits.
  void run(const std::function<void()>& call) {
    std::thread caller;
    {
      auto section = engine->section({});
      REQUIRE(section.has_value());
      const int before = clock.reads();
      std::atomic<pid_t> id{0};
      caller = std::thread{[&] {
        // mo: relaxed: a number alone.
        id.store(gettid(), std::memory_order_relaxed);
        call();
      }};
      // A call that reads no clock before it waits is right as well: so not for ever.
      for (int i = 0; i < 1'000'000 && clock.reads() == before; ++i) std::this_thread::yield();
      // mo: relaxed: a number alone.
      const std::string stat =
          "/proc/self/task/" + std::to_string(id.load(std::memory_order_relaxed)) + "/stat";
      for (int i = 0; i < 100'000 && !sleeps(stat); ++i) std::this_thread::yield();
      clock.advance(400ms);
    }
    caller.join();
  }
  [[nodiscard]] static bool sleeps(const std::string& stat) {
    std::string line;
    std::getline(std::ifstream{stat}, line);
    const std::size_t name_end = line.rfind(") ");
    return name_end != std::string::npos && line.compare(name_end + 2, 1, "S") == 0;
  }
  [[nodiscard]] Millis lease(Bytes key) { return claims.get(key).value().lease_remaining; }
  [[nodiscard]] Millis ttl(Bytes key) { return store.ttl(key).value().remaining; }
};

}  // namespace

TEST_CASE("time: a claim that waited for a section has its whole lease",
          "[engine][section][claims][attack][fault-16]") {
  Late late;
  ClaimOutcome outcome;
  late.run([&] { outcome = late.claims.claim({.key = "k"}); });
  CHECK(outcome.answer == ClaimAnswer::granted);
  CHECK(late.lease("k") == 100ms);
  CHECK(late.claims.claim({.key = "k"}).answer == ClaimAnswer::in_flight);

  const ClaimRequest requests[] = {{.key = "b1"}, {.key = "b2", .lease = 50ms}};
  ClaimOutcome outcomes[2];
  late.run([&] { late.claims.claim(requests, outcomes); });
  CHECK(outcomes[0].answer == ClaimAnswer::granted);
  CHECK(late.lease("b1") == 100ms);
  CHECK(late.lease("b2") == 50ms);

  late.run([&] { CHECK(late.claims.claim_all(requests, outcomes)); });
  CHECK(late.lease("b1") == 100ms);

  late.run([&] { outcome = late.claims.claim_or_wait({.key = "w"}, no_end); });
  CHECK(outcome.answer == ClaimAnswer::granted);
  CHECK(late.lease("w") == 100ms);
}

TEST_CASE("time: owner calls that waited for a section are judged by the time after it",
          "[engine][section][claims][attack][fault-16]") {
  Late late;
  const Epoch renewed = late.claims.claim({.key = "r", .lease = 500ms}).epoch;
  const Epoch lost = late.claims.claim({.key = "l", .lease = 300ms}).epoch;
  const Epoch done = late.claims.claim({.key = "d", .lease = 300ms}).epoch;
  OwnerOutcome outcome;
  late.run([&] { outcome = late.claims.renew({.key = "r", .epoch = renewed, .lease = 200ms}); });
  CHECK(outcome.answer == OwnerAnswer::ok);
  CHECK(late.lease("r") == 200ms);
  late.run([&] { outcome = late.claims.renew({.key = "l", .epoch = lost}); });
  CHECK(outcome.answer == OwnerAnswer::refused);
  late.run([&] { outcome = late.claims.complete({.key = "d", .epoch = done}); });
  CHECK(outcome.late);
  CHECK(late.claims.get("d")->result_remaining == Policy{}.result_ttl);
}

TEST_CASE("time: an issued key and a kept failure live as long as they should after a wait",
          "[engine][section][claims][attack][fault-16]") {
  Late late;
  Claims tokens = late.engine->claims("t", Policy{.attempts_ttl = 300ms, .issued = true}).value();
  late.run([&] { CHECK(tokens.issue("a").value()); });
  late.clock.advance(299ms);
  CHECK(tokens.claim({.key = "a"}).answer == ClaimAnswer::granted);
  const Epoch epoch = late.claims.claim({.key = "f"}).epoch;
  late.run([&] {
    static_cast<void>(late.claims.fail(
        {.key = "f", .epoch = epoch, .payload = "no", .on_failure = Policy::OnFailure::keep}));
  });
  CHECK(late.claims.get("f")->result_remaining == Policy{}.failure_ttl);
}

TEST_CASE("time: SET PX and every other call with a ttl counts it from after the wait",
          "[engine][section][store][attack][fault-16]") {
  Late late;
  const Expiry px = Expiry::in(100ms);
  const auto check = [&](const char* what, const std::function<void()>& call) {
    CAPTURE(what);
    late.run(call);
    CHECK(late.ttl("k") == 100ms);
    static_cast<void>(late.store.set("k", "1"));
  };
  static_cast<void>(late.store.set("k", "1"));
  check("set", [&] { static_cast<void>(late.store.set("k", "v", {.expiry = px})); });
  check("expire", [&] { static_cast<void>(late.store.expire("k", px)); });
  check("getex", [&] { static_cast<void>(late.store.getex("k", px)); });
  check("increx",
        [&] { static_cast<void>(late.store.increx("k", IncrexOptions{.by = 1, .expiry = px})); });
  static_cast<void>(late.store.del("k"));
  check("set if absent", [&] {
    static_cast<void>(late.store.set("k", "v", {.condition = Condition::if_absent, .expiry = px}));
  });
  static_cast<void>(late.store.del("k"));
  check("set if absent, with get", [&] {
    static_cast<void>(
        late.store.set("k", "v", {.condition = Condition::if_absent, .expiry = px, .get = true}));
  });
  check("batch", [&] {
    const StoreOp ops[] = {{.verb = Verb::set, .expiry = px, .key = "other", .value = "v"},
                           {.verb = Verb::set, .expiry = px, .key = "k", .value = "v"}};
    StoreOutcome outcomes[2];
    late.engine->host().apply(ops, outcomes);
  });
}

TEST_CASE("time: a batch at a given time keeps to it, also after a wait",
          "[engine][section][store][attack][fault-16]") {
  Late late;
  const Timestamp given = late.clock.now();
  const StoreOp op{.verb = Verb::set, .expiry = Expiry::in(500ms), .key = "k", .value = "v"};
  StoreOutcome outcome;
  late.run([&] { late.engine->host().apply_at({&op, 1}, {&outcome, 1}, given); });
  CHECK(late.ttl("k") == 100ms);
}

namespace {

/// A millisecond passes behind a read, and something happens in it.
class BusyClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override {
    const Timestamp time = clock_.now();
    if (happens) {
      clock_.advance(1ms);
      std::exchange(happens, nullptr)();
    }
    return time;
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return clock_.unix_ms(); }
  mutable std::function<void()> happens;

 private:
  mutable ManualClock clock_;
};

}  // namespace

TEST_CASE("time: a lease that begins while it is looked at has no more left than it got",
          "[engine][claims]") {
  BusyClock clock;
  auto engine = Engine::open({.clock = &clock, .durability = Durability::memory}).value();
  Claims claims = engine->claims("n", Policy{.lease = 100ms, .issued = false}).value();
  clock.happens = [&] { REQUIRE(claims.claim({.key = "k"}).answer == ClaimAnswer::granted); };
  CHECK(claims.get("k").value().lease_remaining == 100ms);
}

}  // namespace semel::tests
