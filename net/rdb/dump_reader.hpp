// Reads the payload of RESTORE, which a client may have made up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/rdb/dump_format.hpp"

namespace semel::net {

/// What stands behind the value is ignored, as redis-server does. Twins in a set, a sorted set or a
/// hash are not looked for. Takes memory of a small multiple of `bytes_max` at most, and of no more
/// than the payload holds. std::bad_alloc.
[[nodiscard]] DumpFault read_dump(std::string_view payload, std::size_t bytes_max,
                                  DumpValue& value);

/// Of a value of an RDB file. None: it is not read.
[[nodiscard]] std::optional<Kind> kind_of_type(std::uint8_t type) noexcept;

/// The same for a value of an RDB file: `bytes` stand behind its type and its key. `footer` is not
/// returned.
[[nodiscard]] DumpFault read_value(std::uint8_t type, std::string_view bytes, std::size_t bytes_max,
                                   DumpValue& value);

}  // namespace semel::net
