// Short runs of bytes: compared and copied at every length, and nothing beside them is touched.
#include "engine/rules/bytes.hpp"

#include <cstddef>
#include <string>
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

constexpr std::size_t length_max = 80;

[[nodiscard]] std::string counted(std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text.push_back(static_cast<char>(i + 1));
  return text;
}

}  // namespace

TEST_CASE("bytes: runs are the same if no byte of them differs", "[engine][bytes]") {
  for (std::size_t length = 0; length <= length_max; ++length) {
    const std::string one = counted(length);
    // The bytes behind the end differ.
    std::string other = one + "a";
    REQUIRE(same_bytes((one + "b").data(), other.data(), length));
    for (std::size_t at = 0; at < length; ++at) {
      other[at] ^= 4;
      REQUIRE_FALSE(same_bytes(one.data(), other.data(), length));
      other[at] ^= 4;
    }
  }
}

TEST_CASE("bytes: a copy has all bytes, and none beside it is written", "[engine][bytes]") {
  for (std::size_t length = 0; length <= length_max; ++length) {
    const std::string from = counted(length);
    std::string to(length + 2, '#');
    copy_bytes(to.data() + 1, from.data(), length);
    REQUIRE(to == "#" + from + "#");
  }
}

TEST_CASE("bytes: a string of any length is made of them", "[engine][bytes]") {
  for (std::size_t length = 0; length <= length_max; ++length) {
    const std::string from = counted(length);
    const std::string made = Copy{from};
    REQUIRE(made == from);
    REQUIRE(made.c_str()[length] == '\0');
  }
}

}  // namespace semel::engine
