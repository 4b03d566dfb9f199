// Redis Cluster's slots: how clients map a key to a node.
#pragma once

#include <cstdint>
#include <string_view>

namespace semel::net {

inline constexpr std::uint16_t slot_count = 16'384;

/// CRC16 (XMODEM) of the key, or of the text between its first '{' and the next '}', if that is not
/// empty; modulo slot_count.
[[nodiscard]] std::uint16_t slot_of(std::string_view key) noexcept;

}  // namespace semel::net
