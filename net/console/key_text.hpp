// Keys and payloads as text that shows what it is: any bytes become printable characters, each in
// one way only, and back.
//
//   \\      a backslash
//   \x00    a byte that is a control character, no part of a character of UTF-8, or part of one
//           that does not show: marks of direction, joiners, spaces but ' ', private use
//
// Nothing here makes text safe for HTML: the page puts it into text nodes only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace semel::net {

[[nodiscard]] std::string key_text(std::string_view bytes);

/// The bytes that `text` stands for; forms that key_text() does not write are read as well. None: a
/// backslash with neither of the two behind it.
[[nodiscard]] std::optional<std::string> bytes_of_key_text(std::string_view text);

}  // namespace semel::net
