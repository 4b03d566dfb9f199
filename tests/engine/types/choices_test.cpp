// Random picks and the order of iterations.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include "tests/support/catch.hpp"

#include "engine/types/random_picks.hpp"
#include "engine/types/scan_order.hpp"

namespace semel::engine {

TEST_CASE("picks: any subset is as likely, in any order", "[types]") {
  const std::uint64_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::map<std::vector<std::size_t>, int> times;
  constexpr int rounds = 12'000;
  std::mt19937_64 random{seed};
  for (int i = 0; i < rounds; ++i) ++times[Picks{random()}.some(4, 2)];
  CHECK(times.size() == 12);
  // Six standard deviations of a binomial distribution, sqrt(12000 / 12 * 11 / 12) = 30.
  for (const auto& [picked, count] : times) CHECK(std::abs(count - rounds / 12) < 182);
}

TEST_CASE("picks: the same number, the same choices", "[types]") {
  CHECK(Picks{7}.some(1'000, 20) == Picks{7}.some(1'000, 20));
  CHECK(Picks{7}.some(1'000, 20) != Picks{8}.some(1'000, 20));
  CHECK(Picks{7}.some(0, 0).empty());
  auto all = Picks{7}.some(50, 50);
  std::sort(all.begin(), all.end());
  std::vector<std::size_t> counted(50);
  std::iota(counted.begin(), counted.end(), std::size_t{0});
  CHECK(all == counted);
  Picks picks{7};
  CHECK(picks.below(1) == 0);
  CHECK(picks.below(~std::size_t{0}) < ~std::size_t{0});
}

TEST_CASE("scans: the steps of any count meet every member once", "[types]") {
  constexpr std::size_t size = 3'000;
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{10}, std::size_t{700}, size, ~std::size_t{0}}) {
    std::map<std::string, int> seen;
    std::uint64_t cursor = 0;
    int steps = 0;
    do {
      // The set grows and shrinks, and the width of a step with it.
      const ScanStep step = scan_step(cursor, steps % 3 == 0 ? size / 5 : size, count);
      for (std::size_t i = 0; i < size; ++i) {
        const std::string member = "m" + std::to_string(i);
        if (step.has(member)) ++seen[member];
      }
      CHECK((step.next == 0 || step.next > cursor));
      CHECK(step.next < std::uint64_t{1} << 48);
      cursor = step.next;
      REQUIRE(++steps <= 64);
    } while (cursor != 0);
    CHECK(seen.size() == size);
    CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& each) { return each.second == 1; }));
  }
  CHECK(scan_step(~std::uint64_t{0}, 1'000, 1).next == 0);
}

}  // namespace semel::engine
