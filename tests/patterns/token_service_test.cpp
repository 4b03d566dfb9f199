// One-time tokens: issued, reserved, spent; given back after a failure (P3, P3b).
#include "semel/patterns/token_service.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include "tests/support/catch.hpp"

#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

namespace {

TokenService tokens_of(Process& process, const Policy& policy = policies::token) {
  return TokenService::open(process.claims("tokens", policy)).value();
}

}  // namespace

TEST_CASE("token: issued, reserved, spent; the second submission gets the first's result",
          "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  const std::string token = tokens.issue().value();
  CHECK(token.size() == 22);
  const TokenOutcome mine = tokens.reserve(token);
  CHECK(mine.answer == TokenAnswer::reserved);
  CHECK(mine.attempt == 1);
  const TokenOutcome other = tokens.reserve(token);
  CHECK(other.answer == TokenAnswer::in_flight);
  CHECK(other.retry_after > Millis{0});
  CHECK(tokens.spend(token, mine.epoch, "receipt 7").answer == OwnerAnswer::ok);
  const TokenOutcome again = tokens.reserve(token);
  CHECK(again.answer == TokenAnswer::spent);
  CHECK(again.result == "receipt 7");
}

TEST_CASE("token: a failed run does not burn it, until its attempts are used up",
          "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  const std::string token = tokens.issue().value();
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    const TokenOutcome use = tokens.reserve(token);
    REQUIRE(use.answer == TokenAnswer::reserved);
    CHECK(use.attempt == attempt);
    CHECK(tokens.give_back(token, use.epoch).answer == OwnerAnswer::ok);
  }
  CHECK(tokens.reserve(token).answer == TokenAnswer::exhausted);
}

TEST_CASE("token: unknown, ended and spent are three different answers", "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  CHECK(tokens.reserve("never-issued").answer == TokenAnswer::unknown);
  CHECK(tokens.reserve("").error == ErrorCode::key_empty);
  const std::string late = tokens.issue().value();
  const std::string used = tokens.issue().value();
  CHECK(tokens.spend(used, tokens.reserve(used).epoch).answer == OwnerAnswer::ok);
  process.clock().advance(Millis{5'999});
  CHECK(tokens.reserve(late).answer == TokenAnswer::reserved);
  const std::string later = tokens.issue(Millis{100}).value();
  process.clock().advance(Millis{100});
  CHECK(tokens.reserve(later).answer == TokenAnswer::unknown);
  CHECK(tokens.reserve(used).answer == TokenAnswer::spent);
  process.clock().advance(Millis{3'600'000});
  CHECK(tokens.reserve(used).answer == TokenAnswer::unknown);  // its hour is over
}

TEST_CASE("token: one that was given back is good for its time again, to the millisecond",
          "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  for (const bool in_time : {true, false}) {
    const std::string token = tokens.issue().value();
    process.clock().advance(Millis{5'000});
    const TokenOutcome use = tokens.reserve(token);
    CHECK(tokens.give_back(token, use.epoch).answer == OwnerAnswer::ok);
    process.clock().advance(Millis{in_time ? 5'999 : 6'000});
    CHECK(tokens.reserve(token).answer == (in_time ? TokenAnswer::reserved : TokenAnswer::unknown));
  }
}

TEST_CASE("token: after a lost reply the claim id gets the same token (case C)",
          "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  const std::string token = tokens.issue().value();
  const ClaimId id{9};
  const TokenOutcome first = tokens.reserve(token, {.claim_id = id});
  const TokenOutcome again = tokens.reserve(token, {.claim_id = id});
  CHECK(again.answer == TokenAnswer::regranted);
  CHECK(again.epoch == first.epoch);
  CHECK(tokens.reserve(token, {.claim_id = ClaimId{8}}).answer == TokenAnswer::in_flight);
}

TEST_CASE("token: issue is once for a text of one's own", "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  CHECK(tokens.issue_as("invite-7", Millis{1'000}).value());
  CHECK_FALSE(tokens.issue_as("invite-7").value());
  REQUIRE(tokens.spend("invite-7", tokens.reserve("invite-7").epoch).answer == OwnerAnswer::ok);
  CHECK_FALSE(tokens.issue_as("invite-7").value());  // a spent one is not new
  CHECK(tokens.issue_as("").error().code == ErrorCode::key_empty);
  CHECK(tokens.issue_as("x", Millis{0}).error().code == ErrorCode::bad_option);
  std::set<std::string> different;
  for (int i = 0; i < 1'000; ++i) different.insert(tokens.issue().value());
  CHECK(different.size() == 1'000);
}

TEST_CASE("token: redeem runs once, replays, and recognises an unknown one", "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  const std::string token = tokens.issue().value();
  int runs = 0;
  const auto pay = [&]() -> Result<int> {
    if (++runs == 1) return Error{ErrorCode::timed_out, "bank"};
    return runs;
  };
  CHECK(tokens.redeem(token, pay).answer == OnceAnswer::failed);
  CHECK(tokens.redeem(token, pay).value == 2);
  CHECK(tokens.redeem(token, pay).value == 2);
  CHECK(tokens.redeem("forged", pay).answer == OnceAnswer::unknown);
  CHECK(runs == 2);
}

TEST_CASE("token: of many concurrent callers exactly one gets it", "[patterns][token][race]") {
  Process process;
  TokenService tokens = tokens_of(process);
  for (int round = 0; round < 200; ++round) {
    const std::string token = tokens.issue().value();
    std::atomic<int> reserved{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const bool mine = tokens.reserve(token).answer == TokenAnswer::reserved;
        reserved.fetch_add(mine ? 1 : 0, std::memory_order_relaxed);  // mo: relaxed: after joins
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(reserved.load(std::memory_order_relaxed) == 1);  // mo: relaxed: as above
  }
}

TEST_CASE("token: a crash at every step leaves it usable or spent, never lost (case A)",
          "[patterns][token][crash]") {
  for (std::uint64_t steps = 1; steps <= 4; ++steps) {  // issue, reserve, effect, spend
    Process process{steps};
    REQUIRE(tokens_of(process).issue_as("t").value());
    const auto use = [&] {
      return tokens_of(process).redeem("t", [&](Work& work) {
        if (!work.takeover() || process.count("paid") == 0) process.effect("paid");
        return 1;
      });
    };
    static_cast<void>(use());
    process.restart();
    const auto again = use();
    CHECK(again.value == 1);
    CHECK(again.answer == (steps == 4 ? OnceAnswer::replayed : OnceAnswer::ran));
    CHECK(process.count("paid") == 1);
  }
}

TEST_CASE("token: counted as programs do that use INCR, and a crash does not spend it (P3b)",
          "[patterns][token]") {
  Process process;
  TokenService tokens = tokens_of(process);
  CHECK(tokens.count("t").value().count == 1);
  const TokenCount first = tokens.count("t").value();
  CHECK(first.count == 2);
  CHECK(tokens.count("t").value().count == 3);
  // The process ends here, between its count and its work: the next one is the first again.
  process.restart();
  TokenService next = tokens_of(process);
  const TokenCount again = next.count("t").value();
  CHECK(again.count == 2);
  CHECK(again.epoch > first.epoch);
  CHECK(next.spend("t", first.epoch).answer == OwnerAnswer::stale_owner);
  CHECK(next.spend("t", again.epoch).answer == OwnerAnswer::ok);
  CHECK(next.count("t").value().count == 3);
}

TEST_CASE("token: a policy that would let everything pass is refused", "[patterns][token]") {
  Process process;
  CHECK(TokenService::open(process.claims("calls", policies::call)).error().code ==
        ErrorCode::bad_option);
  Policy open = policies::token;
  open.fail_open = true;
  CHECK(TokenService::open(process.claims("open", open)).error().code == ErrorCode::bad_option);
}

TEST_CASE("tokens: a failed run leaves a token the time it was issued for",
          "[patterns][token][attack][fault-15]") {
  Process process;
  TokenService tokens = TokenService::open(process.claims("tokens", policies::token)).value();
  const Millis day{86'400'000};
  const std::string token = tokens.issue(day).value();
  const auto fails = []() -> Status { return Error{ErrorCode::timed_out, {}}; };
  CHECK(tokens.redeem(token, fails).answer == OnceAnswer::failed);
  process.clock().advance(Millis{3'600'000});
  const TokenOutcome held = tokens.reserve(token);  // and goes silent
  CHECK(held.attempt == 2);
  process.clock().advance(Millis{3'600'000});
  CHECK(tokens.redeem(token, [] { return 1; }).answer == OnceAnswer::ran);

  const std::string shown = tokens.issue(day).value();
  CHECK(tokens.give_back(shown, tokens.reserve(shown).epoch).answer == OwnerAnswer::ok);
  process.clock().advance(day - Millis{1});
  CHECK(tokens.give_back(shown, tokens.reserve(shown).epoch).answer == OwnerAnswer::ok);
  process.clock().advance(Millis{6'000});  // its day is over, and so are the 6 s after a failed run
  CHECK(tokens.reserve(shown).answer == TokenAnswer::unknown);
}
