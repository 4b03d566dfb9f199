// Numbers of JSON as RFC 8785 wants them: read as IEEE doubles, printed as ECMAScript prints them.
#pragma once

#include <optional>
#include <string>

#include "semel/types.hpp"

namespace semel::patterns {

/// The double nearest to `text`, which is a number by JSON's grammar. None: it is beyond them all.
[[nodiscard]] std::optional<double> read_json_number(Bytes text) noexcept;

/// Appends `value`, which is finite, by ECMAScript's Number::toString.
void append_json_number(double value, std::string& text);

}  // namespace semel::patterns
