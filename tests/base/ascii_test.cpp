// Words: a neighbour is the character just outside a range.
#include "base/ascii.hpp"

#include <cctype>

#include "tests/support/catch.hpp"

using namespace semel::base;

TEST_CASE("ascii: each of the 256 characters is what the C locale says of it", "[base][ascii]") {
  for (int code = 0; code < 256; ++code) {
    const char c = static_cast<char>(code);
    CAPTURE(code);
    const bool is_ascii = code < 128;
    CHECK(is_digit(c) == (is_ascii && std::isdigit(code) != 0));
    CHECK(is_lower(c) == (is_ascii && std::islower(code) != 0));
    CHECK(is_upper(c) == (is_ascii && std::isupper(code) != 0));
    CHECK(is_letter(c) == (is_ascii && std::isalpha(code) != 0));
    CHECK(to_lower(c) == (is_ascii ? static_cast<char>(std::tolower(code)) : c));
    CHECK(to_upper(c) == (is_ascii ? static_cast<char>(std::toupper(code)) : c));
  }
}

TEST_CASE("ascii: a text changes its letters and nothing else", "[base][ascii]") {
  CHECK(lower_of("Get|KEY-9_\xc3\x84") == "get|key-9_\xc3\x84");
  CHECK(upper_of("get|key-9_\xc3\xa4") == "GET|KEY-9_\xc3\xa4");
  CHECK(lower_of("").empty());
  CHECK(lower_of(std::string_view{"A\0B", 3}) == std::string_view{"a\0b", 3});
}
