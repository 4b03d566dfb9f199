// The console's history: samples, counts of the last hour, courses of namespaces.
#include <cstdint>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/console/console_limits.hpp"
#include "net/console/history.hpp"
#include "semel/clock.hpp"

namespace semel::tests {
namespace {

namespace limits = net::console_limits;

net::MetricValues values_with(std::uint64_t granted) {
  net::MetricValues values;
  values.claims.push_back({.name = "orders", .counts = {granted}});
  values.commands = granted;
  return values;
}

}  // namespace

TEST_CASE("console history: an hour of samples, and no more", "[net][console]") {
  ManualClock clock;
  net::ConsoleHistory history;
  std::uint64_t granted = 0;
  for (std::size_t i = 0; i <= limits::samples_max + 20; ++i) {
    REQUIRE(history.is_due(clock.now()));
    granted += 20;
    history.add(values_with(granted), clock.unix_ms(), clock.now());
    CHECK_FALSE(history.is_due(clock.now()));
    clock.advance(limits::sample_every);
  }
  REQUIRE(history.samples().size() == limits::samples_max);
  CHECK(history.samples().back().number == limits::samples_max + 20);
  CHECK(history.samples().back().commands_per_second == 2);
  CHECK(history.samples().back().claims_per_second[0] == 2);
  const auto claims = history.claims();
  REQUIRE(claims.size() == 1);
  CHECK(claims[0].total[0] == granted);
  CHECK(claims[0].per_second[0] == 2);
  CHECK(claims[0].hour[0] >= 7'200);
  CHECK(claims[0].hour[0] <= 7'320);
  CHECK(history.hour_span() >= Millis{3'600'000});
  CHECK(history.hour_span() <= Millis{3'660'000});
}

TEST_CASE("console history: a young node shows all since its start; counters may be reset",
          "[net][console]") {
  ManualClock clock;
  net::ConsoleHistory history;
  CHECK(history.claims().empty());
  history.add(values_with(100), clock.unix_ms(), clock.now());
  CHECK(history.samples().empty());
  clock.advance(limits::sample_every);
  history.add(values_with(50), clock.unix_ms(), clock.now());
  CHECK(history.samples().back().commands_per_second == 5);
  CHECK(history.claims()[0].hour[0] == 50);
}

TEST_CASE("console history: a course has what was counted in each minute of the last hour",
          "[net][console]") {
  ManualClock clock;
  net::ConsoleHistory history;
  const auto pass_minutes = [&](std::size_t minutes, std::uint64_t& granted, std::uint64_t each) {
    for (std::size_t i = 0; i < minutes * limits::samples_between_counts; ++i) {
      clock.advance(limits::sample_every);
      granted += each;
      history.add(values_with(granted), clock.unix_ms(), clock.now());
    }
  };
  CHECK(history.courses().empty());
  CHECK(history.minutes().empty());
  std::uint64_t granted = 100;
  history.add(values_with(granted), clock.unix_ms(), clock.now());
  CHECK(history.courses().empty());  // one minute says nothing
  CHECK(history.minutes() == std::vector{clock.unix_ms()});

  pass_minutes(1, granted, 5);
  auto courses = history.courses();
  REQUIRE(courses.size() == 1);
  CHECK(courses[0].name == "orders");
  REQUIRE(courses[0].counts.size() == 1);  // what was counted before the first of them is left out
  CHECK(courses[0].counts[0][0] == 5 * limits::samples_between_counts);
  CHECK(history.minutes().back() - history.minutes().front() == 60'000);

  granted = 7;  // the counters begin anew
  pass_minutes(1, granted, 0);
  courses = history.courses();
  REQUIRE(courses[0].counts.size() == 2);
  CHECK(courses[0].counts[1][0] == 7);

  pass_minutes(limits::counts_max + 3, granted, 0);
  CHECK(history.minutes().size() == limits::counts_max);
  CHECK(history.courses().empty());  // no claims in the last hour
}

TEST_CASE("console history: a namespace that is new begins its course with its first claims",
          "[net][console]") {
  ManualClock clock;
  net::ConsoleHistory history;
  net::MetricValues values = values_with(3);
  history.add(values, clock.unix_ms(), clock.now());
  const Millis minute =
      limits::sample_every * static_cast<std::int64_t>(limits::samples_between_counts);
  clock.advance(minute);
  values.claims.push_back({.name = "payments", .counts = {4}});
  history.add(values, clock.unix_ms(), clock.now());
  clock.advance(minute);
  values.claims[1].counts[0] = 6;
  history.add(values, clock.unix_ms(), clock.now());
  const auto courses = history.courses();
  REQUIRE(courses.size() == 1);  // the other one has had no claims since
  CHECK(courses[0].name == "payments");
  REQUIRE(courses[0].counts.size() == 2);
  CHECK(courses[0].counts[0][0] == 4);
  CHECK(courses[0].counts[1][0] == 2);
}

TEST_CASE("console history: shares of a histogram are bounds of its buckets", "[net][console]") {
  CHECK(net::bound_of_share({}, 0.5) == 0);
  CHECK(net::bound_of_share({0, 0, 0}, 0.99) == 0);
  CHECK(net::bound_of_share({1}, 0.99) == 1);
  CHECK(net::bound_of_share({50, 49, 1}, 0.5) == 1);
  CHECK(net::bound_of_share({50, 49, 1}, 0.99) == 2);
  CHECK(net::bound_of_share({50, 49, 1}, 1) == 4);
}

}  // namespace semel::tests
