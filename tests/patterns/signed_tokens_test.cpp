// One-time tokens without a store: what they say is believed only if it is signed, and each is
// used once until it is over.
#include "semel/patterns/signed_tokens.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine.hpp"
#include "semel/patterns/signed_request.hpp"
#include "tests/patterns/paused_clock.hpp"

using namespace semel;
using namespace std::chrono_literals;

namespace {

const std::string secret = "0123456789abcdef";

Policy policy_for_tokens() {
  Policy policy;
  policy.lease = 100ms;
  policy.result_ttl = 2000ms;
  policy.failure_ttl = 2000ms;
  policy.attempts_ttl = 2000ms;
  return policy;
}

template <class ClockType = ManualClock>
struct SignedTokenFixture {
  explicit SignedTokenFixture(Policy policy = policy_for_tokens(), Millis ttl = 1000ms)
      : tokens(open(policy, {.ttl = ttl, .secrets = {secret}})) {}
  SignedTokens open(const Policy& policy, SignedTokensOptions options, Bytes name = "tokens") {
    auto opened = SignedTokens::open(*engine->claims(name, policy), std::move(options));
    REQUIRE(opened.has_value());
    return *std::move(opened);
  }
  [[nodiscard]] std::string issue(Bytes subject = "mail-7") { return *tokens.issue(subject); }
  TokenOutcome reserve(const std::string& token) { return tokens.reserve(token, "mail-7"); }

  ClockType clock;
  std::unique_ptr<Engine> engine = *Engine::open({.clock = &clock});
  SignedTokens tokens;
};

}  // namespace

TEST_CASE("signed_tokens: a token is reserved, then spent, and then returns its result",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string token = fixture.issue();
  CHECK(token.starts_with("v1." + std::to_string(fixture.clock.unix_ms() + 1000) + "."));
  CHECK(fixture.engine->stats().records == 0);
  const TokenOutcome mine = fixture.reserve(token);
  REQUIRE(mine.answer == TokenAnswer::reserved);
  CHECK(mine.attempt == 1);
  const TokenOutcome yours = fixture.reserve(token);
  CHECK(yours.answer == TokenAnswer::in_flight);
  CHECK(yours.retry_after > 0ms);
  CHECK(fixture.tokens.spend(token, mine.epoch, "order 9").answer == OwnerAnswer::ok);
  const TokenOutcome again = fixture.reserve(token);
  CHECK(again.answer == TokenAnswer::spent);
  CHECK(again.result == "order 9");
  CHECK(fixture.tokens.spend(token, mine.epoch, "order 10").answer == OwnerAnswer::conflict);
  CHECK(fixture.reserve(fixture.issue()).answer == TokenAnswer::reserved);
}

TEST_CASE("signed_tokens: what is given back can be reserved again, as often as the policy says",
          "[patterns][signed]") {
  Policy policy = policy_for_tokens();
  policy.attempts_max = 2;
  SignedTokenFixture fixture{policy};
  const std::string token = fixture.issue();
  const TokenOutcome first = fixture.reserve(token);
  REQUIRE(first.answer == TokenAnswer::reserved);
  CHECK(fixture.tokens.give_back(token, first.epoch).answer == OwnerAnswer::ok);
  const TokenOutcome second = fixture.reserve(token);
  REQUIRE(second.answer == TokenAnswer::reserved);
  CHECK(second.attempt == 2);
  CHECK(second.epoch > first.epoch);
  CHECK(fixture.tokens.spend(token, first.epoch, "late").answer == OwnerAnswer::stale_owner);
  CHECK(fixture.tokens.give_back(token, second.epoch).answer == OwnerAnswer::ok);
  CHECK(fixture.reserve(token).answer == TokenAnswer::exhausted);
  CHECK(fixture.reserve(token).answer == TokenAnswer::exhausted);
}

TEST_CASE("signed_tokens: a repeated request with the same claim id gets the same epoch",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string token = fixture.issue();
  const TokenReservation reservation{.lease = 50ms, .claim_id = ClaimId{1, 2, 3}, .owner = "me"};
  const TokenOutcome first = fixture.tokens.reserve(token, "mail-7", reservation);
  REQUIRE(first.answer == TokenAnswer::reserved);
  const TokenOutcome again = fixture.tokens.reserve(token, "mail-7", reservation);
  CHECK(again.answer == TokenAnswer::regranted);
  CHECK(again.epoch == first.epoch);
  fixture.clock.advance(49ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::in_flight);
  fixture.clock.advance(1ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::reserved);  // the lease is over
}

TEST_CASE("signed_tokens: a token is over at its end, and its owner can still spend it",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string early = fixture.issue();
  const std::string late = fixture.issue();
  fixture.clock.advance(999ms);
  const TokenOutcome mine = fixture.reserve(early);
  REQUIRE(mine.answer == TokenAnswer::reserved);
  fixture.clock.advance(1ms);
  CHECK(fixture.reserve(late).answer == TokenAnswer::expired);
  CHECK(fixture.reserve(early).answer == TokenAnswer::expired);
  CHECK(fixture.tokens.spend(early, mine.epoch).answer == OwnerAnswer::ok);
  CHECK(fixture.reserve(early).answer == TokenAnswer::expired);
}

TEST_CASE("signed_tokens: no byte of a token can be changed, nor whom it is for",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string token = fixture.issue();
  for (std::size_t i = 0; i < token.size(); ++i) {
    for (const char c : Bytes{"A.0~-"}) {
      std::string changed = token;
      if (changed[i] == c) continue;
      changed[i] = c;
      INFO(changed);
      REQUIRE(fixture.reserve(changed).answer == TokenAnswer::unknown);
    }
    REQUIRE(fixture.reserve(token.substr(0, i)).answer == TokenAnswer::unknown);
    REQUIRE(fixture.reserve(token.substr(i + 1)).answer == TokenAnswer::unknown);
  }
  CHECK(fixture.reserve(token + "A").answer == TokenAnswer::unknown);
  CHECK(fixture.reserve(token + ".").answer == TokenAnswer::unknown);
  CHECK(fixture.reserve(token + std::string(1000, 'A')).answer == TokenAnswer::unknown);
  CHECK(fixture.reserve("").answer == TokenAnswer::unknown);
  CHECK(fixture.tokens.reserve(token, "mail-8").answer == TokenAnswer::unknown);
  CHECK(fixture.tokens.reserve(token, "").answer == TokenAnswer::unknown);
  SignedTokens elsewhere =
      fixture.open(policy_for_tokens(), {.ttl = 1000ms, .secrets = {secret}}, "other");
  CHECK(elsewhere.reserve(token, "mail-7").answer == TokenAnswer::unknown);
  // A subject cannot pretend to be a part of the token in front of it.
  const std::string end_and_id = token.substr(0, token.rfind('.'));
  CHECK(fixture.tokens.reserve(token, "\nmail-7").answer == TokenAnswer::unknown);
  CHECK(fixture.tokens.reserve(token, end_and_id + "\nmail-7").answer == TokenAnswer::unknown);
  CHECK(fixture.engine->stats().records == 0);
  CHECK(fixture.reserve(token).answer == TokenAnswer::reserved);
}

TEST_CASE("signed_tokens: what was never reserved cannot be spent or given back",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string token = fixture.issue();
  CHECK(fixture.tokens.spend(token, 1).answer == OwnerAnswer::unknown);
  CHECK(fixture.tokens.give_back(token, 1).answer == OwnerAnswer::unknown);
  CHECK(fixture.tokens.spend("no token", 1).answer == OwnerAnswer::unknown);
  CHECK(fixture.tokens.give_back("", 1).answer == OwnerAnswer::unknown);
}

TEST_CASE("signed_tokens: the first secret signs, any verifies", "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string old_token = fixture.issue();
  SignedTokens rotated =
      fixture.open(policy_for_tokens(), {.ttl = 1000ms, .secrets = {"fedcba9876543210", secret}});
  CHECK(rotated.reserve(old_token, "mail-7").answer == TokenAnswer::reserved);
  const std::string new_token = *rotated.issue("mail-7");
  CHECK(fixture.reserve(new_token).answer == TokenAnswer::unknown);
  CHECK(rotated.reserve(new_token, "mail-7").answer == TokenAnswer::reserved);
}

TEST_CASE("signed_tokens: exactly one of two threads is given a token", "[patterns][signed]") {
  SignedTokenFixture fixture{policy_for_tokens()};
  constexpr int rounds = 1'000;
  std::vector<std::string> tokens;
  for (int i = 0; i < rounds; ++i) tokens.push_back(fixture.issue());
  CHECK(std::set<std::string>{tokens.begin(), tokens.end()}.size() == rounds);
  std::barrier together{2};
  std::vector<std::array<TokenAnswer, 2>> answers(rounds);
  const auto run = [&](std::size_t who) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      together.arrive_and_wait();
      answers[i][who] = fixture.reserve(tokens[i]).answer;
    }
  };
  std::thread other{run, 1U};
  run(0);
  other.join();
  for (auto& pair : answers) {
    std::sort(pair.begin(), pair.end());
    REQUIRE(pair == std::array{TokenAnswer::reserved, TokenAnswer::in_flight});
  }
}

TEST_CASE("signed_tokens: a spent token stays spent until its end, whenever it is spent",
          "[patterns][signed]") {
  Policy policy = policy_for_tokens();
  policy.result_ttl = 100ms;
  policy.unique_ttl = 1000ms;  // as long as a token lives, and no longer
  SignedTokenFixture fixture{policy};
  const std::string token = fixture.issue();
  const TokenOutcome mine = fixture.reserve(token);
  REQUIRE(fixture.tokens.spend(token, mine.epoch).answer == OwnerAnswer::ok);
  // 4 ms less, so that threads whose clocks differ cannot find it free again.
  for (Millis passed = 0ms; passed < 1010ms; passed += 1ms) {
    INFO(passed.count());
    REQUIRE(fixture.reserve(token).answer ==
            (passed < 996ms ? TokenAnswer::spent : TokenAnswer::expired));
    fixture.clock.advance(1ms);
    fixture.engine->advance();
  }
}

TEST_CASE("signed_tokens: a call that pauses until the use is forgotten is too late",
          "[patterns][signed]") {
  Policy policy = policy_for_tokens();
  policy.result_ttl = 1000ms;
  SignedTokenFixture<tests::PausedClock> fixture{policy};
  const std::string token = *fixture.tokens.issue("mail-7");
  const TokenOutcome mine = fixture.reserve(token);
  REQUIRE(fixture.tokens.spend(token, mine.epoch).answer == OwnerAnswer::ok);
  fixture.clock.advance(995ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::spent);
  fixture.clock.pause_after(1, 10ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::expired);
  CHECK(fixture.engine->claims("tokens")->get(token.substr(17, 22))->state == ClaimState::absent);
}

TEST_CASE("signed_tokens: a wall clock that is set back gives no token a longer life",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string token = fixture.issue();
  const TokenOutcome mine = fixture.reserve(token);
  REQUIRE(fixture.tokens.spend(token, mine.epoch).answer == OwnerAnswer::ok);
  fixture.clock.step_wall(-1h);
  fixture.clock.advance(999ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::spent);
  fixture.clock.advance(1ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::expired);
  fixture.clock.advance(5000ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::expired);
}

TEST_CASE("signed_tokens: a token that would live longer than its use is remembered has to wait",
          "[patterns][signed]") {
  SignedTokenFixture fixture;
  const std::string token = fixture.issue();
  SignedTokens shorter = fixture.open(policy_for_tokens(), {.ttl = 500ms, .secrets = {secret}});
  const TokenOutcome refused = shorter.reserve(token, "mail-7");
  CHECK(refused.answer == TokenAnswer::busy);
  CHECK(refused.error == ErrorCode::invalid_expire);
  CHECK(refused.retry_after == 498ms);
  CHECK(fixture.engine->stats().records == 0);
  fixture.clock.advance(497ms);
  CHECK(shorter.reserve(token, "mail-7").answer == TokenAnswer::busy);
  fixture.clock.advance(1ms);
  CHECK(shorter.reserve(token, "mail-7").answer == TokenAnswer::reserved);
}

TEST_CASE("signed_tokens: a doubt is in flight until it is resolved", "[patterns][signed]") {
  Policy policy = policy_for_tokens();
  policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  SignedTokenFixture fixture{policy};
  const std::string token = fixture.issue();
  REQUIRE(fixture.reserve(token).answer == TokenAnswer::reserved);
  fixture.clock.advance(200ms);
  CHECK(fixture.reserve(token).answer == TokenAnswer::in_flight);
}

TEST_CASE("signed_tokens: options and policies that could not hold are refused by name",
          "[patterns][signed][limits]") {
  SignedTokenFixture fixture;
  int names = 0;  // a namespace has one policy
  const auto refuse = [&](auto change, const char* named) {
    Policy policy = policy_for_tokens();
    SignedTokensOptions options{.ttl = 1000ms, .secrets = {secret}};
    change(policy, options);
    const auto claims = fixture.engine->claims("refused" + std::to_string(++names), policy);
    REQUIRE(claims.has_value());
    const auto opened = SignedTokens::open(*claims, options);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().code == ErrorCode::bad_option);
    CHECK_THAT(opened.error().detail, Catch::Contains(named));
  };
  refuse([](Policy&, auto& o) { o.ttl = 9ms; }, "ttl");
  refuse([](Policy&, auto& o) { o.ttl = limits::ttl_max + 1ms; }, "ttl");
  refuse([](Policy&, auto& o) { o.secrets.clear(); }, "secrets");
  refuse([](Policy&, auto& o) { o.secrets.emplace_back(15, 's'); }, "secrets");
  refuse([](Policy& p, auto&) { p.fail_open = true; }, "fail_open");
  refuse([](Policy& p, auto&) { p.issued = true; }, "issued");
  refuse([](Policy& p, auto&) { p.result_ttl = 999ms; }, "unique_ttl");
  refuse([](Policy& p, auto&) { p.result_ttl = 1ms, p.unique_ttl = 999ms; }, "unique_ttl");
  refuse([](Policy& p, auto&) { p.failure_ttl = 999ms, p.attempts_max = 1; }, "failure_ttl");
  refuse([](Policy& p, auto&) { p.failure_ttl = 999ms, p.on_failure = Policy::OnFailure::keep; },
         "failure_ttl");
  refuse([](Policy& p, auto&) { p.attempts_ttl = 999ms, p.attempts_max = 1; }, "attempts_ttl");
  Policy least = policy_for_tokens();
  least.result_ttl = 1000ms;
  least.failure_ttl = least.attempts_ttl = 999ms;  // of no meaning here
  SignedTokens tokens = fixture.open(least, {.ttl = 1000ms, .secrets = {secret}}, "least");
  CHECK(tokens.reserve(*tokens.issue(""), "").answer == TokenAnswer::reserved);
}
