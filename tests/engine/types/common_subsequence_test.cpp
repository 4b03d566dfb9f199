// The longest common subsequence, against a table of all lengths.
#include "engine/types/common_subsequence.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

namespace semel::tests {

namespace {

std::uint32_t length_by_table(const std::string& one, const std::string& other) {
  std::vector<std::vector<std::uint32_t>> table(one.size() + 1,
                                                std::vector<std::uint32_t>(other.size() + 1));
  for (std::size_t i = 1; i <= one.size(); ++i) {
    for (std::size_t j = 1; j <= other.size(); ++j) {
      table[i][j] = one[i - 1] == other[j - 1] ? table[i - 1][j - 1] + 1
                                               : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  return table[one.size()][other.size()];
}

std::string letters(std::mt19937_64& random, std::size_t length_max) {
  std::string text(random() % length_max, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 3);
  return text;
}

}  // namespace

TEST_CASE("common subsequence: it is as long as can be, and lies in both", "[engine][lcs]") {
  std::mt19937_64 random{Catch::rngSeed()};
  for (int round = 0; round < 500; ++round) {
    const std::string one = letters(random, 40);
    const std::string other = letters(random, 20);
    const auto found = engine::common_subsequence(one, other);
    INFO("seed " << Catch::rngSeed() << ": " << one << ", " << other);
    REQUIRE(found.length == length_by_table(one, other));
    REQUIRE(engine::common_length(one, other) == found.length);
    REQUIRE(engine::common_length(other, one) == found.length);
    std::string joined;
    std::size_t end_of_one = one.size();
    std::size_t end_of_other = other.size();
    for (const engine::CommonRun& run : found.runs) {
      REQUIRE((run.length >= 1 && run.one + run.length <= end_of_one));
      REQUIRE(run.other + run.length <= end_of_other);
      REQUIRE(one.substr(run.one, run.length) == other.substr(run.other, run.length));
      joined.insert(0, one.substr(run.one, run.length));
      end_of_one = run.one;
      end_of_other = run.other;
    }
    REQUIRE(joined == found.bytes);
    REQUIRE(found.bytes.size() == found.length);
  }
}

TEST_CASE("common subsequence: an empty string has nothing in common", "[engine][lcs]") {
  CHECK(engine::common_subsequence("", "abc").length == 0);
  CHECK(engine::common_subsequence("abc", "").runs.empty());
  CHECK(engine::common_length("", "") == 0);
}

}  // namespace semel::tests
