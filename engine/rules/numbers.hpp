// Text to number and back, to the letter as Redis reads and prints numbers kept in strings.
// Being more lenient than Redis here would let a counter accept what no other server accepts.
#pragma once

#include <cstdint>
#include <string>

#include "semel/types.hpp"

namespace semel::engine {

/// Longest text that parse_float() accepts and that format_float() can produce, and one more.
inline constexpr std::size_t float_text_bytes_max = 5 * 1024;

/// Reads a whole 64-bit integer. Nothing but an optional minus and digits: no plus, no space, no
/// leading zero, no "-0". False: not such a text; `value` is untouched.
[[nodiscard]] bool parse_integer(Bytes text, std::int64_t& value) noexcept;

/// Replaces `text` by the decimal form of `value`.
void format_integer(std::int64_t value, std::string& text);

/// Reads what strtold reads in the C locale, all of it: decimal or hexadecimal, exponents and
/// infinities; no leading space, no NaN, nothing that overflows or vanishes to zero. False: not
/// such a text; `value` is untouched.
[[nodiscard]] bool parse_float(Bytes text, long double& value) noexcept;

/// Appends `value` with up to 17 digits after the point, never with an exponent, without trailing
/// zeros. Independent of the process' locale.
void append_float(long double value, std::string& text);

}  // namespace semel::engine
