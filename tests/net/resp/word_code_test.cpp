// Words as numbers.
#include "net/resp/word_code.hpp"

#include <array>
#include <random>
#include <string>

#include "base/ascii.hpp"
#include "net/resp/text.hpp"
#include "tests/support/catch.hpp"

namespace semel::net {
namespace {

struct CodedWord {
  std::string_view text;
  std::uint64_t code;
};
constexpr std::array<CodedWord, 8> coded_words{{{"a", code_of_word("a")},
                                                {"nx", code_of_word("nx")},
                                                {"get", code_of_word("get")},
                                                {"exat", code_of_word("exat")},
                                                {"ifdeq", code_of_word("ifdeq")},
                                                {"string", code_of_word("string")},
                                                {"persist", code_of_word("persist")},
                                                {"abcdefgh", code_of_word("abcdefgh")}}};

TEST_CASE("words: a code is that of one word, in any case of letters", "[net][resp]") {
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int i = 0; i < 200'000; ++i) {
    const CodedWord& word = coded_words[random() % coded_words.size()];
    std::string text{word.text};
    for (char& c : text) {
      if (random() % 2 == 0) c = base::to_upper(c);
    }
    REQUIRE(code_of(text) == word.code);
    // Any other byte, and most often one that differs in the bit of the case.
    char& one = text[random() % text.size()];
    one = static_cast<char>(random() % 2 == 0 ? one ^ 0x20 : static_cast<int>(random() % 256));
    if (random() % 4 == 0) text += static_cast<char>(random() % 256);
    if (random() % 4 == 0) text.pop_back();
    CAPTURE(text, word.text);
    REQUIRE((code_of(text) == word.code) == is_word(text, word.text));
  }
}

TEST_CASE("words: nothing and what is longer than eight bytes has no code", "[net][resp]") {
  CHECK(code_of("") == 0);
  CHECK(code_of({}) == 0);
  CHECK(code_of("abcdefghi") == 0);
  CHECK(code_of(std::string(1'000, 'a')) == 0);
  CHECK(code_of(std::string_view{"nx\0", 3}) != code_of_word("nx"));
}

TEST_CASE("words: one to eight digits are the number that all digits are", "[net][resp]") {
  const unsigned seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int i = 0; i < 300'000; ++i) {
    std::string text(random() % 10, '0');
    for (char& c : text) c = static_cast<char>('0' + random() % 10);
    if (random() % 3 == 0 && !text.empty()) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    CAPTURE(text);
    const auto expected = text.size() > 8 ? std::nullopt : integer_of(text);
    const bool is_of_digits = text.find('-') == std::string::npos;
    REQUIRE(short_integer_of(text) == (is_of_digits ? expected : std::nullopt));
  }
}

}  // namespace
}  // namespace semel::net
