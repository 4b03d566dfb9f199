// Keys and payloads as unambiguous text: any bytes become printable characters, each in one way
// only, and the text becomes the same bytes again.
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

/// The bytes that `text` stands for, also in forms that key_text() does not write. None: a
/// backslash is followed by neither of the two.
[[nodiscard]] std::optional<std::string> bytes_of_key_text(std::string_view text);

}  // namespace semel::net
