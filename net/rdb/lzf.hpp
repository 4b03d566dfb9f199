// Bytes that LZF has compressed, as redis-server does it with strings of its dumps.
//
//   000LLLLL, then L + 1 bytes                        these bytes
//   LLLddddd dddddddd           (L is 1 to 6)         L + 2 bytes from d + 1 bytes back
//   111ddddd LLLLLLLL dddddddd                        L + 9 bytes from d + 1 bytes back
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace semel::net {

/// The most that `packed` bytes can stand for: three of them for 264.
[[nodiscard]] constexpr std::size_t lzf_bytes_max(std::size_t packed) noexcept {
  return packed * 88 + 1;
}
/// Appends what `packed` stands for, which must be `bytes` bytes. False: it is not, and `to` may
/// have a part of it. Takes memory for no more than `packed` can hold.
[[nodiscard]] bool append_unpacked(std::string_view packed, std::size_t bytes, std::string& to);

}  // namespace semel::net
