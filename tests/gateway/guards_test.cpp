// What becomes of requests with a key, with a manual clock and no sockets.
#include "gateway/guard/guards.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/rules/work_key.hpp"
#include "semel/patterns/signed_request.hpp"
#include "tests/support/catch.hpp"

namespace {

using semel::ManualClock;
using semel::Millis;
using semel::gateway::Admission;
using semel::gateway::Field;
using semel::gateway::Guard;
using semel::gateway::Guards;
using semel::gateway::Meaning;
using semel::gateway::Outcome;
using semel::gateway::PathPattern;
using semel::gateway::Prepared;
using semel::gateway::Recorded;
using semel::gateway::RecordedReply;
using semel::gateway::Request;
using semel::gateway::Route;
using semel::gateway::SigningKey;
using semel::gateway::Work;

Route route_of(Guard guard, const std::string& name = "pay") {
  Route route;
  route.name = name;
  route.guard = guard;
  route.path = PathPattern::parse("/pay").value();
  return route;
}

/// A gateway without sockets over one engine.
class Gate {
 public:
  explicit Gate(std::vector<Route> routes, std::vector<SigningKey> keys = {})
      : routes_(std::move(routes)),
        engine_(semel::Engine::open({.clock = &clock_}).value()),
        guards_(Guards::open(*engine_, routes_, std::move(keys), std::nullopt).value()) {}

  Prepared prepare(const std::vector<Field>& fields, std::string_view body = "1",
                   std::size_t route = 0) {
    return guards_->prepare(routes_[route], Request{"POST", "/pay", "", fields, body});
  }
  /// Prepares and claims; the outcome of either.
  Outcome ask(const std::vector<Field>& fields, std::string_view body = "1") {
    Prepared prepared = prepare(fields, body);
    if (prepared.refusal) return prepared.refusal->outcome;
    work_ = prepared.work;
    admission_ = guards_->claim(work_);
    return admission_.outcome;
  }

  ManualClock clock_;
  std::vector<Route> routes_;
  std::unique_ptr<semel::Engine> engine_;
  std::unique_ptr<Guards> guards_;
  Work work_;
  Admission admission_;
};

std::vector<Field> alice(std::string_view key) {
  return {{"Authorization", "alice"}, {"Idempotency-Key", key}};
}

const RecordedReply receipt{.status = 201, .fields = {{"X-Receipt", "7"}}, .body = "paid"};

}  // namespace

TEST_CASE("guards: the first is granted, the next waits, later ones get the reply",
          "[gateway][guards]") {
  Gate gate{{route_of(Guard::idempotency_key)}};
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  const Work first = gate.work_;
  CHECK(gate.ask(alice("k")) == Outcome::in_flight);
  CHECK(gate.admission_.refusal->retry_after > Millis{0});
  CHECK(gate.ask(alice("k"), "2") == Outcome::mismatch);
  CHECK(gate.guards_->complete(first, receipt).recorded == Recorded::yes);
  CHECK(gate.ask(alice("k")) == Outcome::replayed);
  CHECK(gate.admission_.reply.status == 201);
  CHECK(gate.admission_.reply.fields == receipt.fields);
  CHECK(gate.admission_.reply.body == "paid");
  CHECK(gate.ask(alice("k"), "2") == Outcome::mismatch);
  CHECK(gate.ask(alice("other")) == Outcome::granted);
}

TEST_CASE("guards: one client never gets another's reply", "[gateway][guards]") {
  Gate gate{{route_of(Guard::idempotency_key)}};
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  CHECK(gate.guards_->complete(gate.work_, receipt).recorded == Recorded::yes);
  CHECK(gate.ask({{"Authorization", "bob"}, {"Idempotency-Key", "k"}}) == Outcome::granted);
  CHECK(gate.ask({{"Idempotency-Key", "k"}}) == Outcome::scope_missing);
}

TEST_CASE("guards: a missing or bad key is refused before the body", "[gateway][guards]") {
  Gate gate{{route_of(Guard::idempotency_key)}};
  CHECK(gate.ask({{"Authorization", "alice"}}) == Outcome::key_missing);
  CHECK(gate.ask(alice("a b")) == Outcome::key_invalid);
  CHECK(gate.ask({{"Authorization", "a"}, {"Idempotency-Key", "k"}, {"Idempotency-Key", "l"}}) ==
        Outcome::key_invalid);
  Route optional = route_of(Guard::idempotency_key);
  optional.key_required = false;
  Gate lenient{{optional}};
  const Prepared prepared = lenient.prepare({{"Authorization", "alice"}});
  CHECK_FALSE(prepared.refusal);
  CHECK_FALSE(prepared.work.is_claimed);
}

TEST_CASE("guards: what was not sent is free again, a doubt is not", "[gateway][guards]") {
  Gate gate{{route_of(Guard::idempotency_key)}};
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  gate.guards_->release(gate.work_);
  REQUIRE(gate.ask(alice("k"), "2") == Outcome::granted);
  CHECK(gate.guards_->doubt(gate.work_, "no reply"));
  CHECK(gate.ask(alice("k"), "2") == Outcome::in_doubt);
  gate.clock_.advance(Millis{100LL * 86'400'000});
  CHECK(gate.ask(alice("k"), "2") == Outcome::in_doubt);
}

TEST_CASE("guards: an operator ends a doubt, and nothing else", "[gateway][guards]") {
  Gate gate{{route_of(Guard::idempotency_key)}};
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  const Work work = gate.work_;
  CHECK_FALSE(gate.guards_->resolve("pay", work.key, false).ok());
  CHECK(gate.guards_->doubt(work, "no reply"));
  CHECK_FALSE(gate.guards_->resolve("other", work.key, false).ok());
  CHECK_FALSE(gate.guards_->resolve("pay", "x", false).ok());
  CHECK(gate.guards_->resolve("pay", work.key, false).ok());
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  CHECK(gate.guards_->doubt(gate.work_, "no reply"));
  CHECK(gate.guards_->resolve("pay", work.key, true).ok());
  CHECK(gate.ask(alice("k")) == Outcome::reply_not_kept);
}

TEST_CASE("guards: a lease that ended is a doubt or free, as the route says", "[gateway][guards]") {
  for (const Meaning meaning : {Meaning::in_doubt, Meaning::release}) {
    Route route = route_of(Guard::idempotency_key);
    route.on_lease_end = meaning;
    Gate gate{{route}};
    REQUIRE(gate.ask(alice("k")) == Outcome::granted);
    const Work stale = gate.work_;
    gate.clock_.advance(route.lease - Millis{1});
    CHECK(gate.ask(alice("k")) == Outcome::in_flight);
    gate.clock_.advance(Millis{1});
    const bool is_doubt = meaning == Meaning::in_doubt;
    REQUIRE(gate.ask(alice("k")) == (is_doubt ? Outcome::in_doubt : Outcome::granted));
    if (is_doubt) continue;
    CHECK(gate.guards_->complete(gate.work_, receipt).recorded == Recorded::yes);
    const auto late = gate.guards_->complete(stale, {.status = 500});
    CHECK(late.recorded == Recorded::superseded);
    REQUIRE(late.newer);
    CHECK(late.newer->body == "paid");
    CHECK(gate.ask(alice("k")) == Outcome::replayed);
    CHECK(gate.admission_.reply.status == 201);
  }
}

TEST_CASE("guards: a reply is kept for its time", "[gateway][guards]") {
  Route route = route_of(Guard::idempotency_key);
  route.keep_for = Millis{5'000};
  Gate gate{{route}};
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  CHECK(gate.guards_->complete(gate.work_, receipt).recorded == Recorded::yes);
  gate.clock_.advance(Millis{4'999});
  CHECK(gate.ask(alice("k")) == Outcome::replayed);
  gate.clock_.advance(Millis{1});
  CHECK(gate.ask(alice("k")) == Outcome::granted);
}

TEST_CASE("guards: a reply above the limit is done without its body, or a doubt",
          "[gateway][guards][limits]") {
  for (const auto policy : {semel::gateway::TooLarge::done, semel::gateway::TooLarge::in_doubt}) {
    Route route = route_of(Guard::idempotency_key);
    route.record_bytes = encoded_bytes(receipt);
    route.too_large = policy;
    Gate gate{{route}};
    REQUIRE(gate.ask(alice("n")) == Outcome::granted);
    CHECK(gate.guards_->complete(gate.work_, receipt).recorded == Recorded::yes);
    CHECK(gate.ask(alice("n")) == Outcome::replayed);
    RecordedReply longer = receipt;
    longer.body = "paid!";
    REQUIRE(gate.ask(alice("n+1")) == Outcome::granted);
    CHECK(gate.guards_->complete(gate.work_, longer).recorded == Recorded::yes);
    const bool is_done = policy == semel::gateway::TooLarge::done;
    CHECK(gate.ask(alice("n+1")) == (is_done ? Outcome::reply_not_kept : Outcome::in_doubt));
  }
}

TEST_CASE("guards: of many threads with one key one is granted", "[gateway][guards][race]") {
  Gate gate{{route_of(Guard::idempotency_key)}};
  constexpr int thread_count = 8;
  std::vector<Outcome> outcomes(thread_count);
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      Prepared prepared = gate.prepare(alice("k"));
      outcomes[static_cast<std::size_t>(i)] = gate.guards_->claim(prepared.work).outcome;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::count(outcomes.begin(), outcomes.end(), Outcome::granted) == 1);
  CHECK(std::count(outcomes.begin(), outcomes.end(), Outcome::in_flight) == thread_count - 1);
}

TEST_CASE("guards: a waiter gets the reply, or the work if it was given back",
          "[gateway][guards]") {
  Route route = route_of(Guard::idempotency_key);
  route.wait = Millis{1'000};
  Gate gate{{route}};
  REQUIRE(gate.ask(alice("k")) == Outcome::granted);
  Work first = gate.work_;
  std::vector<Outcome> seen;
  Work waiting = gate.prepare(alice("k")).work;
  const auto wait = [&] {
    gate.guards_->wait(waiting, [&](semel::ClaimOutcome&& outcome) {
      seen.push_back(semel::gateway::admission_of(waiting, std::move(outcome)).outcome);
    });
  };
  wait();
  CHECK(seen.empty());
  gate.guards_->release(first);
  REQUIRE(seen == std::vector{Outcome::granted});
  first = waiting;
  waiting = gate.prepare(alice("k")).work;
  wait();
  gate.clock_.advance(Millis{1'000});
  gate.engine_->advance();
  CHECK(seen.back() == Outcome::in_flight);
  wait();
  CHECK(gate.guards_->complete(first, receipt).recorded == Recorded::yes);
  CHECK(seen.back() == Outcome::replayed);
}

TEST_CASE("guards: an equal request is refused for a time, another is not", "[gateway][guards]") {
  Route route = route_of(Guard::debounce);
  Gate gate{{route}};
  const std::vector<Field> fields{{"Authorization", "alice"}};
  REQUIRE(gate.ask(fields) == Outcome::granted);
  CHECK(gate.ask(fields) == Outcome::debounced);
  CHECK(gate.ask(fields, "2") == Outcome::granted);
  CHECK(gate.ask({{"Authorization", "bob"}}) == Outcome::granted);
  gate.clock_.advance(route.debounce - Millis{1});
  CHECK(gate.ask(fields) == Outcome::debounced);
  gate.clock_.advance(Millis{1});
  REQUIRE(gate.ask(fields) == Outcome::granted);
  gate.guards_->release(gate.work_);
  CHECK(gate.ask(fields) == Outcome::granted);
}

TEST_CASE("guards: a form token works once, for whom it was issued", "[gateway][guards][token]") {
  Route issue = route_of(Guard::issue_token, "issue");
  issue.token_route = "form";
  Gate gate{{route_of(Guard::form_token, "form"), issue}};
  const std::vector<Field> who{{"Authorization", "alice"}};
  const auto issued =
      gate.guards_->issue_token(gate.routes_[1], Request{"GET", "/form", "", who, ""});
  REQUIRE_FALSE(issued.refusal);
  const auto with = [&](std::string_view user, std::string_view token) {
    return gate.ask({{"Authorization", user}, {"Semel-Form-Token", token}});
  };
  CHECK(gate.ask(who) == Outcome::token_missing);
  CHECK(with("bob", issued.token) == Outcome::token_unknown);
  CHECK(with("alice", "guessed") == Outcome::token_unknown);
  REQUIRE(with("alice", issued.token) == Outcome::granted);
  gate.guards_->release(gate.work_);
  REQUIRE(with("alice", issued.token) == Outcome::granted);
  const Work owned = gate.work_;
  CHECK(with("alice", issued.token) == Outcome::in_flight);
  CHECK(gate.guards_->complete(owned, receipt).recorded == Recorded::yes);
  CHECK(with("alice", issued.token) == Outcome::replayed);
  const auto late =
      gate.guards_->issue_token(gate.routes_[1], Request{"GET", "/form", "", who, ""});
  gate.clock_.advance(gate.routes_[0].token_ttl);
  CHECK(with("alice", late.token) == Outcome::token_unknown);
}

TEST_CASE("guards: a signature is checked, and its nonce used once",
          "[gateway][guards][signature]") {
  Route route = route_of(Guard::pass);
  route.signature.is_required = true;
  route.signature.headers = {"X-Amount"};
  Gate gate{{route}, {{"k1", "0123456789abcdef"}}};
  std::string time;
  std::string signature;
  const auto send = [&](std::string_view nonce, std::string_view amount, std::string_view body,
                        std::string_view secret, std::int64_t unix_ms) {
    std::vector<Field> fields{{"X-Amount", "5"}};
    const Request signed_one{"POST", "/pay", "", fields, "1"};
    const semel::gateway::SignedParts parts{route.signature, signed_one};
    time = std::to_string(unix_ms);
    signature = semel::signature_of({.caller = "k1",
                                     .parameters = parts.fields(),
                                     .timestamp_unix_ms = unix_ms,
                                     .nonce = nonce},
                                    secret);
    fields[0].value = amount;
    fields.push_back({"Semel-Key-Id", "k1"});
    fields.push_back({"Semel-Timestamp", time});
    fields.push_back({"Semel-Nonce", nonce});
    fields.push_back({"Semel-Signature", signature});
    const Prepared prepared = gate.prepare(fields, body);
    return prepared.refusal ? prepared.refusal->outcome : Outcome::passed;
  };
  const std::int64_t now = gate.clock_.unix_ms();
  const std::string_view secret = "0123456789abcdef";
  CHECK(gate.prepare({}).refusal->outcome == Outcome::signature_missing);
  CHECK(send("n1", "6", "1", secret, now) == Outcome::signature_invalid);
  CHECK(send("n1", "5", "2", secret, now) == Outcome::signature_invalid);
  CHECK(send("n1", "5", "1", "another secret ..", now) == Outcome::signature_invalid);
  CHECK(send("n1", "5", "1", secret, now - 60'000) == Outcome::signature_expired);
  CHECK(send("n1", "5", "1", secret, now + 60'001) == Outcome::signature_expired);
  CHECK(send("n1", "5", "1", secret, now) == Outcome::passed);
  CHECK(send("n1", "5", "1", secret, now) == Outcome::nonce_reused);
  CHECK(send("n2", "5", "1", secret, now - 59'999) == Outcome::passed);
}

TEST_CASE("guards: routes that name what is not there are refused", "[gateway][guards]") {
  ManualClock clock;
  const auto engine = semel::Engine::open({.clock = &clock}).value();
  Route signed_route = route_of(Guard::pass);
  signed_route.signature.is_required = true;
  const std::vector<Route> unsigned_keys{signed_route};
  CHECK_FALSE(Guards::open(*engine, unsigned_keys, {}, std::nullopt).ok());
  signed_route.signature.keys = {"k2"};
  const std::vector<Route> other_key{signed_route};
  CHECK_FALSE(Guards::open(*engine, other_key, {{"k1", "secret"}}, std::nullopt).ok());
  Route issue = route_of(Guard::issue_token);
  issue.token_route = "none";
  const std::vector<Route> no_route{issue};
  CHECK_FALSE(Guards::open(*engine, no_route, {}, std::nullopt).ok());
}

TEST_CASE("guards: a full engine refuses, and forgets nothing", "[gateway][guards][limits]") {
  std::vector<Route> routes{route_of(Guard::idempotency_key)};
  ManualClock clock;
  const auto engine =
      semel::Engine::open(
          {.clock = &clock, .memory_bytes = semel::limits::memory_bytes_min, .shard_count = 1})
          .value();
  const auto guards = Guards::open(*engine, routes, {}, std::nullopt).value();
  RecordedReply large = receipt;
  const std::string large_body(std::size_t{64} * 1024, 'x');
  large.body = large_body;
  std::vector<Recorded> recorded;
  const auto claim = [&](std::size_t number) {
    const std::string key = "k" + std::to_string(number);
    const auto fields = alice(key);
    Work work = guards->prepare(routes[0], Request{"POST", "/pay", "", fields, "1"}).work;
    return std::pair{guards->claim(work).outcome, work};
  };
  constexpr std::size_t count_max = 100'000;
  while (recorded.size() < count_max) {
    const auto [outcome, work] = claim(recorded.size());
    if (outcome == Outcome::store_unavailable) break;
    REQUIRE(outcome == Outcome::granted);
    recorded.push_back(guards->complete(work, large).recorded);
  }
  REQUIRE(recorded.size() < count_max);
  std::size_t replayed = 0;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const Outcome outcome = claim(i).first;
    CHECK(outcome != Outcome::granted);
    // What the store did not take stays held, and ends as the route says.
    CHECK((recorded[i] == Recorded::no) == (outcome == Outcome::in_flight));
    replayed += outcome == Outcome::replayed ? 1 : 0;
  }
  CHECK(replayed > 0);
}
