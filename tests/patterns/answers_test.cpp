// No value means "none", or "done", by chance: issue Once again, 9 and 11.
#include <optional>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/consume.hpp"
#include "semel/patterns/debounce.hpp"
#include "semel/patterns/guarded.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/token_service.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

TEST_CASE("an answer that no call has given says nothing", "[patterns][once][once-again-9]") {
  CHECK(ClaimAnswer{} == ClaimAnswer::unanswered);
  CHECK(OwnerAnswer{} == OwnerAnswer::unanswered);
  CHECK(OnceAnswer{} == OnceAnswer::unanswered);
  CHECK(Verdict{} == Verdict::unanswered);
  CHECK(DebounceAnswer{} == DebounceAnswer::unanswered);
  CHECK(TokenAnswer{} == TokenAnswer::unanswered);
  CHECK(ClaimOutcome{}.answer == ClaimAnswer::unanswered);
  CHECK(OwnerOutcome{}.answer == OwnerAnswer::unanswered);
  CHECK(OnceOutcome<int>{}.answer == OnceAnswer::unanswered);
  CHECK(Consumed{}.verdict == Verdict::unanswered);
  CHECK(Consumed{}.answer == OnceAnswer::unanswered);
  CHECK(TokenOutcome{}.answer == TokenAnswer::unanswered);
}

TEST_CASE("a call that is refused before it asks says so", "[patterns][once][once-again-9]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto work = [] { return 1; };
  CHECK(once(calls, "", work).answer == OnceAnswer::refused);
  CHECK(once(process.engine(), {"no name", {}}, "k", work).answer == OnceAnswer::refused);
  CHECK(guarded(calls, "{}", [](const std::string&) { return 1; })(std::string{}).answer ==
        OnceAnswer::refused);
  const Consumed without = consume_once(calls, {}, [] {}, {.refuse_without_id = true});
  CHECK(without.answer == OnceAnswer::refused);
  CHECK(without.verdict == Verdict::dead_letter);
  CHECK(calls.claim({}).answer == ClaimAnswer::busy);
  CHECK(calls.complete({}).answer == OwnerAnswer::refused);
  CHECK(consume_batch(calls, {}, [](const Message&) {}).empty());
}

TEST_CASE("a handler's Result is a verdict, and its value is not",
          "[patterns][consume][once-again-9]") {
  Process process;
  Claims queue = process.claims("mq", policies::message);
  const auto says = [](int value) { return [value]() -> Result<int> { return value; }; };
  CHECK(consume_once(queue, {.id = "a"}, says(0)).verdict == Verdict::ack);
  CHECK(consume_once(queue, {.id = "b"}, says(-1)).verdict == Verdict::ack);
  const auto fails = []() -> Result<int> { return Error{ErrorCode::timed_out, "the bank"}; };
  const Consumed failed = consume_once(queue, {.id = "c"}, fails);
  CHECK(failed.verdict == Verdict::retry_later);
  CHECK(failed.failure.find("the bank") != std::string::npos);
  const auto unknown = []() -> Result<int> { return unknown_outcome("no reply"); };
  CHECK(consume_once(queue, {.id = "d"}, unknown).verdict == Verdict::retry_later);
  Debounce clicks{process.engine(), process.claims("clicks", policies::debounce)};
  CHECK(clicks.run("u", says(0)) == DebounceAnswer::ran);
  CHECK(clicks.run("v", fails) == DebounceAnswer::failed);
}
