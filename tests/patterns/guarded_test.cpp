// guarded(): a function that happens once for each key which its arguments make.
#include "semel/fwd.hpp"
// First the names alone, which must fit what they stand for.
#include "semel/patterns/guarded.hpp"
#include "semel/replication.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/patterns/process.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

namespace {
enum class Paint : std::uint8_t { red = 1, blue = 7 };
}  // namespace

TEST_CASE("guarded: a function runs once for each key that its arguments make",
          "[patterns][guarded]") {
  Process process;
  const Claims orders = process.claims("orders", policies::call);
  int runs = 0;
  const auto charge = guarded(orders, "charge", "charge:{}:{}", [&](Bytes customer, int order) {
    ++runs;
    return std::string{customer} + " " + std::to_string(order);
  });
  CHECK(charge.format_error().code == ErrorCode::ok);
  CHECK(charge("anna", 1).answer == OnceAnswer::ran);
  const auto again = charge("anna", 1);
  CHECK(again.answer == OnceAnswer::replayed);
  CHECK(again.value == "anna 1");
  CHECK(charge(std::string{"anna"}, 2).answer == OnceAnswer::ran);
  CHECK(charge(Bytes{"bert"}, 1).answer == OnceAnswer::ran);
  CHECK(runs == 3);
  // The key is the one that once() would be given.
  Claims same = orders;
  CHECK(once(same, "charge:anna:1", [] { return std::string{}; }).answer == OnceAnswer::replayed);
}

TEST_CASE("guarded: no argument can pretend to be another key", "[patterns][guarded]") {
  Process process;
  const Claims claims = process.claims("c", policies::call);
  const auto both = guarded(claims, "both", "{}:{}", [](Bytes, Bytes) { return 1; });
  CHECK(both("a:b", "c").answer == OnceAnswer::ran);
  CHECK(both("a", "b:c").answer == OnceAnswer::ran);
  const std::string binary{"a\0b", 3};
  CHECK(both(binary, "c").answer == OnceAnswer::ran);
  CHECK(both("a", "c").answer == OnceAnswer::ran);
  const auto empty = both("", "c");
  CHECK(empty.answer == OnceAnswer::refused);
  CHECK(empty.error.code == ErrorCode::key_empty);
  const auto too_long = both(std::string(1 << 20, 'x'), "c");
  CHECK(too_long.answer == OnceAnswer::refused);
  CHECK(too_long.error.code == ErrorCode::key_too_long);
}

TEST_CASE("guarded: arguments are named in turn or by number, and all of them tell calls apart",
          "[patterns][guarded]") {
  Process process;
  const Claims claims = process.claims("c", policies::call);
  const auto second =
      guarded(claims, "paint", "{1}/{0}", [](Paint, long, double amount) { return amount; });
  CHECK(second(Paint::blue, -4L, 0.5).value == 0.5);
  CHECK(second(Paint::blue, -4L, 0.5).answer == OnceAnswer::replayed);
  CHECK(second(Paint::blue, -4L, 0.7).answer == OnceAnswer::mismatch);
  CHECK(second(Paint::red, -4L, 0.7).value == 0.7);
  Claims same = claims;
  CHECK(once(same, "-4/7", [] { return 0.0; }).answer == OnceAnswer::replayed);

  const auto missing = guarded(claims, "missing", "{0}/{2}", [](int) { return 1; });
  CHECK(missing(1).error.code == ErrorCode::bad_option);
  // A double has no text: an empty value is refused.
  CHECK(guarded(claims, "d", "{}", [](double) { return 1; })(0.5).error.code ==
        ErrorCode::key_empty);
}

TEST_CASE("guarded: a wrong format runs nothing, and says why", "[patterns][guarded]") {
  Process process;
  const Claims claims = process.claims("c", policies::call);
  int runs = 0;
  for (const auto& [format, code] :
       std::vector<std::pair<Bytes, ErrorCode>>{{"all", ErrorCode::key_empty},
                                                {"", ErrorCode::key_empty},
                                                {"{{}}", ErrorCode::key_empty},
                                                {"{", ErrorCode::syntax},
                                                {"a}", ErrorCode::syntax},
                                                {"{x}", ErrorCode::syntax},
                                                {"{}{0}", ErrorCode::syntax},
                                                {"{1000}", ErrorCode::syntax}}) {
    INFO(format);
    const auto wrong = guarded(claims, "o", format, [&](int) { return ++runs; });
    CHECK(wrong.format_error().code == code);
    const auto answer = wrong(1);
    CHECK(answer.answer == OnceAnswer::refused);
    CHECK(answer.error.code == code);
  }
  CHECK(runs == 0);
  CHECK(guarded(claims, "o", "{}{}", [](int, int) { return 1; })(1, 2).error.code ==
        ErrorCode::syntax);  // of format_key(): nothing parts them
}

TEST_CASE("guarded: exceptions go on, and options hold for each call", "[patterns][guarded]") {
  Process process;
  const Claims claims = process.claims("c", policies::call);
  int runs = 0;
  const auto throws = guarded(claims, "o", "{}", [&](int) -> int {
    if (++runs == 1) throw std::runtime_error("of the work");
    return runs;
  });
  CHECK_THROWS_AS(throws(1), std::runtime_error);
  const auto next = throws(1);
  CHECK((next.answer == OnceAnswer::ran || next.answer == OnceAnswer::in_doubt));
  const auto bound = guarded(claims, "o", OnceCall{.key = "w:{}", .wait = Millis{20'000}},
                             [](int i) { return i; });
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int key = 0; key < 50; ++key) {
        const auto outcome = bound(key);
        if (outcome.answer == OnceAnswer::ran) ran.fetch_add(1, std::memory_order_relaxed);
        if (outcome.value != key) ran.fetch_add(1'000, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(ran == 50);
}

TEST_CASE("guarded: another operation or argument under a key is a mismatch",
          "[patterns][guarded][once-again-5]") {
  Process process;
  const Claims claims = process.claims("c", policies::call);
  int runs = 0;
  const auto does = [&](int, int cents) { return ++runs * 1'000 + cents; };
  const auto charge = guarded(claims, "charge", "order:{0}", does);
  const auto refund = guarded(claims, "refund", "order:{0}", does);
  CHECK(charge(1, 100).value == 1'100);
  CHECK(charge(1, 100).answer == OnceAnswer::replayed);
  CHECK(charge(1, 999).answer == OnceAnswer::mismatch);
  CHECK(refund(1, 100).answer == OnceAnswer::mismatch);
  CHECK(refund(2, 100).value == 2'100);
  CHECK(guarded(claims, "", "order:{0}", does)(3, 1).error.code == ErrorCode::key_empty);
  const std::string long_name(limits::operation_bytes_max + 1, 'o');
  CHECK(guarded(claims, long_name, "order:{0}", does)(3, 1).error.code == ErrorCode::key_too_long);
  CHECK(runs == 2);
}

}  // namespace semel::tests
