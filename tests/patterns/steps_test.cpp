// Steps: what part of some work has brought about is remembered until the work is done.
#include "semel/patterns/steps.hpp"

#include "tests/support/catch.hpp"

#include "semel/patterns/once.hpp"
#include "tests/patterns/process.hpp"

using namespace semel;
using semel::tests::Process;

TEST_CASE("steps: a takeover continues where the previous owner stopped, from every step",
          "[patterns][steps][crash]") {
  const auto ship = [](Process& process) {
    Claims orders = process.claims("orders", policies::call);
    const auto run = once(orders, "order-1", [&](Work& work) -> Result<std::string> {
      SEMEL_TRY(charge, work.steps().run("charge", [&] {
        process.effect("charge");
        return 42;
      }));
      SEMEL_TRY(mail, work.steps().run("mail", [&] {
        process.effect("mail");
        return std::string{"sent"};
      }));
      return std::to_string(charge) + " " + mail;
    });
    return process.alive() && run.value == "42 sent";
  };
  std::uint64_t steps = 0;
  for (;; ++steps) {
    Process process{steps};
    if (ship(process)) break;
    const std::size_t charged = process.count("charge");
    const std::size_t mailed = process.count("mail");
    process.restart();
    REQUIRE(ship(process));
    // A step whose memo was written is not repeated; the one that the crash cut off is.
    CHECK(process.count("charge") == (charged == 1 && steps == 2 ? 2U : 1U));
    CHECK(process.count("mail") == (mailed == 1 && steps == 4 ? 2U : 1U));
    CHECK(process.engine().store().exists("steps/orders:order-1").value() == false);
  }
  CHECK(steps == 6);  // claim, effect, memo, effect, memo, done
}

TEST_CASE("steps: an owner that was taken over remembers nothing", "[patterns][steps]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const ClaimOutcome old = orders.claim({.key = "k"});
  process.clock().advance(Millis{60'000});
  Steps late{orders, "k", old.epoch};
  CHECK(late.remember("a", "1").error().code == ErrorCode::not_owner);
  const ClaimOutcome fresh = orders.claim({.key = "k"});
  CHECK(late.remember("a", "1").error().code == ErrorCode::not_owner);
  Steps steps{orders, "k", fresh.epoch};
  CHECK(steps.remember("a", "1").has_value());
  CHECK(steps.recall("a").value() == "1");
  CHECK(steps.recall("b").value() == std::nullopt);
  REQUIRE(orders.release({.key = "k", .epoch = fresh.epoch}).answer == OwnerAnswer::ok);
  CHECK(steps.remember("a", "2").error().code == ErrorCode::not_owner);
}

TEST_CASE("steps: an error of a step is passed on and not remembered", "[patterns][steps]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const ClaimOutcome claim = orders.claim({.key = "k"});
  Steps steps{orders, "k", claim.epoch};
  const auto fails = []() -> Result<int> { return Error{ErrorCode::timed_out, "bank"}; };
  CHECK(steps.run("charge", fails).error().code == ErrorCode::timed_out);
  CHECK(steps.run("charge", [] { return 5; }).value() == 5);
  CHECK(steps.run("charge", [] { return 6; }).value() == 5);
  CHECK(steps.run("charge", [] { return Nothing{}; }).has_value());
  REQUIRE(steps.remember("odd", "x").has_value());
  CHECK(steps.run("odd", [] { return 1; }).error().code == ErrorCode::bad_encoding);
}

TEST_CASE("steps: memos end with the time in which the work can be taken over",
          "[patterns][steps]") {
  Process process;
  Policy policy = policies::call;
  policy.attempts_ttl = Millis{1'000};
  Claims orders = process.claims("orders", policy);
  const ClaimOutcome claim = orders.claim({.key = "k"});
  Steps steps{orders, "k", claim.epoch};
  REQUIRE(steps.remember("a", "1").has_value());
  process.clock().advance(Millis{60'999});
  CHECK(steps.recall("a").value() == "1");
  process.clock().advance(Millis{1});
  CHECK(steps.recall("a").value() == std::nullopt);
}

TEST_CASE("steps: memos are answered only to the payload that made them",
          "[patterns][steps][attack][fault-15]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const auto run = [&](std::uint8_t payload, int charge, bool ends) {
    Fingerprint fingerprint{.algorithm = 1};
    fingerprint.digest[0] = payload;
    return once(orders, {.key = "order", .fingerprint = fingerprint},
                [&](Work& work) -> Result<int> {
                  SEMEL_TRY(charged, work.steps().run("charge", [&] { return charge; }));
                  if (!ends) return Error{ErrorCode::timed_out, "the mail"};
                  return charged;
                });
  };
  CHECK(run(1, 100, false).answer == OnceAnswer::failed);
  CHECK(run(1, 777, false).answer == OnceAnswer::failed);  // its own memo: not charged again
  CHECK(run(2, 200, false).answer == OnceAnswer::failed);  // another payload: its own charge
  CHECK(run(2, 888, true).value == 200);
}

TEST_CASE("steps: a former owner learns nothing of the present run",
          "[patterns][steps][attack][fault-15]") {
  Process process;
  Claims orders = process.claims("orders", policies::call);
  const Epoch old = orders.claim({.key = "k"}).epoch;
  process.clock().advance(Millis{60'000});
  const Epoch now = orders.claim({.key = "k"}).epoch;
  REQUIRE(Steps(orders, "k", now).remember("s", "memo").has_value());
  CHECK(Steps(orders, "k", now).recall("s").value() == "memo");
  const auto late = Steps(orders, "k", old).recall("s");
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().code == ErrorCode::not_owner);
  const Bytes reserved{"\0payload", 8};
  CHECK(Steps(orders, "k", now).remember(reserved, "x").error().code == ErrorCode::bad_option);
}
