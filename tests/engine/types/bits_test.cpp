// Bits and integers of strings, against the same read bit by bit.
#include "engine/types/bits.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include "tests/support/catch.hpp"

namespace semel::tests {

using engine::add_integers;
using engine::BitfieldType;
using engine::BitRange;
using engine::Overflow;

namespace {

std::string random_bytes(std::mt19937_64& random, std::size_t length_max) {
  std::string bytes(random() % length_max + 1, '\0');
  const auto kind = random() % 3;  // mostly ones, mostly zeros, or either
  for (char& c : bytes) {
    c = kind == 0 ? '\xff' : kind == 1 ? '\0' : static_cast<char>(random());
    if (random() % 16 == 0) c = static_cast<char>(random());
  }
  return bytes;
}

BitRange random_range(std::mt19937_64& random, std::size_t bytes) {
  const std::uint64_t first = random() % (bytes * 8);
  return {first, first + random() % (bytes * 8 - first)};
}

}  // namespace

TEST_CASE("bits: counts and positions are those of each bit by itself", "[engine][bits]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (int round = 0; round < 2'000; ++round) {
    const std::string bytes = random_bytes(random, 60);
    const BitRange range = random_range(random, bytes.size());
    std::uint64_t ones = 0;
    std::optional<std::uint64_t> first[2];
    for (std::uint64_t at = range.first; at <= range.last; ++at) {
      const bool is_one = engine::bit_at(bytes, at);
      ones += is_one ? 1 : 0;
      if (!first[is_one ? 1 : 0]) first[is_one ? 1 : 0] = at;
    }
    INFO("seed " << Catch::rngSeed() << ", round " << round);
    REQUIRE(engine::count_ones(bytes, range) == ones);
    REQUIRE(engine::find_bit(bytes, true, range) == first[1]);
    REQUIRE(engine::find_bit(bytes, false, range) == first[0]);
  }
}

TEST_CASE("bits: bit 0 is the highest of the first byte, and beyond the end are zeros",
          "[engine][bits]") {
  std::string bytes(2, '\0');
  engine::set_bit(bytes, 0, true);
  engine::set_bit(bytes, 15, true);
  CHECK(bytes == std::string("\x80\x01", 2));
  engine::set_bit(bytes, 0, false);
  CHECK(bytes == std::string("\0\x01", 2));
  CHECK_FALSE(engine::bit_at(bytes, 16));
  CHECK_FALSE(engine::bit_at({}, 0));
  CHECK_FALSE(engine::bit_at(bytes, std::numeric_limits<std::uint64_t>::max()));
  CHECK(engine::integer_at(bytes, 8, {false, 16}) == 256);
  CHECK(engine::integer_at({}, 1'000, {true, 64}) == 0);
}

TEST_CASE("bits: an integer that was set is read back, and its neighbours stay", "[engine][bits]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (int round = 0; round < 2'000; ++round) {
    const bool is_signed = random() % 2 == 0;
    const BitfieldType type{is_signed, static_cast<unsigned>(random() % (is_signed ? 64 : 63)) + 1};
    std::string bytes = random_bytes(random, 30) + std::string(8, '\x5a');
    const std::string before = bytes;
    const std::uint64_t offset = random() % (bytes.size() * 8 - type.bits + 1);
    const auto wanted = add_integers(static_cast<std::int64_t>(random()), 0, type, Overflow::wrap);
    engine::set_integer(bytes, offset, type, *wanted);
    INFO("seed " << Catch::rngSeed() << ", round " << round);
    REQUIRE(engine::integer_at(bytes, offset, type) == *wanted);
    for (std::uint64_t at = 0; at < bytes.size() * 8; ++at) {
      if (at >= offset && at < offset + type.bits) continue;
      REQUIRE(engine::bit_at(bytes, at) == engine::bit_at(before, at));
    }
  }
}

TEST_CASE("bits: sums that a type cannot hold wrap, saturate or fail", "[engine][bits]") {
  constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
  const auto all = [](std::int64_t value, std::int64_t increment, BitfieldType type) {
    CHECK_FALSE(add_integers(value, increment, type, Overflow::fail));
    return std::pair{*add_integers(value, increment, type, Overflow::wrap),
                     *add_integers(value, increment, type, Overflow::saturate)};
  };
  CHECK(all(255, 1, {false, 8}) == std::pair<std::int64_t, std::int64_t>{0, 255});
  CHECK(all(0, -1, {false, 8}) == std::pair<std::int64_t, std::int64_t>{255, 0});
  CHECK(all(-1, 0, {false, 8}) == std::pair<std::int64_t, std::int64_t>{255, 255});
  CHECK(all(127, 1, {true, 8}) == std::pair<std::int64_t, std::int64_t>{-128, 127});
  CHECK(all(-128, -1, {true, 8}) == std::pair<std::int64_t, std::int64_t>{127, -128});
  CHECK(all(high, 1, {true, 64}) == std::pair{low, high});
  CHECK(all(low, -1, {true, 64}) == std::pair{high, low});
  CHECK(add_integers(254, 1, {false, 8}, Overflow::fail) == 255);
  CHECK(add_integers(1, -1, {false, 8}, Overflow::fail) == 0);
  CHECK(add_integers(high, low, {true, 64}, Overflow::fail) == -1);
  CHECK(add_integers(low, high, {true, 64}, Overflow::fail) == -1);
  CHECK(add_integers(high >> 1, 0, {true, 63}, Overflow::fail) == high >> 1);
}

}  // namespace semel::tests
