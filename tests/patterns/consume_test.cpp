// consume_once(): a message that is delivered at least once has its effect once.
#include "semel/consume.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <stdexcept>

#include "tests/patterns/world.hpp"

using namespace semel;
using semel::tests::World;

namespace {

constexpr Message message{.id = "m-1"};

}  // namespace

TEST_CASE("consume: the first delivery is handled, the others are duplicates",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  int handled = 0;
  const auto handle = [&] { ++handled; };
  const Consumed first = consume_once(claims, message, handle);
  CHECK(first.verdict == Verdict::ack);
  CHECK(first.answer == OnceAnswer::ran);
  CHECK(first.attempts == 1);
  CHECK(consume_once(claims, message, handle).verdict == Verdict::ack_duplicate);
  world.clock().advance(Millis{86'399'999});
  CHECK(consume_once(claims, message, handle).verdict == Verdict::ack_duplicate);
  CHECK(handled == 1);
}

TEST_CASE("consume: a delivery beside one that is handled comes back later",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  Consumed inner;
  const Consumed outer = consume_once(claims, message, [&] {
    inner = consume_once(claims, message, [] { FAIL("handled twice at once"); });
  });
  CHECK(outer.verdict == Verdict::ack);
  CHECK(inner.verdict == Verdict::retry_later);
  CHECK(inner.retry_after == Millis{1'000});
}

TEST_CASE("consume: what a handler returns is what the broker is told", "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  const auto verdict = [&](Bytes id, auto handler) {
    return consume_once(claims, {.id = id}, handler);
  };
  CHECK(verdict("a", [] { return true; }).verdict == Verdict::ack);
  CHECK(verdict("b", [] { return false; }).verdict == Verdict::retry_later);
  const Consumed failed = verdict("c", []() -> Status {
    return Error{ErrorCode::timed_out, "bank"};
  });
  CHECK(failed.verdict == Verdict::retry_later);
  CHECK(failed.failure == "the deadline passed while waiting: bank");
  CHECK(failed.retry_after == Millis{1'000});
  CHECK(verdict("c", []() -> Status { return Done{}; }).attempts == 2);
  const auto reject = [] { return Rejected{"no such account"}; };
  CHECK(verdict("d", reject).verdict == Verdict::dead_letter);
  const Consumed again = verdict("d", [] { FAIL("it was rejected"); });
  CHECK(again.verdict == Verdict::dead_letter);
  CHECK(again.answer == OnceAnswer::kept_failure);
  CHECK(again.failure == "no such account");
  CHECK(verdict("e", []() -> std::optional<Rejected> { return std::nullopt; }).verdict ==
        Verdict::ack);
}

TEST_CASE("consume: after so many failures a message is a dead letter (P13)",
          "[patterns][consume]") {
  World world;
  Policy policy = policies::message;
  policy.attempts_max = 3;
  Claims claims = world.claims("mq", policy);
  const auto fails = [] { return false; };
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    const Consumed consumed = consume_once(claims, message, fails);
    CHECK(consumed.attempts == attempt);
    CHECK(consumed.verdict == (attempt < 3 ? Verdict::retry_later : Verdict::dead_letter));
  }
  const Consumed after = consume_once(claims, message, [] { FAIL("it is a dead letter"); });
  CHECK(after.verdict == Verdict::dead_letter);
  CHECK(after.attempts == 3);
}

TEST_CASE("consume: owners that go silent count as failures, too (P13)", "[patterns][consume]") {
  World world;
  Policy policy = policies::message;
  policy.attempts_max = 2;
  Claims claims = world.claims("mq", policy);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(claims.claim({.key = message.id}).answer == ClaimAnswer::granted);
    world.clock().advance(Millis{60'000});
  }
  const Consumed after = consume_once(claims, message, [] { FAIL("it is poison"); });
  CHECK(after.verdict == Verdict::dead_letter);
  CHECK(after.attempts == 2);
}

TEST_CASE("consume: a handler that throws leaves the message for another try",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  CHECK_THROWS_AS(consume_once(claims, message, [] { throw std::runtime_error{"gone"}; }),
                  std::runtime_error);
  const Consumed next = consume_once(claims, message, [] {});
  CHECK(next.verdict == Verdict::ack);
  CHECK(next.attempts == 2);
}

TEST_CASE("consume: a message without an id runs unguarded and says so, or is a dead letter",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  const Consumed open = consume_once(claims, Message{}, [] {});
  CHECK(open.verdict == Verdict::ack);
  CHECK(open.unguarded);
  CHECK(open.answer == OnceAnswer::unguarded);
  const Consumed closed =
      consume_once(claims, Message{}, [] { FAIL("it has no id"); }, {.refuse_without_id = true});
  CHECK(closed.verdict == Verdict::dead_letter);
  CHECK(closed.error.code == ErrorCode::key_empty);
}

TEST_CASE("consume: another payload with a known id is a dead letter (case F)",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  Message one{.id = "m", .fingerprint = {.algorithm = 1}};
  CHECK(consume_once(claims, one, [] {}).verdict == Verdict::ack);
  one.fingerprint.digest[3] = 9;
  const Consumed other = consume_once(claims, one, [] { FAIL("another payload"); });
  CHECK(other.verdict == Verdict::dead_letter);
  CHECK(other.answer == OnceAnswer::mismatch);
}

TEST_CASE("consume: a slow handler that was taken over is not acknowledged twice (case B)",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  const Consumed slow = consume_once(claims, message, [&] {
    world.clock().advance(Millis{60'000});
    // The newer owner is still at it.
    REQUIRE(claims.claim({.key = message.id}).answer == ClaimAnswer::granted);
  });
  CHECK(slow.answer == OnceAnswer::superseded);
  CHECK(slow.verdict == Verdict::retry_later);
}

TEST_CASE("consume: a full machine sends the message back, and does not lose it (case H)",
          "[patterns][consume]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock, .memory_bytes = limits::memory_bytes_min}).value();
  Store store = engine->store();
  for (int i = 0; store.set("f" + std::to_string(i), std::string(50'000, 'x')).has_value(); ++i) {
  }
  for (int i = 0; store.set("s" + std::to_string(i), "x").has_value(); ++i) {
  }
  Claims claims = engine->claims("mq", policies::message).value();
  const Consumed full = consume_once(claims, message, [] { FAIL("there is no room"); });
  CHECK(full.verdict == Verdict::retry_later);
  CHECK(full.error.code == ErrorCode::memory_full);
  CHECK(full.retry_after > Millis{0});
}

TEST_CASE("consume: a batch is claimed at once, handled in order, and twins fold (P14, case K)",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  REQUIRE(consume_once(claims, {.id = "done"}, [] {}).verdict == Verdict::ack);
  const std::vector<Message> batch{
      {.id = "a"}, {.id = "done"}, {.id = "b"}, {.id = "a"}, {.id = "b"}, {}, {.id = "c"}};
  std::vector<std::string> order;
  const std::vector<Consumed> consumed = consume_batch(claims, batch, [&](const Message& one) {
    order.emplace_back(one.id);
    return one.id != "b";
  });
  CHECK(order == std::vector<std::string>{"a", "b", "", "c"});
  std::vector<Verdict> verdicts;
  for (const Consumed& one : consumed) verdicts.push_back(one.verdict);
  CHECK(verdicts == std::vector<Verdict>{Verdict::ack, Verdict::ack_duplicate, Verdict::retry_later,
                                         Verdict::ack_duplicate, Verdict::retry_later, Verdict::ack,
                                         Verdict::ack});
  CHECK(consumed[5].unguarded);
  CHECK(consume_batch(claims, std::span<const Message>{}, [](const Message&) {}).empty());
}

TEST_CASE("consume: a batch with steps, and a handler that throws in its middle",
          "[patterns][consume]") {
  World world;
  Claims claims = world.claims("mq", policies::message);
  const std::vector<Message> batch{{.id = "a"}, {.id = "b"}, {.id = "c"}};
  CHECK_THROWS(consume_batch(claims, batch, [&](const Message& one, Work& work) {
    if (one.id == "b") throw std::runtime_error{"gone"};
    return work.steps().run("effect", [&] { world.effect(std::string{one.id}); }).has_value();
  }));
  // Those that had not run are free again, and so is the one that had and was not yet marked: its
  // step is not repeated.
  const auto again = consume_batch(claims, batch, [&](const Message& one, Work& work) {
    return work.steps().run("effect", [&] { world.effect(std::string{one.id}); }).has_value();
  });
  for (const Consumed& one : again) {
    CHECK((one.verdict == Verdict::ack || one.verdict == Verdict::ack_duplicate));
  }
  CHECK(world.effects() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("consume: a crash at every step, and a broker that delivers until it is told (case A)",
          "[patterns][consume][crash]") {
  // Three messages, each delivered until it is acknowledged; the process ends at step n, and what
  // it had not acknowledged comes again.
  constexpr std::uint64_t steps_of_a_run = 9;
  for (std::uint64_t steps = 0; steps <= steps_of_a_run; ++steps) {
    World world{steps};
    std::deque<std::string> queue{"a", "b", "c"};
    int crashes = 0;
    while (!queue.empty()) {
      Claims claims = world.claims("mq", policies::message);
      const std::string id = queue.front();
      queue.pop_front();
      bool takeover = false;
      const Consumed consumed = consume_once(claims, {.id = id}, [&](Work& work) {
        takeover = work.takeover();
        // What was taken over asks whether its effect is there: that makes it exactly once.
        if (!takeover || world.count(id) == 0) world.effect(id);
      });
      const bool acknowledged = world.alive() && (consumed.verdict == Verdict::ack ||
                                                  consumed.verdict == Verdict::ack_duplicate);
      if (!acknowledged) queue.push_back(id);
      if (world.alive()) continue;
      ++crashes;
      world.restart();
    }
    CHECK(crashes == (steps < steps_of_a_run ? 1 : 0));
    CHECK(world.count("a") == 1);
    CHECK(world.count("b") == 1);
    CHECK(world.count("c") == 1);
  }
}
