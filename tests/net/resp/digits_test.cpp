// Integers as text.
#include "net/resp/digits.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "tests/support/catch.hpp"

namespace semel::net {
namespace {

/// What put_digits() writes, and a mark where it must not write any more.
std::string digits_of(std::int64_t number) {
  std::array<char, number_bytes_max + 1> room;
  room.fill('#');
  const char* const end = put_digits(room.data(), number);
  REQUIRE(end <= room.data() + number_bytes_max);
  REQUIRE(*end == '#');
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

TEST_CASE("digits: a number is written as std::to_string writes it", "[net][resp]") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(digits_of(most) == std::to_string(most));
  CHECK(digits_of(least) == std::to_string(least));
  for (std::int64_t power = 1; power <= most / 10; power *= 10) {
    for (const std::int64_t number : {power - 1, power, power + 1, power * 9 + (power - 1)}) {
      REQUIRE(digits_of(number) == std::to_string(number));
      REQUIRE(digits_of(-number) == std::to_string(-number));
    }
  }
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int i = 0; i < 200'000; ++i) {
    const auto number = static_cast<std::int64_t>(random()) >> random() % 64;
    REQUIRE(digits_of(number) == std::to_string(number));
  }
}

}  // namespace
}  // namespace semel::net
