// No value means "none", or "done", by chance: issue Once again, 9 and 11.
#include <memory>
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
  CHECK(guarded(calls, "o", "{}", [](const std::string&) { return 1; })(std::string{}).answer ==
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

TEST_CASE("a Result of a verdict is that verdict", "[patterns][consume][once-again-9]") {
  Process process;
  Claims queue = process.claims("mq", policies::message);
  const auto handled = [&](Bytes id, auto value) {
    using Value = decltype(value);
    return consume_once(queue, {.id = id}, [&] { return Result<Value>{std::move(value)}; }).verdict;
  };
  CHECK(handled("yes", true) == Verdict::ack);
  CHECK(handled("no", false) == Verdict::retry_later);
  CHECK(handled("rejected", Rejected{"bad"}) == Verdict::dead_letter);
  CHECK(handled("perhaps", std::optional<Rejected>{{"bad"}}) == Verdict::dead_letter);
  CHECK(handled("fine", std::optional<Rejected>{}) == Verdict::ack);
  Debounce clicks{process.engine(), process.claims("db", policies::debounce)};
  CHECK(clicks.run("no", [] { return Result<bool>{false}; }) == DebounceAnswer::failed);
  CHECK(clicks.run("yes", [] { return Result<bool>{true}; }) == DebounceAnswer::ran);
}

// --- one answer ----------------------------------------------------------------------------------

namespace {

struct Lossy {  // keeps the first, and has no equality
  int kept = 0;
  int lost = 0;
  std::string encode() const { return std::to_string(kept); }
  static std::optional<Lossy> decode(Bytes bytes) {
    return Lossy{std::stoi(std::string{bytes}), 0};
  }
};
struct LossyButEqual : Lossy {
  friend bool operator==(const LossyButEqual& a, const LossyButEqual& b) {
    return a.kept == b.kept && a.lost == b.lost;
  }
  static std::optional<LossyButEqual> decode(Bytes bytes) {
    return LossyButEqual{*Lossy::decode(bytes)};
  }
};
struct Unreadable {
  std::string encode() const { return "x"; }
  static std::optional<Unreadable> decode(Bytes) { return std::nullopt; }
};

}  // namespace

TEST_CASE("the first caller and a repeat get equal values, or the first one is told",
          "[patterns][once][once-again-8]") {
  Process process;
  Claims calls = process.claims("calls", policies::call);
  const auto lossy = [] { return Lossy{1, 5}; };
  CHECK(once(calls, "lossy", lossy).value->lost == 0);
  CHECK(once(calls, "lossy", lossy).value->lost == 0);
  const auto told = [&](const auto& outcome) {
    CHECK(outcome.answer == OnceAnswer::ran);
    CHECK(outcome.error.code == ErrorCode::result_not_kept);
    return outcome.value.has_value();
  };
  const auto equal = [] { return LossyButEqual{{1, 5}}; };
  const auto first = once(calls, "equal", equal);
  CHECK(told(first));
  CHECK(first.value->lost == 5);
  CHECK(once(calls, "equal", equal).answer == OnceAnswer::expired);
  CHECK(told(once(calls, "unreadable", [] { return Unreadable{}; })));
  CHECK(once(calls, "unreadable", [] { return Unreadable{}; }).answer == OnceAnswer::expired);

  const ClaimOutcome claim = calls.claim({.key = "work"});
  for (int attempt = 0; attempt < 2; ++attempt) {
    Steps steps{calls, "work", claim.epoch};
    CHECK(steps.run("s", lossy)->lost == 0);
    CHECK(steps.run("u", [] { return Unreadable{}; }).error().code == ErrorCode::bad_encoding);
  }
}

TEST_CASE("a function that cannot be copied cannot run later",
          "[patterns][debounce][once-again-13]") {
  Process process;
  Debounce saves{
      process.engine(), process.claims("db", policies::debounce), {.run_latest_after = true}};
  int runs = 0;
  CHECK(saves.run("k", [&, form = std::make_unique<int>(1)] { runs += *form; }) ==
        DebounceAnswer::refused);
  CHECK(runs == 0);
  CHECK(saves.run("k", [&] { ++runs; }) == DebounceAnswer::ran);
}
