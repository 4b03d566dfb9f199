// Texts of others on their way into lines and labels: what comes out is valid UTF-8 on one line,
// whatever went in. A byte that belongs to no character is written as \xNN.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace semel::net {

/// How many bytes the character at the front of `text` takes, 1..4; 0: that is no UTF-8.
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;

/// The front of `text`, at most `bytes_max` of it, not cut within a character.
[[nodiscard]] std::string_view cut_at_character(std::string_view text,
                                                std::size_t bytes_max) noexcept;

/// As between the quotes of a JSON text; a reader of logfmt takes the same.
void append_escaped(std::string& out, std::string_view text);

/// As between the quotes of a label's value.
/// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
void append_label_value(std::string& out, std::string_view text);

}  // namespace semel::net
