// Streams in dumps. The forms differ in what they know of groups and consumers (dump_format.hpp).
#pragma once

#include <cstdint>

#include "net/rdb/dump_bytes.hpp"
#include "net/rdb/dump_format.hpp"

namespace semel::net {

/// By the release of redis-server that wrote it first.
enum class StreamForm : std::uint8_t { of_5_0, of_7_0, of_7_2 };

/// Then `in` has a fault, or `value` has a whole stream: its ids ascend, no entry is behind the
/// last id, and each pending id is with one consumer of its group. std::bad_alloc.
void read_stream(DumpBytes& in, StreamForm form, DumpValue& value);

}  // namespace semel::net
