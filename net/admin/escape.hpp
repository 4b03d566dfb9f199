// Escapes texts of others for log lines and labels. The result is valid UTF-8 on one line, whatever
// the input is. A byte that is not part of a character is written as \xNN.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace semel::net {

/// The number of bytes of the character at the front of `text`, 1..4; 0: it is not UTF-8.
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;

/// At most `bytes_max` bytes of the front of `text`, not cut within a character.
[[nodiscard]] std::string_view cut_at_character(std::string_view text,
                                                std::size_t bytes_max) noexcept;

/// Appends `text` as between the quotes of a JSON string; logfmt has the same escapes.
void append_escaped(std::string& out, std::string_view text);

/// Appends `text` as between the quotes of a label value.
/// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
void append_label_value(std::string& out, std::string_view text);

}  // namespace semel::net
