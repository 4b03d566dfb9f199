// EX, PX, EXAT, PXAT and their company, as SET, GETEX and others take them.
#pragma once

#include <optional>
#include <string_view>

#include "net/commands/command.hpp"

namespace semel::net {

/// One rule for every command that gives a key an end: at most 500 years of 365 days from now. An
/// end beyond that is refused as redis-server refuses one that overflows: "invalid expire time".
/// The engine keeps ends for 557 years on its clock, which began at most 57 years ago.
inline constexpr Millis command_ttl_max{std::int64_t{500} * 365 * 24 * 3600 * 1000};

enum class ExpiryUnit : std::uint8_t { in_seconds, in_ms, at_seconds, at_ms };

/// None: not one of them.
[[nodiscard]] std::optional<ExpiryUnit> expiry_unit_of(std::string_view word) noexcept;

/// What the words say, checked as redis-server does it.
[[nodiscard]] ArgumentError read_expiry(const Call& call, ExpiryUnit unit, std::string_view number,
                                        Expiry& expiry);

}  // namespace semel::net
