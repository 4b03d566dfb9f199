// Words: a sequence is what next_random() yields from one state.
#include "base/random.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "tests/support/catch.hpp"

using namespace semel::base;

TEST_CASE("random: SplitMix64 yields the published sequence of seed 1234567", "[base][random]") {
  std::uint64_t state = 1234567;
  for (const std::uint64_t number :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U, 4593380528125082431U}) {
    CHECK(next_random(state) == number);
  }
}

TEST_CASE("random: the same state yields the same sequence", "[base][random]") {
  std::uint64_t one = 7;
  std::uint64_t other = 7;
  for (int i = 0; i < 100; ++i) REQUIRE(next_random(one) == next_random(other));
}

TEST_CASE("random: mix_bits() yields different numbers for different numbers", "[base][random]") {
  std::set<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 1'000; ++i) numbers.insert(mix_bits(i));
  CHECK(numbers.size() == 1'000);
}

TEST_CASE("random: fill_random() fills all of the bytes and none beyond", "[base][random]") {
  // 64 KiB are more than one call of getrandom(2) is sure to fill. By chance alone, a stretch of 32
  // zero bytes has a probability of 2^-240.
  std::array<std::uint8_t, 65536 + 32> bytes{};
  fill_random(std::span{bytes}.first(65536));
  for (std::size_t i = 0; i < 65536; i += 32) {
    const auto stretch = std::span{bytes}.subspan(i, 32);
    REQUIRE_FALSE(std::all_of(stretch.begin(), stretch.end(), [](auto b) { return b == 0; }));
  }
  const auto beyond = std::span{bytes}.last(32);
  CHECK(std::all_of(beyond.begin(), beyond.end(), [](auto b) { return b == 0; }));
  fill_random({});
}

TEST_CASE("random: two numbers of the kernel differ", "[base][random]") {
  CHECK(random_number() != random_number());
}
