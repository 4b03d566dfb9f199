// Words: a neighbour is the character just outside a range.
#include "base/hex.hpp"

#include <array>
#include <cctype>

#include "tests/support/catch.hpp"

using namespace semel::base;

TEST_CASE("hex: a byte is two digits of lower case, and they have its value", "[base][hex]") {
  for (int value = 0; value < 256; ++value) {
    std::string text;
    append_hex(text, static_cast<std::uint8_t>(value));
    REQUIRE(text.size() == 2);
    CHECK(hex_value(text[0]) * 16 + hex_value(text[1]) == value);
    CHECK((std::isupper(text[0]) == 0 && std::isupper(text[1]) == 0));
  }
  const std::array<std::uint8_t, 4> bytes{0x00, 0x0f, 0xa0, 0xff};
  CHECK(hex_of(bytes) == "000fa0ff");
  CHECK(hex_of({}).empty());
}

TEST_CASE("hex: characters that are not digits have no value, neighbours included", "[base][hex]") {
  for (const char c : {'/', ':', '@', 'G', '`', 'g', '\0', '\x80', '\xff'}) {
    CHECK(hex_value(c) == -1);
  }
  CHECK(hex_value('0') == 0);
  CHECK(hex_value('9') == 9);
  CHECK(hex_value('a') == 10);
  CHECK(hex_value('F') == 15);
}
