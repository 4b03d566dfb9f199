#include "engine/kinds/element_keys.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>
#include "engine/kinds/packed_object.hpp"
#include "tests/support/catch.hpp"

namespace semel::engine {
namespace {

std::string text_of(Bytes key) {
  MemberText text;
  return std::string{member_of(key, text)};
}

TEST_CASE("keys of members: integers are in the order of numbers, before all else", "[objects]") {
  std::mt19937_64 random{3};
  std::vector<std::int64_t> numbers{0,
                                    1,
                                    -1,
                                    127,
                                    128,
                                    255,
                                    256,
                                    -128,
                                    -129,
                                    -255,
                                    -256,
                                    -257,
                                    65'535,
                                    65'536,
                                    -65'536,
                                    -65'537,
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min()};
  for (int i = 0; i < 5'000; ++i) {
    numbers.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string key = member_key(std::to_string(numbers[i]));
    CHECK(is_integer_member(key));
    CHECK(text_of(key) == std::to_string(numbers[i]));
    if (i != 0) CHECK(Bytes{member_key(std::to_string(numbers[i - 1]))} < Bytes{key});
    CHECK(Bytes{key} < Bytes{member_key("")});
  }
}

TEST_CASE("keys of members: what only looks like an integer is bytes", "[objects]") {
  const std::string with_zero{"1\0", 2};
  for (const std::string& member :
       {std::string{}, std::string{"-0"}, std::string{"01"}, std::string{"+1"}, std::string{" 1"},
        std::string{"9223372036854775808"}, std::string{"1.0"}, with_zero,
        std::string{"\xff\x80"}}) {
    CAPTURE(member);
    CHECK_FALSE(is_integer_member(member_key(member)));
    CHECK(text_of(member_key(member)) == member);
  }
}

TEST_CASE("keys of members: a record with another form of a member is unsound", "[objects]") {
  const auto is_member = [](const std::string& key) {
    std::string record;
    const Element element{key, {}};
    pack({&element, 1}, ElementParts::keys, record);
    return is_set_sound(record);
  };
  for (const char* member : {"0", "-1", "300", "-300", "a", "", "9223372036854775807"}) {
    CHECK(is_member(member_key(member)));
  }
  CHECK_FALSE(
      is_member("\xff"
                "1"));                                     // an integer as bytes
  CHECK_FALSE(is_member(std::string{"\x82\x00\x01", 3}));  // not as short as can be
  CHECK_FALSE(is_member("\x81"));                          // cut
  CHECK_FALSE(is_member(std::string{"\x81\x00", 2}));      // zero has no bytes
  CHECK_FALSE(is_member(std::string{"\x7e\xff", 2}));      // nor has -1
  CHECK_FALSE(is_member(std::string{"\x89", 1} + std::string(9, '\1')));
  CHECK_FALSE(is_member(std::string{"\x88\xff", 2} + std::string(7, '\1')));  // beyond 63 bits
}

TEST_CASE("keys of scores: their order is that of the numbers", "[objects]") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> scores{-infinity, -1e300, -3.5, -1,  -1e-300, -5e-324, 0.0,
                                   5e-324,    1e-300, 0.25, 1.0, 3.5,     infinity};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto key = encode_score(scores[i]);
    const double back = score_of({key.data(), key.size()});
    CHECK(back == scores[i]);
    CHECK(std::signbit(back) == std::signbit(scores[i]));
    if (i == 0) continue;
    const auto before = encode_score(scores[i - 1]);
    CHECK(Bytes{before.data(), before.size()} < Bytes{key.data(), key.size()});
  }
  CHECK(encode_score(-0.0) == encode_score(0.0));
}

TEST_CASE("keys of scores: a sorted set with a member twice, or not a number, is unsound",
          "[objects]") {
  const auto entry = [](double score, Bytes member) {
    const auto bytes = encode_score(score);
    return std::string{bytes.data(), bytes.size()}.append(member);
  };
  const auto is_one = [](const std::vector<std::string>& keys) {
    std::vector<Element> elements;
    for (const std::string& key : keys) elements.push_back({key, {}});
    std::string record;
    pack(elements, ElementParts::keys, record);
    return is_sorted_set_sound(record);
  };
  CHECK(is_one({entry(1, "a"), entry(1, "b"), entry(2, "")}));
  CHECK_FALSE(is_one({entry(1, "a"), entry(2, "a")}));
  CHECK_FALSE(is_one({"short"}));
  CHECK_FALSE(is_one({entry(std::numeric_limits<double>::quiet_NaN(), "a")}));
  std::string of_minus_zero(score_bytes, '\xff');
  of_minus_zero[0] = '\x7f';
  CHECK_FALSE(is_one({of_minus_zero + "a"}));
}

}  // namespace
}  // namespace semel::engine
