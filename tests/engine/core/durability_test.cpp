// What answers wait for: a journal that blocks all waits records which calls use it.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/semel.hpp"

namespace semel::tests {

namespace {

/// Numbers appends; a wait returns when the test says so.
class HoldingJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override {
    const std::lock_guard lock{mutex_};
    return ++newest_;
  }
  Status wait(Ticket ticket, Durability level) override {
    std::unique_lock lock{mutex_};
    waits_.push_back({ticket, level});
    changed_.notify_all();
    changed_.wait(lock, [&] { return confirmed_ >= ticket || broken_; });
    if (confirmed_ >= ticket) return Done{};
    return Error{ErrorCode::outcome_unknown, "broken"};
  }
  Ticket newest() const override {
    const std::lock_guard lock{mutex_};
    return newest_;
  }

  bool accepts_writes() const noexcept override {
    const std::lock_guard lock{mutex_};
    return accepts_;
  }

  void refuse() {
    const std::lock_guard lock{mutex_};
    accepts_ = false;
  }
  void confirm(Ticket ticket) {
    const std::lock_guard lock{mutex_};
    confirmed_ = ticket;
    changed_.notify_all();
  }
  void fail() {
    const std::lock_guard lock{mutex_};
    broken_ = true;
    changed_.notify_all();
  }
  /// Returns when `count` waits have begun.
  void until_waits(std::size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return waits_.size() >= count; });
  }
  struct Wait {
    Ticket ticket;
    Durability level;
  };
  [[nodiscard]] std::vector<Wait> waits() const {
    const std::lock_guard lock{mutex_};
    return waits_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Wait> waits_;
  Ticket newest_ = 0;
  Ticket confirmed_ = 0;
  bool broken_ = false;
  bool accepts_ = true;
};

/// Writes down in which order it was asked: a(ppend), p(ace), w(ait).
class TracingJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override {
    trace_ += 'a';
    return ++newest_;
  }
  void pace() override { trace_ += 'p'; }
  Status wait(Ticket ticket, Durability) override {
    trace_ += 'w';
    waited_for_ = ticket;
    return Done{};
  }
  Ticket newest() const override { return newest_; }

  /// Since the last time.
  [[nodiscard]] std::string trace() { return std::exchange(trace_, {}); }
  [[nodiscard]] Ticket waited_for() const noexcept { return waited_for_; }

 private:
  std::string trace_;
  Ticket newest_ = 0;
  Ticket waited_for_ = 0;
};

struct Fixture {
  explicit Fixture(Durability level = Durability::synced) {
    engine = Engine::open({.clock = &clock,
                           .journal = &journal,
                           .durability = level,
                           .memory_bytes = std::size_t{16} << 20})
                 .value();
  }
  ManualClock clock;
  HoldingJournal journal;
  std::unique_ptr<Engine> engine;
};

}  // namespace

TEST_CASE("durability: a change is answered when it is durable, and a repeat of it not before",
          "[engine][durability][race]") {
  Fixture f;
  std::atomic<int> answered{0};
  std::atomic<bool> failed{false};
  f.journal.confirm(1);  // of the namespace
  Claims space = f.engine->claims("n", Policy{}).value();
  const auto claim = [&] {
    const ClaimOutcome outcome = space.claim({.key = "k"});
    if (outcome.error != ErrorCode::ok) failed.store(true, std::memory_order_seq_cst);  // mo: below
    answered.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst: read by the test's thread
  };
  std::thread first{claim};
  f.journal.until_waits(2);
  std::thread repeat{claim};
  f.journal.until_waits(3);
  CHECK(answered.load(std::memory_order_seq_cst) == 0);  // mo: seq_cst: as above
  f.journal.confirm(2);
  first.join();
  repeat.join();
  CHECK_FALSE(failed.load(std::memory_order_seq_cst));  // mo: seq_cst: as above
  const auto waits = f.journal.waits();
  REQUIRE(waits.size() == 3);
  CHECK(waits[1].ticket == 2);
  CHECK(waits[2].ticket == 2);  // the repeat rests on the append of the first
  CHECK(waits[0].level == Durability::synced);
}

TEST_CASE("durability: each kind of call waits at the engine's level", "[engine][durability]") {
  Fixture f{Durability::logged};
  f.journal.confirm(~Ticket{0});
  Store store = f.engine->store();
  Claims claims = f.engine->claims("n", Policy{}).value();
  std::size_t seen = f.journal.waits().size();
  const auto waited = [&] {
    const auto waits = f.journal.waits();
    const bool more = waits.size() > seen && waits.back().level == Durability::logged &&
                      waits.back().ticket == f.journal.newest();
    seen = waits.size();
    return more;
  };
  REQUIRE(store.set("a", "1").ok());
  CHECK(waited());
  REQUIRE(store.get("a").ok());
  CHECK(waited());
  REQUIRE(store.incr_by("n", 1).ok());
  CHECK(waited());
  const KeyValue pairs[] = {{"x", "1"}, {"y", "2"}};
  REQUIRE(store.mset(pairs));
  CHECK(waited());
  const Bytes keys[] = {"x", "y"};
  REQUIRE(store.mget(keys));
  CHECK(waited());
  REQUIRE(store.rename("x", "z"));
  CHECK(waited());
  const ClaimOutcome claim = claims.claim({.key = "c"});
  CHECK(waited());
  CHECK(claims.complete({.key = "c", .epoch = claim.epoch}).answer == OwnerAnswer::ok);
  CHECK(waited());
  REQUIRE(claims.get("c"));
  CHECK(waited());
  const ClaimRequest requests[] = {{.key = "d"}, {.key = "e"}};
  ClaimOutcome outcomes[2];
  claims.claim(requests, outcomes);
  CHECK(waited());
  const ClaimRequest others[] = {{.key = "f"}, {.key = "g"}};
  CHECK(claims.claim_all(others, outcomes));
  CHECK(waited());
  REQUIRE(claims.forget("f").ok());
  CHECK(waited());
  REQUIRE(f.engine->swap_db(0, 1));
  CHECK(waited());
  CHECK(f.engine->flush(1).value() > 0);
  CHECK(waited());
  REQUIRE(f.engine->confirm(Durability::synced));
  CHECK(f.journal.waits().back().level == Durability::synced);
}

TEST_CASE("durability: at level memory no call waits", "[engine][durability]") {
  Fixture f{Durability::memory};
  REQUIRE(f.engine->store().set("a", "1").ok());
  REQUIRE(f.engine->store().get("a").ok());
  CHECK(f.journal.waits().empty());
}

TEST_CASE("durability: a writer is paced once, before it waits; a reader is not",
          "[engine][durability]") {
  const Durability level = GENERATE(Durability::logged, Durability::synced);
  TracingJournal journal;
  ManualClock clock;
  const auto engine = Engine::open({.clock = &clock,
                                    .journal = &journal,
                                    .durability = level,
                                    .memory_bytes = std::size_t{16} << 20})
                          .value();
  Store store = engine->store();
  Claims claims = engine->claims("n", Policy{}).value();
  CHECK(journal.trace() == "apw");  // a namespace is a change like others

  REQUIRE(store.set("a", "1").ok());
  CHECK(journal.trace() == "apw");
  REQUIRE(store.get("a").ok());
  CHECK(journal.trace() == "w");  // what was appended before is not its own
  REQUIRE(store.exists("a").ok());
  REQUIRE(store.ttl("none"));
  REQUIRE(claims.get("none"));
  CHECK(journal.trace() == "www");
  REQUIRE(store.set("a", "2", {.condition = Condition::if_absent}).ok());
  REQUIRE(store.del("none").ok());
  CHECK(journal.trace() == "ww");  // they would have written
  REQUIRE(store.incr_by("n", 1).ok());
  REQUIRE(store.del("n").ok());
  CHECK(journal.trace() == "apwapw");

  const ClaimOutcome claim = claims.claim({.key = "c"});
  CHECK(journal.trace() == "apw");
  CHECK(claims.claim({.key = "c"}).answer == ClaimAnswer::in_flight);
  CHECK(journal.trace() == "w");
  CHECK(claims.complete({.key = "c", .epoch = claim.epoch}).answer == OwnerAnswer::ok);
  CHECK(journal.trace() == "apw");

  // Together, as a group in one append; and one after the other.
  const KeyValue pairs[] = {{"x", "1"}, {"y", "2"}};
  REQUIRE(store.mset(pairs));
  CHECK(journal.trace() == "apw");
  const Bytes keys[] = {"x", "y"};
  REQUIRE(store.mget(keys));
  CHECK(journal.trace() == "w");
  const ClaimRequest requests[] = {{.key = "d"}, {.key = "e"}};
  ClaimOutcome outcomes[2];
  claims.claim(requests, outcomes);
  CHECK(journal.trace() == "aapw");
  claims.claim(requests, outcomes);
  CHECK(journal.trace() == "w");
  const ClaimRequest others[] = {{.key = "f"}, {.key = "g"}};
  CHECK(claims.claim_all(others, outcomes));
  CHECK(journal.trace() == "apw");
  const StoreOp ops[] = {{.verb = Verb::get, .key = "a"}, {.verb = Verb::exists, .key = "x"}};
  StoreOutcome answers[2];
  engine->host().apply(ops, answers);
  CHECK(journal.trace() == "w");

  // Raised for once, it is still not a change of this thread.
  REQUIRE(engine->confirm(Durability::synced));
  CHECK(journal.trace() == "w");
}

TEST_CASE("durability: at level memory a writer that does not wait is not paced either",
          "[engine][durability]") {
  TracingJournal journal;
  const auto engine =
      Engine::open({.journal = &journal, .memory_bytes = std::size_t{16} << 20}).value();
  REQUIRE(engine->store().set("a", "1").ok());
  const KeyValue pairs[] = {{"x", "1"}, {"y", "2"}};
  REQUIRE(engine->store().mset(pairs));
  const ClaimRequest requests[] = {{.key = "d"}, {.key = "e"}};
  ClaimOutcome outcomes[2];
  engine->claims("n", Policy{}).value().claim(requests, outcomes);
  const StoreOp ops[] = {{.verb = Verb::set, .key = "b", .value = "2"}};
  StoreOutcome answers[1];
  engine->host().apply(ops, answers);
  REQUIRE(engine->store().get("a").ok());
  CHECK(journal.trace() == "aaaaaa");  // the namespace among them
}

TEST_CASE("durability: after an uncommitted section, a lookup waits for all that it saw",
          "[engine][durability]") {
  TracingJournal journal;
  const auto engine = Engine::open({.journal = &journal,
                                    .durability = Durability::synced,
                                    .memory_bytes = std::size_t{16} << 20})
                          .value();
  const auto leave = GENERATE(
      as<std::function<void(Engine&)>>{},
      [](Engine& left) {
        auto section = left.section({});
        StoreOutcome outcome;
        section->apply({.verb = Verb::set, .key = "a"}, outcome);
      },
      [](Engine& left) { REQUIRE(left.flush(0).ok()); },
      [](Engine& left) { REQUIRE(left.swap_db(0, 1)); });
  leave(*engine);
  std::thread{[&] { REQUIRE(engine->store().set("k", "1").ok()); }}.join();
  const Ticket of_another = journal.newest();
  static_cast<void>(journal.trace());
  REQUIRE(engine->store().get("k").value() == "1");
  CHECK(journal.waited_for() == of_another);
  CHECK(journal.trace() == "w");
}

TEST_CASE("durability: a wait that fails is outcome_unknown, and the change stays visible",
          "[engine][durability]") {
  Fixture f;
  f.journal.fail();
  CHECK(f.engine->claims("n", Policy{}).error().code == ErrorCode::outcome_unknown);
  Claims claims = f.engine->claims("n").value();  // and it is there, as what is set below
  const auto set = f.engine->store().set("a", "1");
  REQUIRE_FALSE(set.ok());
  CHECK(set.error().code == ErrorCode::outcome_unknown);
  CHECK(claims.claim({.key = "k"}).error == ErrorCode::outcome_unknown);
  CHECK(f.engine->size(0) == 2);
  CHECK(f.engine->swap_db(0, 1).error().code == ErrorCode::outcome_unknown);
  CHECK(f.engine->size(1) == 2);
  CHECK(f.engine->flush(1).error().code == ErrorCode::outcome_unknown);
  CHECK(f.engine->size(1) == 0);
  CHECK(f.engine->confirm(Durability::logged).error().code == ErrorCode::outcome_unknown);
}

TEST_CASE("durability: what is refused says so, however the journal fares",
          "[engine][durability]") {
  Fixture f;
  f.journal.confirm(~Ticket{0});
  REQUIRE(f.engine->store().set("text", "x").ok());
  Claims claims = f.engine->claims("n", Policy{}).value();
  f.journal.refuse();
  f.journal.confirm(0);
  f.journal.fail();
  Store store = f.engine->store();
  CHECK(f.engine->claims("other", Policy{}).error().code == ErrorCode::refused);
  CHECK(store.set("a", "1").error().code == ErrorCode::refused);
  CHECK(store.setnx("a", "1").error().code == ErrorCode::refused);
  CHECK(store.incr_by("text", 1).error().code == ErrorCode::not_an_integer);
  CHECK(claims.claim({.key = "k"}).error == ErrorCode::refused);
  const ClaimRequest requests[] = {{.key = "d"}, {.key = ""}};
  ClaimOutcome outcomes[2];
  claims.claim(requests, outcomes);
  CHECK(outcomes[0].error == ErrorCode::refused);
  CHECK(outcomes[1].error == ErrorCode::key_empty);
  CHECK(f.engine->size(0) == 1);
}

TEST_CASE("durability: a mutation says how long it must be kept", "[engine][durability]") {
  ManualClock clock;
  MemoryJournal journal;
  auto engine =
      Engine::open({.clock = &clock, .journal = &journal, .memory_bytes = std::size_t{16} << 20})
          .value();
  Store store = engine->store();
  const Timestamp now = clock.now();
  REQUIRE(store.set("k", "1", {.expiry = Expiry::in(Millis{1000})}).ok());
  REQUIRE(
      store.set("k", "2", {.expiry = Expiry::in(Millis{10})}).ok());  // the first could come back
  REQUIRE(store.set("k", "3", {.expiry = Expiry::in(Millis{5000})}).ok());
  REQUIRE(store.del("k").value());
  REQUIRE(store.set("k", "4").ok());
  REQUIRE(store.set("k", "5", {.expiry = Expiry::in(Millis{10})}).ok());
  std::vector<Timestamp> kept;
  journal.replay([&](Ticket, const Mutation& mutation) { kept.push_back(mutation.keep_until); });
  CHECK(kept == std::vector<Timestamp>{now + Millis{1000}, now + Millis{1000}, now + Millis{5000},
                                       now + Millis{5000}, no_end, no_end});
}

}  // namespace semel::tests
