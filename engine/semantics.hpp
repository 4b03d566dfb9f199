// The store's truth table: what one operation does to one record, as a pure function of (record
// or none, operation, now). No clock, no atomics, no state, no randomness; a decision may be taken
// several times until its compare-and-set wins, so it writes to nothing but outcome and scratch.
// Source: docs/semantics.md#store
//
//   no record, or one whose time has ended          -> live is null
//   an operation on strings meets another kind      -> wrong_type, nothing changes
//   set without conditions and without get          -> overwrites any kind
//   exists type del expire persist expire_time and
//   delex without condition                         -> work on any kind
//   an Expiry::at that has passed                   -> the record goes, and that counts as applied
#pragma once

#include <cstddef>
#include <string>

#include "engine/record.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// What `op` does to `live` (null: absent). `op` has passed validate(). The outcome is reset but
/// for what the caller knows better (version). Decision::value points into op, *live or `scratch`
/// and is valid as long as those are. On an error outcome.error is set and the record is kept.
[[nodiscard]] Decision decide(const RecordView* live, const StoreOp& op, Timestamp now,
                              std::size_t value_bytes_max, StoreOutcome& outcome,
                              std::string& scratch);

/// Stores `live` as it is, of any kind, to end at `due`. A finished claim still wants a visit when
/// its result ends; without it the result's bytes would stay until the claim itself goes.
[[nodiscard]] Decision retime(const RecordView& live, Timestamp due) noexcept;

/// Why `op` does not pass validate(), once it is known that something is unusual about it.
[[nodiscard]] ErrorCode explain(const StoreOp& op, std::size_t key_bytes_max,
                                std::size_t value_bytes_max) noexcept;

/// The checks that need no record. Errors: db_out_of_range, key_empty, key_too_long,
/// value_too_long, invalid_expire (not for getex, where Redis looks at the record first).
[[nodiscard]] inline ErrorCode validate(const StoreOp& op, std::size_t key_bytes_max,
                                        std::size_t value_bytes_max) noexcept {
  // An empty key wraps round to the largest number, so one comparison holds both ends.
  const bool usual = op.db < limits::db_count && op.key.size() - 1 < key_bytes_max &&
                     op.value.size() <= value_bytes_max &&
                     (op.expiry.mode() != Expiry::Mode::in ||
                      (op.expiry.ttl() >= Millis{1} && op.expiry.ttl() <= limits::ttl_max));
  if (usual) [[likely]] {
    return ErrorCode::ok;
  }
  return explain(op, key_bytes_max, value_bytes_max);
}

}  // namespace semel::engine
