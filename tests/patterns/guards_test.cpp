// Guarded changes: compare_and_set, decrement_if_at_least, transition, SeenBefore.
#include "semel/patterns/guards.hpp"

#include <thread>
#include "tests/support/catch.hpp"

#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

TEST_CASE("compare_and_set: only what nothing has changed since is changed (P9)",
          "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  const CompareResult created = store.compare_and_set("k", 0, "one").value();
  CHECK(created.stored);
  REQUIRE(created.current);
  const Version seen = created.current->version;
  CHECK(store.get_versioned("k").value()->version == seen);
  CHECK_FALSE(store.compare_and_set("k", 0, "two").value().stored);
  const CompareResult changed = store.compare_and_set("k", seen, "two").value();
  CHECK(changed.stored);
  const CompareResult stale = store.compare_and_set("k", seen, "three").value();
  CHECK_FALSE(stale.stored);
  CHECK(stale.current->value == "two");
  CHECK(stale.current->version == changed.current->version);
}

TEST_CASE("compare_and_set: a value that went and came back is not the same (P9)",
          "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  const Version seen = store.compare_and_set("k", 0, "a").value().current->version;
  REQUIRE(store.del("k").value());
  CHECK_FALSE(store.compare_and_set("k", seen, "b").value().stored);
  REQUIRE(store.set("k", "a").has_value());
  CHECK_FALSE(store.compare_and_set("k", seen, "b").value().stored);
  process.restart();
  Store again = process.engine().store();
  CHECK_FALSE(again.compare_and_set("k", seen, "b").value().stored);
  const Version now = again.get_versioned("k").value()->version;
  CHECK(again.compare_and_set("k", now, "b").value().stored);
}

TEST_CASE("compare_and_set: the ttl stays unless it is said, and its change counts as one",
          "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  const Version seen =
      store.compare_and_set("k", 0, "a", Expiry::in(Millis{100})).value().current->version;
  const Version next = store.compare_and_set("k", seen, "b").value().current->version;
  CHECK(store.ttl("k")->remaining == Millis{100});
  REQUIRE(store.expire("k", Expiry::in(Millis{200})).value());
  CHECK_FALSE(store.compare_and_set("k", next, "c").value().stored);
  process.clock().advance(Millis{200});
  CHECK(store.get_versioned("k").value() == std::nullopt);
  CHECK(store.compare_and_set("k", 0, "d").value().stored);
}

TEST_CASE("compare_and_set: many callers add one at a time, and none is lost (P9)",
          "[patterns][guards][race]") {
  Process process;
  constexpr int threads_count = 3;
  constexpr int rounds = 500;
  REQUIRE(process.engine().store().set("n", "0").has_value());
  std::vector<std::thread> threads;
  for (int i = 0; i < threads_count; ++i) {
    threads.emplace_back([&] {
      Store store = process.engine().store();
      for (int done = 0; done < rounds;) {
        const Versioned now = *store.get_versioned("n").value();
        const std::string next = std::to_string(std::stoi(now.value) + 1);
        if (store.compare_and_set("n", now.version, next).value().stored) ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(process.engine().store().get("n").value() == std::to_string(threads_count * rounds));
}

TEST_CASE("compare_and_set: a value that is not a string is refused", "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  REQUIRE(process.engine().hashes().hset("h", "f", "v").has_value());
  CHECK(store.compare_and_set("h", 0, "x").error().code == ErrorCode::wrong_type);
  CHECK(store.compare_and_set("", 0, "x").error().code == ErrorCode::key_empty);
}

TEST_CASE("decrement_if_at_least: never below the floor, on both sides of it (P9)",
          "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  REQUIRE(store.set("balance", "500").has_value());
  const auto take = [&](std::int64_t amount, std::int64_t floor = 0) {
    return decrement_if_at_least(store, "balance", amount, floor).value();
  };
  CHECK(take(300).taken);
  CHECK_FALSE(take(201).taken);
  CHECK(take(201).left == 200);
  CHECK_FALSE(take(101, 100).taken);
  CHECK(take(100, 100).left == 100);
  CHECK(take(100).taken);
  CHECK_FALSE(take(1).taken);
  CHECK(store.get("balance").value() == "0");
  CHECK_FALSE(decrement_if_at_least(store, "absent", 1).value().taken);
  CHECK(store.exists("absent").value() == false);
  CHECK(decrement_if_at_least(store, "balance", 0).error().code == ErrorCode::bad_option);
  CHECK(decrement_if_at_least(store, "balance", -5).error().code == ErrorCode::bad_option);
  REQUIRE(store.set("text", "many").has_value());
  CHECK(decrement_if_at_least(store, "text", 1).error().code == ErrorCode::not_an_integer);
}

TEST_CASE("decrement_if_at_least: many callers never take more than there is (P9)",
          "[patterns][guards][race]") {
  Process process;
  REQUIRE(process.engine().store().set("stock", "1000").has_value());
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Store store = process.engine().store();
      while (decrement_if_at_least(store, "stock", 3).value().taken) {
        taken.fetch_add(3, std::memory_order_relaxed);  // mo: relaxed: read after the joins
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(taken.load(std::memory_order_relaxed) == 999);  // mo: relaxed: as above
  CHECK(process.engine().store().get("stock").value() == "1");
}

TEST_CASE("transition: only from the state that it is in (P10)", "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  const auto move = [&](Bytes from, Bytes to) {
    return transition(store, "order:7", from, to).value();
  };
  CHECK(move("", "new").moved);
  CHECK(move("", "new").state == "new");
  CHECK_FALSE(move("", "new").moved);
  CHECK(move("new", "paid").moved);
  const TransitionResult twice = move("new", "paid");
  CHECK_FALSE(twice.moved);
  CHECK(twice.state == "paid");
  CHECK(move("paid", "sent").state == "sent");
  const TransitionResult nowhere = transition(store, "order:8", "new", "paid").value();
  CHECK_FALSE(nowhere.moved);
  CHECK(nowhere.state.empty());
  CHECK(transition(store, "order:7", "sent", "").error().code == ErrorCode::bad_option);
}

TEST_CASE("transition: a state with an end keeps it, or gets another", "[patterns][guards]") {
  Process process;
  Store store = process.engine().store();
  REQUIRE(transition(store, "k", "", "a", Expiry::in(Millis{50})).value().moved);
  REQUIRE(transition(store, "k", "a", "b").value().moved);
  CHECK(store.ttl("k")->remaining == Millis{50});
  REQUIRE(transition(store, "k", "b", "c", Expiry::in(Millis{90})).value().moved);
  CHECK(store.ttl("k")->remaining == Millis{90});
}

TEST_CASE("seen before: the first of a row's fields within the window (P8)", "[patterns][guards]") {
  Process process;
  SeenBefore rows{process.engine().store(), "rows", Millis{1'000}};
  CHECK(rows.is_first({"invoice", "17"}).value());
  CHECK_FALSE(rows.is_first({"invoice", "17"}).value());
  CHECK(rows.is_first({"invoice1", "7"}).value());
  CHECK(rows.is_first({"in", "voice", "17"}).value());
  CHECK(rows.is_first(std::span<const Bytes>{}).error().code == ErrorCode::key_empty);
  process.clock().advance(Millis{999});
  CHECK_FALSE(rows.is_first({"invoice", "17"}).value());
  process.clock().advance(Millis{1});
  CHECK(rows.is_first({"invoice", "17"}).value());
  const std::vector<Bytes> fields{"invoice", "17"};
  CHECK(rows.forget(fields).value());
  CHECK(rows.is_first(fields).value());
}

TEST_CASE(
    "seen before: a batch is one call, its twins are marked, and a restart forgets nothing (P8)",
    "[patterns][guards]") {
  Process process;
  const std::vector<Bytes> ids{"a", "b", "a", "c"};
  const auto ask = [&] {
    SeenBefore rows{process.engine().store(), "rows", Millis{60'000}};
    std::vector<bool> first;
    for (const Result<bool>& one : rows.are_first(process.engine(), ids)) first.push_back(*one);
    return first;
  };
  CHECK(ask() == std::vector<bool>{true, true, false, true});
  process.restart();
  CHECK(ask() == std::vector<bool>{false, false, false, false});
  SeenBefore rows{process.engine().store(), "rows", Millis{60'000}};
  const std::vector<Bytes> bad{"a", ""};
  CHECK(rows.are_first(process.engine(), bad)[1].has_value());  // an empty field is a field
}

TEST_CASE("seen before: an id that cannot be taken spoils the answer of no other",
          "[patterns][guards][attack][fault-14]") {
  Process process;
  SeenBefore rows{process.engine().store(), "rows", Millis{60'000}};
  const std::string too_long(70'000, 'x');
  const std::vector<Bytes> ids{"a", too_long, "b", "a"};
  const auto first = rows.are_first(process.engine(), ids);
  REQUIRE(first.size() == 4);
  CHECK(first[0].value());
  CHECK(first[1].error().code == ErrorCode::key_too_long);
  CHECK(first[2].value());
  CHECK_FALSE(first[3].value());
}

TEST_CASE("seen before: if memory runs out in a batch, each id is recorded or untouched",
          "[patterns][guards][attack][fault-14]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock, .memory_bytes = limits::memory_bytes_min}).value();
  SeenBefore rows{engine->store(), "rows", Millis{60'000}};
  int seen_first = 0;
  int refused = 0;
  std::vector<std::string> names;
  for (int i = 0; refused == 0 && i < 200'000;) {
    names.clear();
    for (int n = 0; n < 100; ++n) names.push_back("id-with-a-longer-name-" + std::to_string(i++));
    const std::vector<Bytes> ids(names.begin(), names.end());
    for (const Result<bool>& one : rows.are_first(*engine, ids)) {
      one.has_value() ? ++seen_first : ++refused;
      if (one.has_value()) CHECK(*one);
    }
  }
  REQUIRE(refused > 0);
  CHECK(seen_first == static_cast<int>(engine->stats().records));
}

TEST_CASE("seen before: a batch beyond the engine's limit is taken in parts",
          "[patterns][guards][limits][attack][fault-14]") {
  Process process;
  SeenBefore rows{process.engine().store(), "rows", Millis{60'000}};
  const std::vector<Bytes> ids(limits::batch_max + 2, Bytes{"same"});
  const auto first = rows.are_first(process.engine(), ids);
  REQUIRE(first.size() == ids.size());
  CHECK(first.front().value());
  CHECK_FALSE(first.back().value());
}
