// Numbers and keywords of requests.
#include "net/resp/text.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "base/ascii.hpp"
#include "tests/support/catch.hpp"

namespace semel::net {
namespace {

/// integer_of() by the library.
std::optional<std::int64_t> integer_by_library(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (text != "0" && (digits.empty() || digits.front() < '1' || digits.front() > '9')) {
    return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

TEST_CASE("text: integers at their bounds, and texts that are none") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(integer_of("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(integer_of("-9223372036854775808") == least);
  CHECK(integer_of("0") == 0);
  CHECK(integer_of("-1") == -1);
  for (const std::string_view text : {"",
                                      "-",
                                      "-0",
                                      "00",
                                      "01",
                                      "-01",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1a",
                                      "a",
                                      "--1",
                                      "1-",
                                      "1.0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "9999999999999999999",
                                      "18446744073709551616",
                                      "99999999999999999999999",
                                      "\xb2",
                                      "1\n"}) {
    CAPTURE(text);
    CHECK_FALSE(integer_of(text).has_value());
  }
  CHECK_FALSE(integer_of(std::string_view{"1\0", 2}).has_value());
}

TEST_CASE("text: random texts are the integers that the library reads") {
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  constexpr std::string_view bytes = "0123456789-+ a";
  for (int i = 0; i < 200'000; ++i) {
    std::string text =
        i % 2 == 0 ? std::to_string(static_cast<std::int64_t>(random() >> i % 64)) : std::string{};
    if (i % 3 != 0) {
      for (std::size_t more = random() % 5; more != 0; --more) {
        text.insert(text.begin() + static_cast<std::ptrdiff_t>(random() % (text.size() + 1)),
                    bytes[random() % bytes.size()]);
      }
    }
    CAPTURE(text);
    REQUIRE(integer_of(text) == integer_by_library(text));
  }
}

TEST_CASE("text: words are equal but for the case of letters") {
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  constexpr std::string_view smalls = "abcdefghijklmnopqrstuvwxyz0123456789|-_.@[`{~\x1f ";
  for (int i = 0; i < 200'000; ++i) {
    std::string small(random() % 27, ' ');
    for (char& c : small) c = smalls[random() % smalls.size()];
    std::string text = small;
    for (char& c : text) {
      if (random() % 2 == 0) c = base::to_upper(c);
    }
    CAPTURE(small, text);
    REQUIRE(is_word(text, small));
    if (text.empty()) continue;
    char& one = text[random() % text.size()];
    const char before = one;
    // Any other byte, and most often one that differs in the bit of the case.
    one = static_cast<char>(random() % 2 == 0 ? before ^ 0x20 : static_cast<int>(random() % 256));
    REQUIRE(is_word(text, small) == (base::lower_of(text) == small));
    one = before;
    REQUIRE_FALSE(is_word(text + "a", small));
    REQUIRE_FALSE(is_word(text.substr(1), small));
  }
}

}  // namespace
}  // namespace semel::net
