// Numbers of JSON: as RFC 8785 has them, read as IEEE doubles and printed as ECMAScript prints
// them; and exact, their decimal value in the same layout. Both give one text for the shortest
// digits of a double.
#pragma once

#include <optional>
#include <string>

#include "semel/types.hpp"

namespace semel::patterns {

/// The double nearest to `text`, which is a number by JSON's grammar. None: it is beyond them all.
[[nodiscard]] std::optional<double> read_json_number(Bytes text) noexcept;

/// Appends `value`, which is finite, by ECMAScript's Number::toString.
void append_json_number(double value, std::string& text);

/// Appends the exact decimal value of `literal`, which is a number by JSON's grammar. False: it has
/// a digit more than limits::json_places_max places in front of the point or behind it, and nothing
/// was appended.
[[nodiscard]] bool append_exact_number(Bytes literal, std::string& text);

}  // namespace semel::patterns
