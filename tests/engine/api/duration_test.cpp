// Durations of any unit, as parameters and options.
#include <chrono>
#include <cstdint>
#include <limits>

#include "semel/engine.hpp"
#include "semel/store.hpp"
#include "semel/types.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

TEST_CASE("duration: parts of a millisecond count as a whole one", "[api]") {
  CHECK(in_millis(1ns) == Millis{1});
  CHECK(in_millis(999us) == Millis{1});
  CHECK(in_millis(1000us) == Millis{1});
  CHECK(in_millis(1001us) == Millis{2});
  CHECK(in_millis(3'000'000ns) == Millis{3});
  CHECK(in_millis(-1500us) == Millis{-1});
  CHECK(in_millis(0ns) == Millis{0});
  CHECK(in_millis(0.1s) == Millis{100});
  CHECK(in_millis(1.0005s) == Millis{1001});
  CHECK(in_millis(std::chrono::duration<float>{0.1F}) == Millis{100});
  CHECK(in_millis(2h) == Millis{7'200'000});
}

TEST_CASE("duration: what is beyond all is the longest", "[api]") {
  CHECK(in_millis(std::chrono::hours::max()) == Millis::max());
  CHECK(in_millis(std::chrono::hours::min()) == Millis::min());
  CHECK(in_millis(std::chrono::duration<std::uint64_t>::max()) == Millis::max());
  CHECK(in_millis(std::chrono::duration<double>{1e300}) == Millis::max());
  CHECK(in_millis(std::chrono::duration<double>{-1e300}) == Millis::min());
  CHECK(in_millis(std::chrono::duration<double>{std::numeric_limits<double>::infinity()}) ==
        Millis::max());
  CHECK(in_millis(std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()}) ==
        Millis{0});
  CHECK(in_millis(Millis::max()) == Millis::max());
  CHECK(in_millis(std::chrono::nanoseconds::max()) == Millis{9'223'372'036'855});
  // As near as 64 bits of milliseconds have it.
  constexpr std::int64_t large = 9'007'199'254'740'993;
  CHECK(in_millis(std::chrono::milliseconds{large}) == Millis{large});
  CHECK(in_millis(std::chrono::duration<std::int64_t, std::deci>{large}) == Millis{large * 100});
}

TEST_CASE("duration: calls take any, and refuse what is too long", "[api]") {
  ManualClock clock;
  auto engine = *Engine::open({.clock = &clock});
  Store store = engine->store();
  REQUIRE(store.set("k", "v", {.expiry = Expiry::in(1.5s)}).ok());
  clock.advance(Millis{1499});
  CHECK(store.get("k")->has_value());
  clock.advance(Millis{1});
  CHECK_FALSE(store.get("k")->has_value());
  CHECK_FALSE(store.set("k", "v", {.expiry = Expiry::in(std::chrono::hours::max())}).ok());
  CHECK(deadline_after(engine->now(), std::chrono::hours::max()) == no_end);
  Claims claims = *engine->claims("work", {});
  CHECK(claims.claim({.key = "a", .lease = 500us}).answer == ClaimAnswer::granted);
  clock.advance(Millis{1});
  CHECK(claims.claim({.key = "a", .lease = 2min}).takeover);
  CHECK(claims.get("a")->lease_remaining == Millis{120'000});
  CHECK(claims.claim({.key = "b", .lease = std::chrono::hours::max()}).error != ErrorCode::ok);
  CHECK(claims.claim({.key = "b"}).answer == ClaimAnswer::granted);
}

}  // namespace semel::tests
