// Reads the payload of RESTORE, which a client may have made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/rdb/dump_format.hpp"

namespace semel::net {

enum class DumpFault : std::uint8_t {
  none,
  footer,     ///< the checksum is not that of the bytes, or a later release wrote it
  format,     ///< of a kind that is not read, damaged, or without elements
  too_large,  ///< more than `bytes_max` bytes when it is unpacked
};

/// What stands behind the value is ignored, as redis-server does. Twins in a set, a sorted set or a
/// hash are not looked for. Takes memory of a small multiple of `bytes_max` at most, and of no more
/// than the payload holds. std::bad_alloc.
[[nodiscard]] DumpFault read_dump(std::string_view payload, std::size_t bytes_max,
                                  DumpValue& value);

}  // namespace semel::net
