// The word "assert": does a broken condition end the process, with its text and place?
#include "base/assert.hpp"

#include <csignal>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

using semel::tests::Ended;

namespace {

Ended assert_below_three(int value) {
  return semel::tests::run_apart([value] { SEMEL_ASSERT(value < 3); });
}

}  // namespace

TEST_CASE("assert: a condition that holds changes nothing", "[base][assert]") {
  const Ended ended = assert_below_three(2);
  CHECK((WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0));
  CHECK(ended.output.empty());
}

TEST_CASE("assert: a condition that does not hold ends the process and is named",
          "[base][assert]") {
  const Ended ended = assert_below_three(3);
  REQUIRE(WIFSIGNALED(ended.status));
  CHECK(WTERMSIG(ended.status) == SIGABRT);
  CHECK(ended.output.find("assert_test.cpp:") != std::string::npos);
  CHECK(ended.output.find("SEMEL_ASSERT(value < 3) does not hold") != std::string::npos);
}
TEST_CASE(
    "assert: a slow condition is looked at where SEMEL_VERIFY is set, or nothing is optimised",
    "[base][assert]") {
  int evaluated = 0;
  SEMEL_ASSERT_SLOW(++evaluated > 0);
#if defined(SEMEL_VERIFY) || !defined(NDEBUG)
  CHECK(evaluated == 1);
#else
  CHECK(evaluated == 0);
#endif
}
