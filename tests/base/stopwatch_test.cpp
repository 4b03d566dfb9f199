// Words: a reading is what a stopwatch shows.
#include "base/stopwatch.hpp"

#include "tests/support/catch.hpp"

using namespace semel::base;

TEST_CASE("stopwatch: readings never become smaller, and both units agree", "[base][stopwatch]") {
  const Stopwatch watch;
  double before = 0;
  for (int i = 0; i < 1'000; ++i) {
    const double low = watch.seconds();
    const auto reading = watch.passed();
    const double high = watch.seconds();
    REQUIRE(before <= low);
    REQUIRE(static_cast<double>(reading.count()) <= high * 1'000);
    REQUIRE(static_cast<double>(reading.count() + 1) > low * 1'000);
    before = high;
  }
}

TEST_CASE("stopwatch: a restart begins at zero", "[base][stopwatch]") {
  const Stopwatch older;
  Stopwatch watch;
  while (watch.seconds() < 0.001) {
  }
  const double before = older.seconds();
  watch.restart();
  const double since_restart = watch.seconds();
  CHECK(since_restart <= older.seconds() - before);
}
