// Redis Cluster's slots: where clients believe a key to be.
#pragma once

#include <cstdint>
#include <string_view>

namespace semel::net {

inline constexpr std::uint16_t slot_count = 16'384;

/// CRC16 (XMODEM) of the key, or of what is between its first '{' and the next '}', if that is not
/// empty; modulo slot_count.
[[nodiscard]] std::uint16_t slot_of(std::string_view key) noexcept;

}  // namespace semel::net
