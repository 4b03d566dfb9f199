// Words: an escape is % and two digits.
#include "base/percent.hpp"

#include <string>

#include "base/hex.hpp"
#include "tests/support/catch.hpp"

using namespace semel::base;

TEST_CASE("percent: a byte is an escape of upper case, and its digits have its value",
          "[base][percent]") {
  for (int value = 0; value < 256; ++value) {
    std::string text = "x";
    append_percent(text, static_cast<char>(value));
    REQUIRE(text.size() == 4);
    CHECK(text.substr(0, 2) == "x%");
    CHECK(text.find_first_of("abcdef") == std::string::npos);
    CHECK(hex_value(text[2]) * 16 + hex_value(text[3]) == value);
  }
}
