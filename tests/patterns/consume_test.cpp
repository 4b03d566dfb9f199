// consume_once(): a message that is delivered at least once has its effect once.
#include "semel/patterns/consume.hpp"

#include <deque>
#include <stdexcept>
#include "tests/support/catch.hpp"

#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

constexpr Message message{.id = "m-1"};

}  // namespace

TEST_CASE("consume: the first delivery is handled, the others are duplicates",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  int handled = 0;
  const auto handle = [&] { ++handled; };
  const Consumed first = consume_once(claims, message, handle);
  CHECK(first.verdict == Verdict::ack);
  CHECK(first.answer == OnceAnswer::ran);
  CHECK(first.attempts == 1);
  CHECK(consume_once(claims, message, handle).verdict == Verdict::ack_duplicate);
  process.clock().advance(Millis{86'399'999});
  CHECK(consume_once(claims, message, handle).verdict == Verdict::ack_duplicate);
  CHECK(handled == 1);
}

TEST_CASE("consume: a delivery beside one that is handled comes back later",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  Consumed inner;
  const Consumed outer = consume_once(claims, message, [&] {
    inner = consume_once(claims, message, [] { FAIL("handled twice at once"); });
  });
  CHECK(outer.verdict == Verdict::ack);
  CHECK(inner.verdict == Verdict::retry_later);
  CHECK(inner.retry_after == Millis{1'000});
}

TEST_CASE("consume: a failure whose reason is longer than a value is kept without the reason",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  const std::string reason(limits::value_bytes_default + 1, 'x');
  const Consumed rejected = consume_once(claims, message, [&] { return Rejected{reason}; });
  CHECK(rejected.verdict == Verdict::dead_letter);
  CHECK(rejected.error.code == ErrorCode::ok);
  CHECK(rejected.failure.size() == reason.size());
  const Consumed again = consume_once(claims, message, [] { FAIL("it was rejected"); });
  CHECK(again.answer == OnceAnswer::kept_failure);
  CHECK(again.failure.empty());
}

TEST_CASE("consume: the verdict follows from what the handler returns", "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
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
  Process process;
  Policy policy = policies::message;
  policy.attempts_max = 3;
  Claims claims = process.claims("mq", policy);
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
  Process process;
  Policy policy = policies::message;
  policy.attempts_max = 2;
  Claims claims = process.claims("mq", policy);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(claims.claim({.key = message.id}).answer == ClaimAnswer::granted);
    process.clock().advance(Millis{60'000});
  }
  const Consumed after = consume_once(claims, message, [] { FAIL("it is poison"); });
  CHECK(after.verdict == Verdict::dead_letter);
  CHECK(after.attempts == 2);
}

TEST_CASE("consume: a handler that throws leaves the message for another try",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  CHECK_THROWS_AS(consume_once(claims, message, [] { throw std::runtime_error{"gone"}; }),
                  std::runtime_error);
  const Consumed next = consume_once(claims, message, [] {});
  CHECK(next.verdict == Verdict::ack);
  CHECK(next.attempts == 2);
}

TEST_CASE("consume: a message without an id runs unguarded and says so, or is a dead letter",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
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
  Process process;
  Claims claims = process.claims("mq", policies::message);
  Message one{.id = "m", .fingerprint = {.algorithm = 1}};
  CHECK(consume_once(claims, one, [] {}).verdict == Verdict::ack);
  one.fingerprint.digest[3] = 9;
  const Consumed other = consume_once(claims, one, [] { FAIL("another payload"); });
  CHECK(other.verdict == Verdict::dead_letter);
  CHECK(other.answer == OnceAnswer::mismatch);
}

TEST_CASE("consume: a slow handler that was taken over is not acknowledged twice (case B)",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  const Consumed slow = consume_once(claims, message, [&] {
    process.clock().advance(Millis{60'000});
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

TEST_CASE("consume: an error of the consumer, not of the message, is not a dead letter",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  REQUIRE(process.engine().drop_namespace("mq").has_value());
  const Consumed sent_back = consume_once(claims, message, [] { FAIL("nothing guards it"); });
  CHECK(sent_back.error.code == ErrorCode::namespace_dropped);
  CHECK(sent_back.verdict == Verdict::retry_later);
  const std::string long_id(limits::key_bytes_max + 1, 'x');
  Claims anew = process.claims("mq", policies::message);
  const Consumed refused = consume_once(anew, {.id = long_id}, [] { FAIL("nothing guards it"); });
  CHECK(refused.error.code == ErrorCode::key_too_long);
  CHECK(refused.verdict == Verdict::dead_letter);
}

TEST_CASE("consume: a batch is claimed at once, handled in order, and twins fold (P14, case K)",
          "[patterns][consume]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
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

TEST_CASE("consume: a handler that throws in a batch ends its own message alone",
          "[patterns][consume][attack][fault-10]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  const std::vector<Message> batch{{.id = "n1"}, {.id = "n2"}, {.id = "poison"}, {.id = "n3"}};
  const auto handle = [&](const Message& one) {
    if (one.id == "poison") throw std::runtime_error{"gone"};
    process.effect(std::string{one.id});
  };
  for (unsigned round = 1; round <= 17; ++round) {
    const auto consumed = consume_batch(claims, batch, handle);
    const Verdict mine = round == 1 ? Verdict::ack : Verdict::ack_duplicate;
    for (const std::size_t i : {0U, 1U, 3U}) CHECK(consumed[i].verdict == mine);
    if (round == 17) {
      CHECK(consumed[2].verdict == Verdict::dead_letter);  // 16 tries, as for any other failure
      continue;
    }
    CHECK(consumed[2].verdict == Verdict::retry_later);
    CHECK(consumed[2].failure == "exception: gone");
    CHECK_THROWS_AS(std::rethrow_exception(consumed[2].exception), std::runtime_error);
  }
  CHECK(process.effects() == std::vector<std::string>{"n1", "n2", "n3"});
}

TEST_CASE("consume: each message of a batch is done when its own handler has ended",
          "[patterns][consume][attack][fault-10]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  const std::vector<Message> batch{{.id = "a"}, {.id = "b"}};
  static_cast<void>(consume_batch(claims, batch, [&](const Message& one, Work& work) {
    if (one.id == "b") CHECK(claims.get("a")->state == ClaimState::done);
    return work.steps().run("effect", [&] { process.effect(std::string{one.id}); }).has_value();
  }));
  CHECK(process.effects() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("consume: a watchdog keeps the leases of a whole batch",
          "[patterns][consume][watchdog][attack][fault-10]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  Watchdog watchdog{process.engine()};
  const std::vector<Message> batch{{.id = "a"}, {.id = "b"}, {.id = "c"}};
  std::size_t kept = 0;
  int other = 0;
  const auto consumed =
      consume_batch(claims, batch,
                    [&](const Message& one) {
                      if (one.id != "a") return;
                      kept = watchdog.kept();
                      for (int i = 0; i < 7; ++i) {
                        process.clock().advance(Millis{10'000});
                        static_cast<void>(watchdog.poll());
                      }
                      for (const Message& each : batch) {
                        static_cast<void>(consume_once(claims, each, [&] { ++other; }));
                      }
                    },
                    {.watchdog = &watchdog});
  CHECK(kept == 3);
  CHECK(other == 0);
  for (const Consumed& one : consumed) CHECK(one.answer == OnceAnswer::ran);
  CHECK(watchdog.kept() == 0);
}

TEST_CASE("consume: a lease is looked at before its handler starts",
          "[patterns][consume][attack][fault-10]") {
  Process process;
  for (const bool in_doubt : {false, true}) {
    Policy policy = policies::message;
    if (in_doubt) policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
    Claims claims = process.claims(in_doubt ? "doubt" : "mq", policy);
    const std::vector<Message> batch{{.id = "slow"}, {.id = "taken"}, {.id = "free"}};
    std::vector<std::string> handled;
    const auto consumed = consume_batch(claims, batch, [&](const Message& one) {
      handled.emplace_back(one.id);
      if (one.id != "slow") return;
      process.clock().advance(Millis{61'000});
      if (in_doubt) return;
      CHECK(consume_once(claims, batch[1], [&] { handled.push_back("other"); }).verdict ==
            Verdict::ack);
    });
    // What another has handled is not handled again; a message never begun is not in doubt.
    if (in_doubt) {
      CHECK(handled == std::vector<std::string>{"slow", "taken", "free"});
    } else {
      CHECK(handled == std::vector<std::string>{"slow", "other", "free"});
      CHECK(consumed[1].verdict == Verdict::ack_duplicate);
    }
    CHECK(consumed[2].answer == OnceAnswer::ran);
    CHECK(consumed[2].attempts == 1);
  }
}

TEST_CASE("consume: a lease of which a third has passed is renewed before its handler",
          "[patterns][consume][attack][fault-10]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  const std::vector<Message> batch{{.id = "a"}, {.id = "b"}};
  Millis left{0};
  static_cast<void>(consume_batch(claims, batch, [&](const Message& one) {
    if (one.id == "a") process.clock().advance(Millis{59'000});
    if (one.id == "b") left = claims.get("b")->lease_remaining;
  }));
  CHECK(left == Millis{60'000});
}

TEST_CASE("consume: a batch beyond the engine's limit is taken in parts",
          "[patterns][consume][limits][attack][fault-10]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  for (const std::size_t count : {std::size_t{256}, std::size_t{257}, limits::batch_max + 1}) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back(std::to_string(count) + "-" + std::to_string(i));
    }
    std::vector<Message> batch;
    for (const std::string& id : ids) batch.push_back({.id = id});
    batch.push_back({.id = ids.front()});
    std::size_t handled = 0;
    const auto consumed = consume_batch(claims, batch, [&](const Message&) { ++handled; });
    CHECK(handled == count);
    CHECK(consumed[count - 1].verdict == Verdict::ack);
    CHECK(consumed[count].verdict == Verdict::ack_duplicate);
  }
}

TEST_CASE("consume: a twin with another payload is not a duplicate of its first",
          "[patterns][consume][attack][fault-10]") {
  Process process;
  Claims claims = process.claims("mq", policies::message);
  Message other{.id = "m", .fingerprint = {.algorithm = 1}};
  other.fingerprint.digest[3] = 9;
  const std::vector<Message> batch{{.id = "m", .fingerprint = {.algorithm = 1}}, other};
  const auto consumed = consume_batch(claims, batch, [](const Message&) {});
  CHECK(consumed[0].verdict == Verdict::ack);
  CHECK(consumed[1].answer == OnceAnswer::mismatch);
  CHECK(consumed[1].verdict == Verdict::dead_letter);
}

TEST_CASE("consume: the policy says what an exception, or not knowing, means for the message",
          "[patterns][consume][attack][fault-13]") {
  Process process;
  struct Row {
    Bytes name;
    Policy::OnFailure means;
    Verdict verdict;
    OnceAnswer answer;
    Verdict next;
  };
  const Row rows[] = {{"release", Policy::OnFailure::release, Verdict::retry_later,
                       OnceAnswer::failed, Verdict::ack},
                      {"keep", Policy::OnFailure::keep, Verdict::dead_letter, OnceAnswer::failed,
                       Verdict::dead_letter},
                      {"doubt", Policy::OnFailure::in_doubt, Verdict::retry_later,
                       OnceAnswer::in_doubt, Verdict::retry_later}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Policy policy = policies::message;
    policy.on_exception = row.means;
    Claims claims = process.claims(row.name, policy);
    const auto throws = [](const auto&...) { throw std::runtime_error{"gone"}; };
    const auto unsure = []() -> Status { return Error{ErrorCode::outcome_unknown, "504"}; };
    const std::vector<Message> batch{{.id = "thrown"}};
    const Consumed thrown = consume_batch(claims, batch, throws)[0];
    const Consumed unknown = consume_once(claims, {.id = "unknown"}, unsure);
    CHECK_THROWS_AS(consume_once(claims, {.id = "alone"}, [&] { throws(); }), std::runtime_error);
    CHECK(thrown.verdict == row.verdict);
    CHECK(thrown.answer == row.answer);
    CHECK(unknown.verdict == row.verdict);
    CHECK(unknown.answer == row.answer);
    for (const Bytes id : {"thrown", "unknown", "alone"}) {
      CHECK(consume_once(claims, {.id = id}, [] {}).verdict == row.next);
    }
    if (row.means != Policy::OnFailure::in_doubt) continue;
    CHECK(claims.resolve("thrown", Resolution::done).value());
    CHECK(consume_once(claims, batch[0], [] {}).verdict == Verdict::ack_duplicate);
  }
}

TEST_CASE("consume: a crash at every step, and a broker that redelivers until the answer (case A)",
          "[patterns][consume][crash]") {
  // Three messages, each delivered until it is acknowledged; the process ends at step n, and what
  // it had not acknowledged comes again.
  constexpr std::uint64_t steps_of_a_run = 9;
  for (std::uint64_t steps = 0; steps <= steps_of_a_run; ++steps) {
    Process process{steps};
    std::deque<std::string> queue{"a", "b", "c"};
    int crashes = 0;
    while (!queue.empty()) {
      Claims claims = process.claims("mq", policies::message);
      const std::string id = queue.front();
      queue.pop_front();
      bool takeover = false;
      const Consumed consumed = consume_once(claims, {.id = id}, [&](Work& work) {
        takeover = work.takeover();
        // What was taken over asks whether its effect is there: that makes it exactly once.
        if (!takeover || process.count(id) == 0) process.effect(id);
      });
      const bool acknowledged = process.alive() && (consumed.verdict == Verdict::ack ||
                                                    consumed.verdict == Verdict::ack_duplicate);
      if (!acknowledged) queue.push_back(id);
      if (process.alive()) continue;
      ++crashes;
      process.restart();
    }
    CHECK(crashes == (steps < steps_of_a_run ? 1 : 0));
    CHECK(process.count("a") == 1);
    CHECK(process.count("b") == 1);
    CHECK(process.count("c") == 1);
  }
}
