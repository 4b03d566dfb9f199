// Amounts with a unit, as settings have them: "100mb", "30s".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace semel::net {

/// "100mb", "64k", "12": 1000 for k, m and g, 1024 for kb, mb and gb, in any case of letters. None:
/// not such a text, or more than 2^63 - 1.
[[nodiscard]] std::optional<std::int64_t> bytes_of(std::string_view text);
/// "250ms", "30s", "5m", "2h", "10us" in a `unit` of "s", "ms" or "us"; a plain number counts
/// units. None: not such a text, too large, or no whole number of units.
[[nodiscard]] std::optional<std::int64_t> duration_of(std::string_view text, std::string_view unit);
/// `bytes`, above 0, in the largest unit of which it is a whole number. None: only in bytes.
[[nodiscard]] std::optional<std::string> bytes_text(std::int64_t bytes);

}  // namespace semel::net
