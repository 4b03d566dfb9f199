// Redis' protocol as tests write and read it, independent of the library's own parser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::tests {

using Words = std::vector<std::string>;

/// The words of a line, separated by blanks; "'a b'" is one word.
[[nodiscard]] Words words_in(std::string_view line);

/// The bytes of a request.
[[nodiscard]] std::string request_bytes(const Words& words);

/// `bytes` in quotes, with what cannot be printed as \xHH.
[[nodiscard]] std::string printable(std::string_view bytes);

/// A value of RESP2 or RESP3.
struct RespValue {
  enum class Type : char {
    broken = '!',
    status = '+',
    error = '-',
    integer = ':',
    bulk = '$',
    null = '_',  ///< in RESP2, too, where it is $-1 or *-1
    array = '*',
    map = '%',  ///< items: key, value, key, value, ..
    set = '~',
    push = '>',
    boolean = '#',
    number = ',',
    big_number = '(',
    verbatim = '=',
  };
  Type type = Type::broken;
  std::string text{};  ///< what is behind the type, or the bytes of a bulk
  std::vector<RespValue> items{};

  /// One line by which values differ: `+OK`, `-ERR ..`, `:5`, `"bytes"`, `nil`, `[..]`.
  [[nodiscard]] std::string show() const;
};

/// Removes one value from the front of `bytes`. None: it is incomplete, and `bytes` is unchanged.
/// A value of type broken: it is no RESP, and `bytes` is empty.
[[nodiscard]] std::optional<RespValue> take_value(std::string_view& bytes);

/// The bytes of each value; an incomplete one at the end is the last.
[[nodiscard]] std::vector<std::string> split_values(std::string_view bytes);

}  // namespace semel::tests
