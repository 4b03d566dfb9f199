// Words: an edge is the last result that fits.
#include "base/checked.hpp"

#include <cstdint>
#include <limits>

#include "tests/support/catch.hpp"

using namespace semel::base;

namespace {
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
}  // namespace

TEST_CASE("checked: a sum is exact up to both edges and nothing beyond", "[base][checked]") {
  CHECK(checked_add(most - 1, 1) == most);
  CHECK(checked_add(most, 1) == std::nullopt);
  CHECK(checked_add(least + 1, -1) == least);
  CHECK(checked_add(least, -1) == std::nullopt);
}

TEST_CASE("checked: a difference is exact up to both edges and nothing beyond", "[base][checked]") {
  CHECK(checked_sub(least + 1, 1) == least);
  CHECK(checked_sub(least, 1) == std::nullopt);
  CHECK(checked_sub(std::int64_t{-1}, least) == most);
  CHECK(checked_sub(std::int64_t{0}, least) == std::nullopt);
}

TEST_CASE("checked: a product is exact up to both edges and nothing beyond", "[base][checked]") {
  CHECK(checked_mul(most / 2, 2) == most - 1);
  CHECK(checked_mul(most / 2 + 1, 2) == std::nullopt);
  CHECK(checked_mul(least / 2, 2) == least);
  CHECK(checked_mul(least, -1) == std::nullopt);
}

TEST_CASE("checked: an unsigned result below zero does not fit", "[base][checked]") {
  CHECK(checked_sub(std::uint32_t{1}, 1) == 0U);
  CHECK(checked_sub(std::uint32_t{0}, 1) == std::nullopt);
  CHECK(checked_add(std::numeric_limits<std::uint8_t>::max(), 1) == std::nullopt);
}
static_assert(checked_add(1, 2) == 3);
