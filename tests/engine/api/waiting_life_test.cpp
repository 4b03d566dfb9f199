// What a wait promises to callbacks that throw, leave and are destroyed (docs/process-life.md).
// Words: waiter = a claim_or_wait that met a held key; owner = its holder.
#include <atomic>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

namespace {

/// A coroutine that starts at once and is destroyed by its holder.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Task wait_for(Claims ns, int& resumed) {
  const std::string key = "k";  // in the frame that goes
  static_cast<void>(co_await ns.claim_or_wait_async({.key = key}, no_end));
  ++resumed;
}

Task confirm(Engine& engine, int& resumed) {
  static_cast<void>(co_await engine.confirmed(Durability::logged));
  ++resumed;
}

/// Answers when the test says so.
class LateJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override { return 1; }
  Status wait(Ticket, Durability) override { return Done{}; }
  Ticket newest() const override { return 1; }
  void when(Ticket, Durability, Function<void(Status)> then) override {
    later.push_back(std::move(then));
  }
  std::vector<Function<void(Status)>> later;
};

}  // namespace

TEST_CASE("waiting: a callback that throws ends no other wait, and not the owner's call",
          "[engine][waiting][attack][fault-18]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  int answers = 0;
  for (int i = 0; i < 40; ++i) {
    ns.claim_or_wait({.key = "k"}, no_end, [&answers, i](ClaimOutcome&&) {
      ++answers;
      if (i % 3 == 0) throw std::runtime_error{"the waiter's own"};
    });
  }
  CHECK(ns.complete({.key = "k", .epoch = epoch, .payload = "r"}).answer == OwnerAnswer::ok);
  CHECK(answers == 40);
  CHECK(f.engine->stats().waiters == 0);
  CHECK(f.engine->stats().callbacks_threw == 14);

  SECTION("nor one that is answered at once") {
    CHECK(ns.claim_or_wait({.key = "k"}, no_end,
                           [](ClaimOutcome&&) { throw std::runtime_error{"at once"}; }) == 0);
    CHECK(f.engine->stats().callbacks_threw == 15);
  }
  SECTION("nor advance()") {
    static_cast<void>(ns.claim({.key = "l"}));
    ns.claim_or_wait({.key = "l"}, f.clock.now() + Millis{5},
                     [](ClaimOutcome&&) { throw std::runtime_error{"late"}; });
    f.pass(Millis{5});
    CHECK(f.engine->stats().callbacks_threw == 15);
    CHECK(f.engine->stats().waiters == 0);
  }
}

TEST_CASE("waiting: a coroutine that is destroyed while it waits has left the line",
          "[engine][waiting][attack][fault-18]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  int resumed = 0;
  Task first = wait_for(ns, resumed);
  Task second = wait_for(ns, resumed);
  CHECK(f.engine->stats().waiters == 2);
  first.handle.destroy();
  CHECK(f.engine->stats().waiters == 1);
  CHECK(ns.release({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
  CHECK(resumed == 1);
  CHECK(ns.claim({.key = "k"}).answer == ClaimAnswer::in_flight);  // the second has it
  CHECK(second.handle.done());
  second.handle.destroy();
}

TEST_CASE("waiting: a coroutine that is destroyed while the journal has it is not resumed",
          "[engine][waiting][attack][fault-18]") {
  LateJournal journal;
  Options options;
  options.journal = &journal;
  EngineFixture f{options};
  int resumed = 0;
  Task gone = confirm(*f.engine, resumed);
  Task kept = confirm(*f.engine, resumed);
  gone.handle.destroy();
  for (const auto& then : journal.later) then(Done{});
  CHECK(resumed == 1);
  CHECK(kept.handle.done());
  kept.handle.destroy();
}

TEST_CASE("waiting: a callback may cancel itself and others, and a cancelled one never runs",
          "[engine][waiting][attack][fault-18]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  std::vector<WaitTicket> tickets(4);
  std::vector<int> runs(4);
  std::vector<bool> cancelled;
  tickets[0] = ns.claim_or_wait({.key = "k"}, no_end, [&](ClaimOutcome&&) {
    ++runs[0];
    cancelled = {ns.cancel_wait("k", tickets[0]), ns.cancel_wait("k", tickets[2])};
  });
  for (std::size_t i = 1; i < 4; ++i) {
    tickets[i] = ns.claim_or_wait({.key = "k"}, no_end, [&runs, i](ClaimOutcome&&) { ++runs[i]; });
  }
  CHECK(ns.complete({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
  CHECK(runs == std::vector<int>{1, 1, 0, 1});
  CHECK(cancelled == std::vector<bool>{false, true});
}

TEST_CASE("waiting: what a waiter was granted as it left goes to the next",
          "[engine][waiting][attack][fault-18]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  const Epoch first = ns.claim({.key = "a"}).epoch;
  const Epoch second = ns.claim({.key = "b"}).epoch;
  WaitTicket leaver = 0;
  int ran = 0;
  bool cancelled = false;
  // Within the first callback the second key is released: its waiter is granted it, and leaves
  // before its callback, which this thread calls later.
  ns.claim_or_wait({.key = "a"}, no_end, [&](ClaimOutcome&&) {
    static_cast<void>(ns.release({.key = "b", .epoch = second}));
    cancelled = ns.cancel_wait("b", leaver);
  });
  leaver = ns.claim_or_wait({.key = "b"}, no_end, [&](ClaimOutcome&&) { ++ran; });
  ClaimAnswer next = ClaimAnswer::busy;
  ns.claim_or_wait({.key = "b"}, no_end, [&](ClaimOutcome&& outcome) { next = outcome.answer; });
  static_cast<void>(ns.release({.key = "a", .epoch = first}));
  CHECK(cancelled);
  CHECK(ran == 0);
  CHECK(next == ClaimAnswer::granted);
}

TEST_CASE("waiting: cancel_wait returns after a callback that runs on another thread",
          "[engine][waiting][race][attack][fault-18]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  for (int round = 0; round < 200; ++round) {
    const std::string key = std::to_string(round);
    const Epoch epoch = ns.claim({.key = key}).epoch;
    auto mine = std::make_unique<int>(0);  // no atomic: cancel_wait itself must order it
    std::atomic<bool> runs{false};
    const WaitTicket ticket =
        ns.claim_or_wait({.key = key}, no_end, [&, at = mine.get()](ClaimOutcome&&) {
          runs.store(true, std::memory_order_relaxed);  // mo: relaxed: orders nothing
          for (int i = 0; i < 100; ++i) ++*at;
        });
    std::thread owner{[&] { static_cast<void>(ns.complete({.key = key, .epoch = epoch})); }};
    while (round % 2 == 0 && !runs.load(std::memory_order_relaxed)) {  // mo: relaxed: as above
    }
    const bool cancelled = ns.cancel_wait(key, ticket);
    CHECK(*mine == (cancelled ? 0 : 100));
    mine.reset();  // nothing writes there any more
    owner.join();
  }
}

namespace {

/// Says which threads look at it.
class WatchedClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override {
    const std::lock_guard lock{mutex_};
    lookers_.insert(std::this_thread::get_id());
    ++looks_;
    return Timestamp{Millis{1'000}};
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return 0; }
  void forget() {
    const std::lock_guard lock{mutex_};
    lookers_.clear();
    looks_ = 0;
  }
  [[nodiscard]] int looks() const {
    const std::lock_guard lock{mutex_};
    return looks_;
  }
  [[nodiscard]] std::size_t lookers() const {
    const std::lock_guard lock{mutex_};
    return lookers_.size();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::set<std::thread::id> lookers_;
  mutable int looks_ = 0;
};

}  // namespace

TEST_CASE("waiting: of threads that are blocked one looks at the clock, the others sleep",
          "[engine][waiting][race][attack][fault-21]") {
  WatchedClock clock;
  auto engine = open_engine({.clock = &clock, .background = std::nullopt});
  Claims ns = *engine->claims("ns", Policy{});
  const Epoch epoch = ns.claim({.key = "k"}).epoch;
  std::vector<std::thread> threads;
  constexpr std::size_t count = 32;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&] { static_cast<void>(ns.claim_or_wait({.key = "k"}, no_end)); });
  }
  // Entered, and looked again: from here on only the leader has a reason to look.
  while (engine->stats().waiters < count) std::this_thread::yield();
  clock.forget();
  while (clock.looks() < 100) std::this_thread::yield();
  clock.forget();
  while (clock.looks() < 20) std::this_thread::yield();
  CHECK(clock.lookers() <= 1);
  static_cast<void>(ns.complete({.key = "k", .epoch = epoch}));
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("waiting: waiters count towards the memory limit, and give it back",
          "[engine][waiting][attack][fault-19]") {
  Options options;
  options.memory_bytes = std::size_t{16} << 20;
  EngineFixture f{options};
  Claims ns = f.claims("ns");
  const std::string far(60'000, 'k');
  std::vector<std::pair<std::string, Epoch>> held;
  for (int i = 0; i < 80; ++i) {
    const std::string key = far + std::to_string(i);
    const ClaimOutcome claimed = ns.claim({.key = key});
    REQUIRE(claimed.answer == ClaimAnswer::granted);
    held.emplace_back(key, claimed.epoch);
  }
  const std::uint64_t before = f.engine->stats().bytes_used;
  ClaimOutcome refused;
  std::vector<WaitTicket> tickets;
  for (const auto& [key, epoch] : held) {
    tickets.push_back(
        ns.claim_or_wait({.key = key}, no_end, [&](ClaimOutcome&& outcome) { refused = outcome; }));
  }
  const std::uint64_t more = f.engine->stats().bytes_used - before;
  CHECK(more >= f.engine->stats().waiters * 60'000);
  CHECK(f.engine->stats().bytes_used <= options.memory_bytes);
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (tickets[i] != 0) CHECK(ns.cancel_wait(held[i].first, tickets[i]));
  }
  CHECK(f.engine->stats().bytes_used == before);

  SECTION("and are refused as busy when it is reached") {
    Options small;
    small.memory_bytes = limits::memory_bytes_min;
    ErrorCode error = ErrorCode::ok;  // answered until the engine has ended
    EngineFixture g{small};
    Claims other = g.claims("ns");
    static_cast<void>(other.claim({.key = "k"}));
    for (std::size_t i = 0; i < limits::waiters_per_key_max * 8 && error == ErrorCode::ok; ++i) {
      const std::string key = far.substr(0, 20'000) + std::to_string(i);
      if (other.claim({.key = key}).answer != ClaimAnswer::granted) break;
      other.claim_or_wait({.key = key}, no_end,
                          [&](ClaimOutcome&& outcome) { error = outcome.error; });
    }
    CHECK(g.engine->stats().bytes_used <= small.memory_bytes);
  }
}

}  // namespace semel::tests
