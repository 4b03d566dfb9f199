// Values of dumps (net/rdb) as records of the engine, and back.
#pragma once

#include <optional>
#include <string>

#include "engine/object_api/whole_record.hpp"
#include "net/rdb/dump_format.hpp"
#include "semel/hashes.hpp"

namespace semel::net {

/// The bytes of the record that `value` becomes at `key`. None: a set, a sorted set or a hash has a
/// member or field twice. std::bad_alloc.
[[nodiscard]] std::optional<std::string> record_of(Engine& engine, KeyRef key,
                                                   const DumpValue& value);

/// The payload of DUMP for a record that is no hash. None: its kind has no serialization yet, or
/// the record is damaged. std::bad_alloc.
[[nodiscard]] std::optional<std::string> dump_of(const engine::WholeRecord& record);
[[nodiscard]] std::string dump_of(const FieldValues& hash);

}  // namespace semel::net
