// INFO: what a node says of itself, as text for people and for the clients that look for a field.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace semel::net {

struct Services;

/// What clients branch on: the newest whose commands are all understood the same way.
inline constexpr std::string_view reported_redis_version = "7.2.4";

/// The sections that `names` ask for, in any case of letters; none: the usual ones. Names that are
/// none are passed over.
[[nodiscard]] std::string info_text(Services& services, std::span<const std::string_view> names);

/// As INFO shows amounts of memory: 12B, 1.50K, 2.00M.
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

}  // namespace semel::net
