// Scores as clients write them.
#include "net/objects/score_text.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

/// The same bits: -0 is not 0.
bool is_score_of_library(const std::string& text, double score) {
  const double expected = std::strtod(text.c_str(), nullptr);
  return std::memcmp(&expected, &score, sizeof score) == 0;
}

}  // namespace

TEST_CASE("scores: decimal numbers are those that the library reads", "[net][objects][zset]") {
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int i = 0; i < 300'000; ++i) {
    std::string text(1 + random() % 18, '0');
    for (char& c : text) c = static_cast<char>('0' + random() % 10);
    if (random() % 3 != 0) text.insert(random() % (text.size() + 1), ".");
    if (random() % 3 == 0) text.insert(0, "-");
    CAPTURE(text);
    const auto score = net::score_of(text);
    REQUIRE(score.has_value());
    REQUIRE(is_score_of_library(text, *score));
  }
}

TEST_CASE("scores: forms that are none, and forms that are", "[net][objects][zset]") {
  for (const std::string text :
       {"0", "-0", "00.10", "1.", ".5", "-.5", "+1", "1e3", "0x10", "inf", "-Infinity",
        "9007199254740993", "999999999999999", "0.00000000000001", "123456789012345.5"}) {
    CAPTURE(text);
    const auto score = net::score_of(text);
    REQUIRE(score.has_value());
    CHECK(is_score_of_library(text, *score));
  }
  for (const std::string_view text : {"", "-", ".", "-.", "1.2.3", "1..2", " 1", "1 ", "--1", "1-",
                                      "nan", "1a", "1e999", "1e-999", "/", ":"}) {
    CAPTURE(text);
    CHECK_FALSE(net::score_of(text).has_value());
  }
  CHECK_FALSE(net::score_of(std::string_view{"1\0", 2}).has_value());
}

}  // namespace semel::tests
