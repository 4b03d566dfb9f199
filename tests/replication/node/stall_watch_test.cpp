// StallWatch reports a stall once when it begins and once when it ends.
#include "replication/parts/stall_watch.hpp"

#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using replication::StallWatch;
using Turn = StallWatch::Turn;
constexpr std::uint64_t patience_ms = 100;

}  // namespace

TEST_CASE("stall watch: idle is no stall, however long", "[stall_watch]") {
  StallWatch watch;
  CHECK(watch.look(1'000, false, 5, patience_ms) == Turn::none);
  CHECK(watch.look(9'000, false, 5, patience_ms) == Turn::none);
  // Work that comes now has not waited before.
  CHECK(watch.look(9'001, true, 5, patience_ms) == Turn::none);
  CHECK(watch.look(9'100, true, 5, patience_ms) == Turn::none);
  CHECK(watch.look(9'101, true, 5, patience_ms) == Turn::begins);
}

TEST_CASE("stall watch: it begins once and ends once", "[stall_watch]") {
  StallWatch watch;
  CHECK(watch.look(0, true, 1, patience_ms) == Turn::none);
  CHECK(watch.look(100, true, 1, patience_ms) == Turn::begins);
  CHECK(watch.is_stalled());
  CHECK(watch.look(500, true, 1, patience_ms) == Turn::none);
  CHECK(watch.stalled_ms() == 500);
  CHECK(watch.look(730, true, 2, patience_ms) == Turn::ends);
  CHECK(watch.stalled_ms() == 730);
  CHECK_FALSE(watch.is_stalled());
  CHECK(watch.look(731, true, 2, patience_ms) == Turn::none);
  CHECK(watch.look(830, true, 2, patience_ms) == Turn::begins);
  CHECK(watch.look(840, false, 2, patience_ms) == Turn::ends);
}

TEST_CASE("stall watch: what gets on now and then does not stall", "[stall_watch]") {
  StallWatch watch;
  for (std::uint64_t at = 0; at < 1'000; at += 99) {
    CHECK(watch.look(at, true, at, patience_ms) == Turn::none);
  }
}

}  // namespace semel::tests
