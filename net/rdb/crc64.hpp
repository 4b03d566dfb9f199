// The checksum of redis-server's dumps: CRC-64 with the polynomial of Jones, 0xad93d23594c935a9,
// bits reflected, beginning with 0 and not inverted at the end.
#pragma once

#include <cstdint>
#include <string_view>

namespace semel::net {

/// `before`: of the bytes in front of these.
[[nodiscard]] std::uint64_t crc64(std::string_view bytes, std::uint64_t before = 0) noexcept;

}  // namespace semel::net
