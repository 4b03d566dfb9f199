// Values of dumps (net/rdb) as records of the engine, and back.
#pragma once

#include <optional>
#include <string>

#include "engine/object_api/whole_record.hpp"
#include "net/rdb/dump_format.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// The bytes of the record that `value` becomes at `key`, which ends at `end`. None: a set, a
/// sorted set or a hash has a member or field twice. std::bad_alloc.
[[nodiscard]] std::optional<std::string> record_of(Engine& engine, KeyRef key,
                                                   const DumpValue& value, Timestamp end);

/// A key as DUMP and MIGRATE give it away.
struct KeyDump {
  std::string payload{};
  Version version = 0;
  Timestamp due = no_end;  ///< of the key
  Timestamp now{};         ///< of the instant at which the key was read
};
/// As of one instant. None: there is no such key. Errors: bad_option, whose detail says why there
/// is no serialization; those of read_whole() and Engine::section(). std::bad_alloc.
[[nodiscard]] Result<std::optional<KeyDump>> dump_key(Engine& engine, KeyRef key);

}  // namespace semel::net
