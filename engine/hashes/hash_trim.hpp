// Takes the ended fields out of packed hashes.
#pragma once

#include <string>
#include <vector>

#include "engine/rules/hash_value.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

/// Erases of the fields that have ended by `now`. std::bad_alloc.
[[nodiscard]] std::vector<HashChange> ended_fields(const HashView& hash, Timestamp now);
/// Of a hash that has been written with ends: it keeps them only if a field has one. Returns when
/// the record ends. std::bad_alloc.
Timestamp end_of_written(std::uint64_t seed, std::string& bytes);
/// Takes the ended fields out of a live hash that is packed. Keeps it if none has ended.
/// std::bad_alloc.
[[nodiscard]] Decision trim_hash(const RecordView& live, Timestamp now, std::string& scratch);

}  // namespace semel::engine
