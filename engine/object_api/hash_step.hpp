// One operation on one hash, as the facades and the commands of hashes call it.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/api/engine_impl.hpp"
#include "engine/hashes/hash_rules.hpp"
#include "semel/hashes.hpp"
#include "semel/result.hpp"

namespace semel::engine {

/// Applies one operation to one key, in the section of this thread if it is in one. Errors: those
/// of decide_hash(), key_empty, key_too_long, db_out_of_range, memory_full, refused (also a verb
/// that the log of a group does not have), section_held, outcome_unknown. Thread-safe.
/// std::bad_alloc.
[[nodiscard]] Status run_hash(Engine& engine, KeyRef key, const HashOp& op, HashOutcome& out);

/// The same; `read` turns the outcome into the answer.
template <class Read>
auto run_hash(Engine& engine, KeyRef key, const HashOp& op, Read&& read)
    -> Result<decltype(read(std::declval<HashOutcome&>()))> {
  HashOutcome out;
  SEMEL_CHECK(run_hash(engine, key, op, out));
  return read(out);
}

/// Of an index that is made. As secret as the table's own hashes, or as the entry that is applied.
[[nodiscard]] std::uint64_t hash_seed_of(Core& core, const ThreadContext& own, KeyRef key) noexcept;

}  // namespace semel::engine
