// Streams of dumps as records of the engine, and back.
#pragma once

#include <string>

#include "engine/objects/object_reader.hpp"
#include "net/rdb/dump_format.hpp"
#include "net/rdb/dump_writer.hpp"

namespace semel::net {

/// The bytes of the record that the stream becomes, with all groups. std::bad_alloc.
[[nodiscard]] std::string record_of_stream(const DumpValue& value);

/// Writes what stands behind the type RdbType::stream_2. False: the record is damaged.
/// std::bad_alloc.
[[nodiscard]] bool write_stream(DumpWriter& to, const engine::ObjectReader& stream);

}  // namespace semel::net
