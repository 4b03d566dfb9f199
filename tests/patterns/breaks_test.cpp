// What breaks where people build these patterns from Redis' commands today: each story of
// docs/patterns.md is played and must go wrong; then it is played with what Semel has for it, and
// must go right.
//
// Words: a *story* has callers A, B and C, of whom each is a client of one Redis; who is slow,
// paused or dead just says nothing for a while. The order of calls is the interleaving.
#include <string>
#include <string_view>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/consume.hpp"
#include "semel/patterns/json_key.hpp"
#include "semel/patterns/signed_request.hpp"
#include "semel/patterns/token_service.hpp"
#include "tests/patterns/process.hpp"
#include "tests/patterns/story.hpp"

using namespace semel;
using semel::tests::nil;
using semel::tests::ok;
using semel::tests::one;
using semel::tests::Process;
using semel::tests::Redis;
using semel::tests::text;

namespace {

/// Fails to confirm the second append, twice.
class SlowDisk final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override { return ++newest_; }
  Status wait(Ticket ticket, Durability) override {
    if (ticket < 3 || fails_ == 0) return Done{};  // after the namespace's and the claim's
    --fails_;
    return Error{ErrorCode::outcome_unknown, "the disk does not answer"};
  }
  Ticket newest() const override { return newest_; }

 private:
  int fails_ = 2;
  Ticket newest_ = 0;
};

}  // namespace

// --- calls --------------------------------------------------------------------------------------

TEST_CASE("breaks: P1: a lock has no memory, and the duplicate behind it runs again",
          "[patterns][breaks]") {
  int charged = 0;
  Redis redis;
  const auto guarded = [&](std::string_view me) {
    if (redis.say("SET lock:order-1 " + std::string{me} + " NX PX 300000") != ok) return;
    ++charged;
    CHECK(redis.say("DEL lock:order-1") == one);
  };
  guarded("a");
  guarded("b");
  CHECK(charged == 2);

  charged = 0;
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const auto charge = [&] { return "receipt " + text(++charged); };
  CHECK(once(orders, "order-1", charge).value == "receipt 1");
  CHECK(once(orders, "order-1", charge).value == "receipt 1");
  CHECK(charged == 1);
}

TEST_CASE("breaks: P2: the order of members changes the hash, and one call runs twice",
          "[patterns][breaks]") {
  const std::vector<Bytes> bodies{R"({"from":"x","sum":10})", R"({"sum":10,"from":"x"})"};
  int moved = 0;
  Redis redis;
  for (const Bytes body : bodies) {
    if (redis.say("SET call:/transfer:u7:" + md5_hex(body) + " 1 NX PX 10000") == ok) ++moved;
  }
  CHECK(moved == 2);

  moved = 0;
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const Scope scope{.user = "u7", .needs_user = true};
  for (const Bytes body : bodies) {
    const auto key = scoped_key(scope, composite_key({"/transfer", *canonical_json(body)}));
    CHECK(once(calls, *key, [&] { ++moved; }).has_value());
  }
  CHECK(moved == 1);
}

TEST_CASE("breaks: P2: without a user two users share a key, and so do concatenated fields",
          "[patterns][breaks]") {
  Redis redis;
  const std::string no_user;
  const std::string call = "call:/cart:" + no_user + ":" + md5_hex("{}");
  CHECK(redis.say("SET " + call + " answer-of-the-first NX GET PX 10000") == nil);
  CHECK(redis.say("SET " + call + " answer-of-the-second NX GET PX 10000") ==
        "\"answer-of-the-first\"");
  const std::vector<Scope> scopes{{.tenant = "ab", .user = "c"}, {.tenant = "a", .user = "bc"}};
  const auto glued = [](const Scope& scope, Bytes id) {
    return std::string{scope.tenant}.append(scope.user).append(id);
  };
  CHECK(redis.say("SET " + glued(scopes[0], "7") + " 1 NX PX 10000") == ok);
  CHECK(redis.say("SET " + glued(scopes[1], "7") + " 1 NX PX 10000") == nil);

  CHECK(scoped_key({.user = no_user, .needs_user = true}, "{}").error().code ==
        ErrorCode::key_empty);
  Process process;
  Claims calls = process.claims("calls", policies::call);
  for (const Scope& scope : scopes) {
    CHECK(once(calls, *scoped_key(scope, "7"), [] {}).answer == OnceAnswer::ran);
  }
  CHECK(fingerprint_of(scopes[0], "7") != fingerprint_of(scopes[1], "7"));
}

// --- tokens -------------------------------------------------------------------------------------

TEST_CASE("breaks: P3: a failed run burns the token", "[patterns][breaks]") {
  int paid = 0;
  int tries = 0;
  const auto pay = [&]() -> Result<int> {
    if (++tries == 1) return Error{ErrorCode::timed_out, "the bank is slow"};
    return ++paid;
  };
  Redis redis;
  CHECK(redis.say("SET token:t 1 PX 6000") == ok);
  for (int i = 0; i < 2; ++i) {
    if (redis.say("DEL token:t") == one) static_cast<void>(pay());
  }
  CHECK(tries == 1);
  CHECK(paid == 0);  // and never will be

  tries = 0;
  Process process;
  TokenService tokens = TokenService::open(process.claims("tokens", policies::token)).value();
  const std::string token = tokens.issue().value();
  CHECK(tokens.redeem(token, pay).answer == OnceAnswer::failed);
  CHECK(tokens.redeem(token, pay).answer == OnceAnswer::ran);
  CHECK(tokens.redeem(token, pay).answer == OnceAnswer::replayed);
  CHECK(paid == 1);
}

TEST_CASE("breaks: P3: a spent token and a forged one look the same", "[patterns][breaks]") {
  Redis redis;
  CHECK(redis.say("SET token:t 1 PX 6000") == ok);
  CHECK(redis.say("DEL token:t") == one);
  const std::string spent = redis.say("DEL token:t");
  CHECK(spent == redis.say("DEL token:forged"));

  Process process;
  TokenService tokens = TokenService::open(process.claims("tokens", policies::token)).value();
  const std::string token = tokens.issue().value();
  CHECK(tokens.redeem(token, [] { return 12; }).value == 12);
  CHECK(tokens.reserve(token).answer == TokenAnswer::spent);
  CHECK(tokens.reserve("forged").answer == TokenAnswer::unknown);
}

TEST_CASE("breaks: P3b: a crash between INCR and the run uses the token for nothing",
          "[patterns][breaks][crash]") {
  int runs = 0;
  Redis redis;
  CHECK(redis.say("INCR token:t") == one);            // issued
  CHECK(redis.say("INCR token:t") == "(integer) 2");  // the first use, whose process ends here
  if (redis.say("INCR token:t") == "(integer) 2") ++runs;
  redis.later(Millis{365LL * 86'400'000});
  if (redis.say("INCR token:t") == "(integer) 2") ++runs;
  CHECK(runs == 0);

  Process process;
  {
    TokenService tokens = TokenService::open(process.claims("tokens", policies::token)).value();
    CHECK(tokens.count("t")->count == 1);
    CHECK(tokens.count("t")->count == 2);
  }
  process.restart();
  TokenService tokens = TokenService::open(process.claims("tokens", policies::token)).value();
  const TokenCount again = tokens.count("t").value();
  CHECK(again.count == 2);
  process.effect("run");
  CHECK(tokens.spend("t", again.epoch).answer == OwnerAnswer::ok);
  CHECK(tokens.count("t")->count == 3);
  CHECK(process.count("run") == 1);
}

// --- messages -----------------------------------------------------------------------------------

TEST_CASE("breaks: P4: a stale owner overwrites a newer one", "[patterns][breaks]") {
  Redis redis;
  CHECK(redis.say("SET m CONSUMING NX GET PX 60000") == nil);  // A, who is slow
  redis.later(Millis{60'000});
  CHECK(redis.say("SET m CONSUMING NX GET PX 60000") == nil);  // B
  CHECK(redis.say("SET m CONSUMED:b PX 86400000") == ok);
  CHECK(redis.say("SET m CONSUMED:a PX 86400000") == ok);  // A, at last
  CHECK(redis.say("GET m") == "\"CONSUMED:a\"");

  Process process;
  Claims messages = process.claims("mq", policies::message);
  const ClaimOutcome a = messages.claim({.key = "m"});
  process.clock().advance(Millis{60'000});
  const ClaimOutcome b = messages.claim({.key = "m"});
  CHECK(b.takeover);
  CHECK(messages.complete({.key = "m", .epoch = b.epoch, .payload = "b"}).answer ==
        OwnerAnswer::ok);
  const OwnerOutcome late = messages.complete({.key = "m", .epoch = a.epoch, .payload = "a"});
  CHECK(late.answer == OwnerAnswer::stale_owner);
  CHECK(late.result == "b");  // and gets the result of the new owner
  CHECK(messages.claim({.key = "m"}).result == "b");
}

TEST_CASE("breaks: P4: a stale owner deletes a newer one's mark, and the message runs again",
          "[patterns][breaks]") {
  int paid = 0;
  Redis redis;
  CHECK(redis.say("SET m CONSUMING NX GET PX 60000") == nil);  // A, who is slow, and will fail
  redis.later(Millis{60'000});
  if (redis.say("SET m CONSUMING NX GET PX 60000") == nil) ++paid;  // B
  CHECK(redis.say("SET m CONSUMED PX 86400000") == ok);
  CHECK(redis.say("DEL m") == one);                                 // A
  if (redis.say("SET m CONSUMING NX GET PX 60000") == nil) ++paid;  // the broker's next delivery
  CHECK(paid == 2);

  paid = 0;
  Process process;
  Claims messages = process.claims("mq", policies::message);
  const Consumed a = consume_once(messages, {.id = "m"}, [&] {
    process.clock().advance(Millis{60'000});
    CHECK(consume_once(messages, {.id = "m"}, [&] { ++paid; }).verdict == Verdict::ack);
    return false;  // A fails
  });
  CHECK(a.verdict != Verdict::ack);
  CHECK(consume_once(messages, {.id = "m"}, [&] { ++paid; }).verdict == Verdict::ack_duplicate);
  CHECK(paid == 1);
}

TEST_CASE("breaks: P4: a mark that could not be written is swallowed, and the message runs again",
          "[patterns][breaks]") {
  // The server is full when the message is done: no room for the mark and its result.
  int paid = 0;
  Redis redis{{.memory_bytes = limits::memory_bytes_min}};
  const auto consume = [&] {
    if (redis.say("SET m CONSUMING NX GET PX 60000") != nil) return;
    ++paid;
    for (int i = 0; redis.say("SET fill" + text(i) + " " + std::string(100'000, 'x')) == ok; ++i) {
    }
    // What the client's library throws here is logged, and the message is acknowledged.
    CHECK(redis.say("SET m " + std::string(1'000'000, 'r') + " PX 86400000")
              .starts_with("(error) OOM"));
  };
  consume();
  redis.later(Millis{60'000});
  consume();
  CHECK(paid == 2);

  // The same machine: the outcome has the result of the run, and the error that it was not written.
  ManualClock clock;
  const auto small =
      Engine::open({.clock = &clock, .memory_bytes = limits::memory_bytes_min}).value();
  Claims results = small->claims("mq", policies::message).value();
  const auto outcome = once(results, "m", [&] {
    Store store = small->store();
    for (int i = 0; store.set("fill" + text(i), std::string(100'000, 'x')).has_value(); ++i) {
    }
    return std::string(1'000'000, 'r');
  });
  CHECK(outcome.answer == OnceAnswer::ran);  // and is not run again, though there is no room for it
  CHECK(outcome.error.code == ErrorCode::result_not_kept);
  CHECK(outcome.has_value());
  clock.advance(Millis{60'000});
  int again = 0;
  CHECK(once(results, "m", [&] { return std::to_string(++again); }).answer == OnceAnswer::expired);
  CHECK(again == 0);

  // And what is only slow to be confirmed is asked for again.
  paid = 0;
  SlowDisk journal;
  const auto engine =
      Engine::open({.clock = &clock, .journal = &journal, .durability = Durability::logged})
          .value();
  Claims messages = engine->claims("mq", policies::message).value();
  const Consumed first = consume_once(messages, {.id = "m"}, [&] { ++paid; });
  CHECK(first.verdict == Verdict::ack);
  CHECK(first.answer == OnceAnswer::ran);
  clock.advance(Millis{60'000});
  CHECK(consume_once(messages, {.id = "m"}, [&] { ++paid; }).verdict == Verdict::ack_duplicate);
  CHECK(paid == 1);
}

TEST_CASE("breaks: P4: before Redis 7 it is two calls, and two consumers find nothing",
          "[patterns][breaks]") {
  int paid = 0;
  Redis redis;
  const std::string a = redis.say("GET m");
  const std::string b = redis.say("GET m");
  for (const std::string& seen : {a, b}) {
    if (seen != nil) continue;
    CHECK(redis.say("SET m CONSUMING PX 60000") == ok);
    ++paid;
  }
  CHECK(paid == 2);

  Process process;
  Claims messages = process.claims("mq", policies::message);
  CHECK(messages.claim({.key = "m"}).answer == ClaimAnswer::granted);
  CHECK(messages.claim({.key = "m"}).answer == ClaimAnswer::in_flight);
}

// --- counters, batches, steps --------------------------------------------------------------------

TEST_CASE("breaks: P13: a crash between INCR and EXPIRE leaves a counter for ever",
          "[patterns][breaks][crash]") {
  Redis redis;
  CHECK(redis.say("INCR tries:m") == one);  // the process ends before EXPIRE
  redis.later(Millis{365LL * 86'400'000});
  CHECK(redis.say("TTL tries:m") == "(integer) -1");
  CHECK(redis.say("INCR tries:m") == "(integer) 2");  // another message of that id, a year later

  Process process;
  {
    Claims messages = process.claims("mq", policies::message);
    CHECK(messages.claim({.key = "m"}).attempt == 1);
  }
  process.restart();
  Claims messages = process.claims("mq", policies::message);
  CHECK(messages.get("m")->attempts == 1);
  process.clock().advance(Millis{365LL * 86'400'000});
  CHECK(messages.claim({.key = "m"}).attempt == 1);  // nothing is left of a year ago
}

TEST_CASE("breaks: P13: a message that kills its process before INCR is never given up",
          "[patterns][breaks][crash]") {
  constexpr int deliveries = 40;
  int crashes = 0;
  Redis redis;
  for (int i = 0; i < deliveries; ++i) {
    if (redis.say("GET tries:m") == "\"16\"") break;
    CHECK(redis.say("SET m CONSUMING NX GET PX 60000") == nil);
    ++crashes;  // at the message, before it is counted
    redis.later(Millis{60'000});
  }
  CHECK(crashes == deliveries);

  crashes = 0;
  Process process;
  for (int i = 0; i < deliveries; ++i) {
    Claims messages = process.claims("mq", policies::message);
    const ClaimOutcome claim = messages.claim({.key = "m"});
    if (claim.answer != ClaimAnswer::granted) {
      CHECK(claim.answer == ClaimAnswer::kept_failure);
      CHECK(claim.poison);
      break;
    }
    ++crashes;
    process.restart();
  }
  CHECK(crashes == 16);
  Claims messages = process.claims("mq", policies::message);
  CHECK(consume_once(messages, {.id = "m"}, [] {}).verdict == Verdict::dead_letter);
}

TEST_CASE("breaks: P14: a batch of N messages is 2 N round trips", "[patterns][breaks]") {
  constexpr int messages = 50;
  Redis naive;
  for (int i = 0; i < messages; ++i) {
    CHECK(naive.say("SET m" + text(i) + " CONSUMING NX GET PX 60000") == nil);
    CHECK(naive.say("SET m" + text(i) + " CONSUMED PX 86400000") == ok);
  }
  CHECK(naive.calls() == 2 * messages);
  CHECK(naive.say("INFO commandstats").find("cmdstat_set:calls=100,") != std::string::npos);

  Redis redis;
  std::string claims = "SEMEL.CLAIMS mq KEYS " + text(messages);
  for (int i = 0; i < messages; ++i) claims += " m" + text(i);
  CHECK(redis.say(claims).starts_with("["));
  std::string completes = "SEMEL.COMPLETES mq " + text(messages);
  Claims same = redis.local().engine().claims("mq", Policy{}).value();
  for (int i = 0; i < messages; ++i) {
    completes +=
        " m" + text(i) + " " + text(static_cast<std::int64_t>(same.get("m" + text(i))->epoch));
    completes += " done";
  }
  CHECK(redis.say(completes).starts_with("["));
  CHECK(redis.calls() == 2);
  CHECK(same.claim({.key = "m49"}).result == "done");

  Process process;
  Claims mq = process.claims("mq", policies::message);
  std::vector<std::string> ids;
  for (int i = 0; i < messages; ++i) ids.push_back("m" + text(i));
  std::vector<Message> batch;
  for (const std::string& id : ids) batch.push_back({.id = id});
  int handled = 0;
  const auto consumed = consume_batch(mq, batch, [&](const Message&) { ++handled; });
  CHECK(handled == messages);
  for (const Consumed& each : consumed) CHECK(each.verdict == Verdict::ack);
}

TEST_CASE("breaks: steps: a former owner writes memos that the next one believes",
          "[patterns][breaks]") {
  Redis redis;
  CHECK(redis.say("SET m CONSUMING NX GET PX 60000") == nil);  // A
  redis.later(Millis{60'000});
  CHECK(redis.say("SET m CONSUMING NX GET PX 60000") == nil);     // B
  CHECK(redis.say("HSET steps:m charge receipt-of-a") == one);    // A, who will be rolled back
  CHECK(redis.say("HGET steps:m charge") == "\"receipt-of-a\"");  // B charges nothing

  Process process;
  Claims claims = process.claims("mq", policies::message);
  const ClaimOutcome a = claims.claim({.key = "m"});
  process.clock().advance(Millis{60'000});
  const ClaimOutcome b = claims.claim({.key = "m"});
  Steps of_a{claims, "m", a.epoch};
  Steps of_b{claims, "m", b.epoch};
  CHECK(of_a.remember("charge", "receipt of a").error().code == ErrorCode::not_owner);
  CHECK(of_b.run("charge", [] { return std::string{"receipt of b"}; }).value() == "receipt of b");
}
