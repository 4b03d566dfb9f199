// Calls of the typed faces on the thread of a section: they are a part of it.
#include <atomic>
#include <optional>
#include <thread>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {
namespace {

using namespace std::chrono_literals;

Policy plain_policy() {
  return {};
}

}  // namespace

TEST_CASE("section: calls of store and claims on its thread happen inside", "[engine][section]") {
  ManualClock clock;
  MemoryJournal journal;
  auto engine = Engine::open({.clock = &clock, .journal = &journal}).value();
  Store store = engine->store();
  Claims jobs = engine->claims("jobs", plain_policy()).value();
  REQUIRE(store.set("old", "1").ok());
  const Ticket before = journal.newest();
  {
    auto section = engine->section({});
    REQUIRE(section);
    CHECK(store.set("a", "1").ok());
    CHECK(store.mset(std::vector<KeyValue>{{"b", "2"}, {"c", "3"}}));
    CHECK(store.rename("old", "new"));
    CHECK(*store.incr_by("new", 1) == 2);
    CHECK(jobs.claim({.key = "job"}).answer == ClaimAnswer::granted);
    CHECK(store.keys("*")->size() == 5);
    CHECK(engine->size(0) == 5);
    CHECK(journal.newest() == before);  // nothing has left yet
    CHECK(section->commit());
  }
  CHECK(journal.newest() == before + 1);  // and then as one group
  CHECK(**store.get("c") == "3");
  CHECK_FALSE(*store.exists("old"));
}

TEST_CASE("section: time stands still for the calls inside", "[engine][section]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock}).value();
  Store store = engine->store();
  REQUIRE(store.set("k", "v", {.expiry = Expiry::in(10ms)}).ok());
  {
    auto section = engine->section({});
    clock.advance(10ms);
    CHECK(*store.exists("k"));
    CHECK(store.ttl("k")->remaining == 10ms);
    CHECK(store.keys("*")->size() == 1);
  }
  CHECK_FALSE(*store.exists("k"));
}

TEST_CASE("section: a part of it may not reach for shards that it does not hold",
          "[engine][section]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock, .shard_count = 64}).value();
  const KeyRef one[] = {{0, "one"}};
  auto section = engine->section(one);
  REQUIRE(section);
  const auto all = engine->section({});
  REQUIRE_FALSE(all);
  CHECK(all.error().code == ErrorCode::bad_option);
  CHECK(engine->section(one));
}

TEST_CASE("section: flush and exchange of databases inside it", "[engine][section]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock}).value();
  Store zero = engine->store(0);
  Store one = engine->store(1);
  REQUIRE(zero.set("k", "zero").ok());
  {
    auto section = engine->section({});
    CHECK(engine->swap_db(0, 1));
    CHECK(**one.get("k") == "zero");
    CHECK(engine->flush(std::nullopt).value() == 1);
    CHECK(zero.set("k", "fresh").ok());
  }
  CHECK(**zero.get("k") == "fresh");
  CHECK_FALSE(*one.exists("k"));
  CHECK(engine->host().check_invariants().empty());
}

TEST_CASE("section: a waiter gets its claim when the section has ended", "[engine][section]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock}).value();
  Claims jobs = engine->claims("jobs", plain_policy()).value();
  const ClaimOutcome owner = jobs.claim({.key = "job"});
  REQUIRE(owner.answer == ClaimAnswer::granted);
  int answers = 0;
  jobs.claim_or_wait({.key = "job"}, clock.now() + 1s, [&](ClaimOutcome&& outcome) {
    ++answers;
    CHECK(outcome.answer == ClaimAnswer::replay);
    CHECK(outcome.result == "done");
  });
  {
    auto section = engine->section({});
    CHECK(jobs.complete({.key = "job", .epoch = owner.epoch, .payload = "done"}).answer ==
          OwnerAnswer::ok);
    CHECK(answers == 0);
  }
  CHECK(answers == 1);
}

TEST_CASE("section: a no_wait thread does not wait for one that takes long",
          "[engine][section][race]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock}).value();
  Store store = engine->store();
  REQUIRE(store.set("k", "1", {.expiry = Expiry::in(10ms)}).ok());
  std::atomic<bool> has_ended{false};
  std::optional<Section> section{engine->section({}).value()};
  REQUIRE(store.set("inside", "1").ok());
  std::thread waiting{[&] {
    CHECK(**engine->store().get("inside") == "1");
    CHECK(has_ended.load(std::memory_order_acquire));
  }};
  std::thread no_wait{[&] {
    CHECK_FALSE(engine->host().set_no_wait(true));
    StoreOutcome outcome;
    engine->host().apply({.verb = Verb::get, .key = "k"}, outcome);
    CHECK(outcome.error == ErrorCode::section_held);
    CHECK(engine->store().get("k").error().code == ErrorCode::section_held);
    CHECK(engine->store().keys("*").error().code == ErrorCode::section_held);
    const KeyRef key[] = {{0, "k"}};
    CHECK(engine->section(key).error().code == ErrorCode::section_held);
    CHECK(engine->section({}).error().code == ErrorCode::section_held);
    CHECK(engine->host().set_no_wait(false));
  }};
  section->yield();
  no_wait.join();
  // What ends meanwhile is swept later.
  clock.advance(10ms);
  std::thread sweep{[&] {
    static_cast<void>(engine->host().set_no_wait(true));
    static_cast<void>(engine->advance());
  }};
  sweep.join();
  section->resume();
  CHECK(**store.get("inside") == "1");
  has_ended.store(true, std::memory_order_release);
  section.reset();
  waiting.join();
  static_cast<void>(engine->advance());
  CHECK(engine->stats().records == 1);
}

TEST_CASE("section: several threads read and write in sections over everything",
          "[engine][section][race]") {
  auto engine = Engine::open({}).value();
  REQUIRE(engine->store().set("from", "1000").ok());
  REQUIRE(engine->store().set("to", "0").ok());
  std::atomic<bool> torn{false};
  const auto work = [&] {
    Store store = engine->store();
    for (int i = 0; i < 200; ++i) {
      {
        auto section = engine->section({});
        if (!store.decr_by("from", 1).ok() || !store.incr_by("to", 1).ok()) torn = true;
      }
      const Bytes keys[] = {"from", "to"};
      const auto both = store.mget(keys);
      if (std::stol(*(*both)[0]) + std::stol(*(*both)[1]) != 1000) torn = true;
    }
  };
  std::thread other{work};
  work();
  other.join();
  CHECK_FALSE(torn);
  CHECK(**engine->store().get("to") == "400");
}

}  // namespace semel::tests
