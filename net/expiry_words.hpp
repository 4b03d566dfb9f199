// EX, PX, EXAT, PXAT and their company, as SET, GETEX and others take them.
#pragma once

#include <optional>
#include <string_view>

#include "net/command.hpp"

namespace semel::net {

enum class ExpiryUnit : std::uint8_t { in_seconds, in_ms, at_seconds, at_ms };

/// None: not one of them.
[[nodiscard]] std::optional<ExpiryUnit> expiry_unit_of(std::string_view word) noexcept;

/// What the words say, checked as redis-server does it.
[[nodiscard]] Fault read_expiry(const Call& call, ExpiryUnit unit, std::string_view number,
                                Expiry& expiry);

}  // namespace semel::net
