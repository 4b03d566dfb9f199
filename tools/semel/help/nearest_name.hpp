// Finds the known name that is nearest to a mistyped one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace semel::tool {

/// Largest edit distance at which a name is suggested.
inline constexpr std::size_t name_edits_max = 2;

/// The first of `known` with the fewest edits (insert, delete, replace, swap neighbours) to
/// `typed`, as a view into `known`; empty if that takes more than name_edits_max edits or more than
/// half of the characters of `typed`. `typed` may hold any bytes and be of any length.
[[nodiscard]] std::string_view nearest_name(std::string_view typed,
                                            std::span<const std::string> known);

/// `text` in single quotes for a message: bytes that are not printable ASCII as \xNN, and a text
/// longer than 60 bytes cut, with its length.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace semel::tool
