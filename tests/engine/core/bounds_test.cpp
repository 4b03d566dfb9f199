// The ends of versions and of time: issue Once again, 15.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/policies.hpp"
#include "tests/engine/engine_fixture.hpp"

using namespace semel;
using namespace semel::tests;
using namespace std::chrono_literals;

TEST_CASE("versions end at their maximum, by name and without a repetition",
          "[engine][claims][limits][once-again-15]") {
  ManualClock clock;
  const auto open = [&](Version first) {
    return Engine::open({.clock = &clock, .first_version = first});
  };
  for (const Version first :
       {Version{0}, limits::version_max, limits::version_max + 1, ~Version{0}}) {
    const auto refused = open(first);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::bad_option);
    CHECK(refused.error().detail.find("first_version") != std::string::npos);
  }
  for (const Version left : {Version{1}, Version{3}, Version{200}}) {
    auto engine = open(limits::version_max - left).value();
    Result<Claims> made = engine->claims("ns", policies::lock);
    REQUIRE(made.has_value());
    Claims ns = *made;
    Epoch last = 0;
    bool exhausted = false;
    for (int i = 0; i < 1'000 && !exhausted; ++i) {
      const ClaimOutcome grant = ns.claim({.key = "k" + std::to_string(i)});
      exhausted = grant.answer != ClaimAnswer::granted;
      if (exhausted) {
        CHECK(grant.error == ErrorCode::versions_exhausted);
        break;
      }
      CHECK(grant.epoch > last);
      CHECK(grant.epoch <= limits::version_max);
      last = grant.epoch;
    }
    CHECK(exhausted);
    // Nothing is changed from here on, and nothing hangs.
    CHECK(engine->store().set("x", "v").error().code == ErrorCode::versions_exhausted);
    CHECK(engine->claims("another", policies::lock).error().code == ErrorCode::versions_exhausted);
    CHECK(engine->flush({}).error().code == ErrorCode::versions_exhausted);
    CHECK(engine->swap_db(0, 1).error().code == ErrorCode::versions_exhausted);
  }
}

TEST_CASE("what is restored with the largest version leaves none",
          "[engine][limits][once-again-15]") {
  EngineFixture f;
  Claims ns = f.claims("ns", policies::lock);
  Mutation mutation;
  mutation.key = "x";
  mutation.value = "v";
  mutation.version = limits::version_max + 1;
  CHECK(f.engine->host().restore(mutation).error().code == ErrorCode::storage_damaged);
  CHECK(ns.claim({.key = "before"}).answer == ClaimAnswer::granted);
  mutation.version = limits::version_max;
  REQUIRE(f.engine->host().restore(mutation).ok());
  CHECK(f.read("x") == "v");
  Epoch last = 0;
  for (int i = 0; i < 200; ++i) {  // what a thread had taken before may still serve
    const ClaimOutcome grant = ns.claim({.key = "k" + std::to_string(i)});
    CHECK((grant.answer == ClaimAnswer::granted ? grant.epoch > last
                                                : grant.error == ErrorCode::versions_exhausted));
    last = std::max(last, grant.epoch);
  }
  CHECK(ns.claim({.key = "k"}).error == ErrorCode::versions_exhausted);
}

TEST_CASE("a clock at the end of time grants once", "[engine][claims][limits][once-again-15]") {
  for (const Millis late : {Millis::max(), Millis::max() - 5ms, limits::time_max + 1ms}) {
    ManualClock clock{late};
    const auto opened = Engine::open({.clock = &clock});
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == ErrorCode::bad_option);
  }
  for (const Millis start : {limits::time_max, limits::time_max - 5ms}) {
    ManualClock clock{start};
    auto engine = open_engine({.clock = &clock});
    Policy longest = policies::message;
    for (Millis Policy::*const time :
         {&Policy::lease, &Policy::result_ttl, &Policy::failure_ttl, &Policy::attempts_ttl}) {
      longest.*time = limits::ttl_max;
    }
    std::vector<Claims> spaces{engine->claims("short", policies::message).value(),
                               engine->claims("long", longest).value()};
    for (Claims& ns : spaces) {
      const ClaimOutcome held = ns.claim({.key = "held"});
      CHECK(held.answer == ClaimAnswer::granted);
      const ClaimOutcome done = ns.claim({.key = "done"});
      CHECK(ns.complete({.key = "done", .epoch = done.epoch, .payload = "r"}).answer ==
            OwnerAnswer::ok);
      for (const Millis step : {0ms, 10ms, Millis{std::int64_t{1} << 61}}) {
        clock.advance(step);
        static_cast<void>(engine->advance());
        CHECK(ns.claim({.key = "held"}).answer == ClaimAnswer::in_flight);
        CHECK(ns.claim({.key = "done"}).result == "r");
      }
      clock.advance(-Millis{(std::int64_t{1} << 61) + 10});
    }
  }
}
