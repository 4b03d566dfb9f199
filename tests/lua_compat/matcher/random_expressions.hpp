// Random calls of a script's libraries, as the text of an expression of Lua.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace semel::tests {

enum class Library : std::uint8_t {
  patterns,
  format,
  strings,
  tables,
  math,
  json,
  msgpack,
  structs,
  bits,
};
inline constexpr std::array<Library, 9> all_libraries{
    Library::patterns, Library::format,  Library::strings, Library::tables, Library::math,
    Library::json,     Library::msgpack, Library::structs, Library::bits};

/// Only what gives one answer everywhere: no order of keys, nothing that redis-server does not
/// survive.
class RandomExpressions {
 public:
  explicit RandomExpressions(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] std::string next(Library library);

 private:
  [[nodiscard]] std::size_t below(std::size_t count) { return random_() % count; }
  [[nodiscard]] std::string_view one_of(const std::vector<std::string_view>& choices) {
    return choices[below(choices.size())];
  }
  /// Several of them in a row.
  [[nodiscard]] std::string some_of(const std::vector<std::string_view>& choices,
                                    std::size_t count_max);
  [[nodiscard]] std::string bytes(std::size_t count_max);
  [[nodiscard]] std::string number();
  [[nodiscard]] std::string small_integer();
  /// Most of the time what is asked for, now and then anything.
  [[nodiscard]] std::string perhaps(std::string wanted);
  [[nodiscard]] std::string value(int depth);
  [[nodiscard]] std::string list(std::size_t count_max);
  [[nodiscard]] std::string arguments(const std::vector<std::string>& all, std::size_t needed);

  [[nodiscard]] std::string patterns();
  [[nodiscard]] std::string format();
  [[nodiscard]] std::string strings();
  [[nodiscard]] std::string tables();
  [[nodiscard]] std::string sorted();
  [[nodiscard]] std::string math();
  [[nodiscard]] std::string json();
  [[nodiscard]] std::string json_setting();
  [[nodiscard]] std::string json_text(int depth);
  [[nodiscard]] std::string msgpack();
  [[nodiscard]] std::string structs();
  [[nodiscard]] std::string bits();

  std::mt19937_64 random_;
};

/// A literal of Lua.
[[nodiscard]] std::string literal(std::string_view bytes);

}  // namespace semel::tests
