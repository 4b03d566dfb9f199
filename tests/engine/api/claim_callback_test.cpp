// semel::Function, of which ClaimCallback is one: holds any callable, as std::function does.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "semel/claims.hpp"
#include "semel/function.hpp"

using semel::ClaimAnswer;
using semel::ClaimCallback;
using semel::ClaimOutcome;

namespace {

ClaimOutcome outcome_of(ClaimAnswer answer) {
  ClaimOutcome outcome;
  outcome.answer = answer;
  return outcome;
}

/// Does not fit beside the pointer: held on the heap.
struct Large {
  std::shared_ptr<int> calls;
  char rest[100] = {};
  void operator()(ClaimOutcome&&) const { ++*calls; }
};

}  // namespace

TEST_CASE("claim callback: an empty one is false and does nothing", "[engine][claims]") {
  const ClaimCallback none;
  CHECK_FALSE(none);
  none(outcome_of(ClaimAnswer::granted));
  CHECK_FALSE(ClaimCallback{nullptr});
  CHECK_FALSE(ClaimCallback{std::function<void(ClaimOutcome &&)>{}});
  void (*const no_function)(ClaimOutcome &&) = nullptr;
  CHECK_FALSE(ClaimCallback{no_function});
}

TEST_CASE("claim callback: what it holds is called with the outcome", "[engine][claims]") {
  ClaimAnswer seen = ClaimAnswer::busy;
  const ClaimCallback small{[&seen](ClaimOutcome&& outcome) { seen = outcome.answer; }};
  CHECK(small);
  small(outcome_of(ClaimAnswer::replay));
  CHECK(seen == ClaimAnswer::replay);

  int sum = 0;
  ClaimCallback counting{[&sum, step = 0](const ClaimOutcome&) mutable { sum += ++step; }};
  counting({});
  counting({});
  CHECK(sum == 3);
}

TEST_CASE("claim callback: copies call, a moved one is empty, each callable ends once",
          "[engine][claims]") {
  const auto calls = std::make_shared<int>(0);
  {
    ClaimCallback first{Large{calls}};
    const ClaimCallback copy{first};
    CHECK(calls.use_count() == 3);
    ClaimCallback moved{std::move(first)};
    CHECK(calls.use_count() == 3);
    copy({});
    moved({});
    moved = copy;
    CHECK(calls.use_count() == 3);
    moved({});
    moved = nullptr;
    CHECK_FALSE(moved);
    CHECK(calls.use_count() == 2);
  }
  CHECK(calls.use_count() == 1);
  CHECK(*calls == 3);

  {
    ClaimCallback in_place{[calls](ClaimOutcome&&) { ++*calls; }};
    ClaimCallback other{std::move(in_place)};
    in_place = other;
    CHECK(calls.use_count() == 3);
    std::swap(in_place, other);
    other({});
  }
  CHECK(calls.use_count() == 1);
  CHECK(*calls == 4);
}

TEST_CASE("function: returns a value, an empty one the value's default", "[engine][claims]") {
  using Length = semel::Function<std::size_t(const std::string&)>;
  const Length none;
  CHECK(none == nullptr);
  CHECK(none("four") == 0);
  const Length own{[](const std::string& text) { return text.size(); }};
  CHECK(own("four") == 4);
  const std::function<std::size_t(const std::string&)> standard = own;
  CHECK(Length{standard}("four") == 4);
  CHECK(Length{std::function<std::size_t(const std::string&)>{}} == nullptr);
  // Into one of another signature: a callable like any other, and an empty one stays empty.
  const semel::Function<void(const std::string&)> drops{own};
  CHECK(drops);
  CHECK(semel::Function<void(const std::string&)>{none} == nullptr);
}

TEST_CASE("function: takes arguments that only move", "[engine][claims]") {
  const semel::Function<int(std::unique_ptr<int>)> opened{
      [](std::unique_ptr<int> number) { return *number; }};
  CHECK(opened(std::make_unique<int>(7)) == 7);
}
