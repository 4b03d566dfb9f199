// The store's truth table: what one operation does to one record, as a pure function of (record
// or none, operation, now). No clock, no atomics, no state, no randomness; a decision may be taken
// several times until its compare-and-set wins, so it writes to nothing but outcome and scratch.
// Source: docs/semantics.md#store
//
//   no record, or one whose time has ended          -> live is null
//   an operation on strings meets another kind      -> wrong_type, nothing changes
//   set without conditions and without get          -> overwrites any kind but a claim
//   exists type del expire_time and
//   delex without condition                         -> work on any kind
//   expire persist                                  -> work on any kind but a claim
//   del, delex of a claim                           -> an operator's act, see guard_claim()
//   an Expiry::at that has passed                   -> the record goes, and that counts as applied
//   incr_by decr_by incr_by_float increx            -> counter_rules.hpp
#pragma once

#include <cstddef>
#include <string>

#include "engine/rules/record.hpp"
#include "engine/rules/string_rules_inline.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// decide() for operations less frequent than GET and SET.
[[nodiscard]] Decision decide_other(const RecordView* live, const StoreOp& op, Timestamp now,
                                    std::size_t value_bytes_max, StoreOutcome& outcome,
                                    std::string& scratch);

/// What `op` does to `live` (null: absent). `op` has passed validate(). The outcome is reset but
/// for what the caller knows better (version). Decision::value points into op, *live or `scratch`
/// and is valid as long as those are. On an error outcome.error is set and the record is kept.
[[nodiscard, gnu::always_inline]] inline Decision decide(const RecordView* live, const StoreOp& op,
                                                         Timestamp now, std::size_t value_bytes_max,
                                                         StoreOutcome& outcome,
                                                         std::string& scratch) {
  if (live != nullptr) {
    outcome.found = true;
    outcome.kind = live->kind;
    outcome.raw = live->raw;
  }
  if (op.verb == Verb::set) return decide_set(live, op, now, outcome);
  if (op.verb == Verb::get) return decide_get(live, outcome);
  return decide_other(live, op, now, value_bytes_max, outcome, scratch);
}

/// What becomes of a `decision` about a claim, held or finished: it is no value, so that whatever
/// would change it or its end is wrong_type. Deleting it stays possible: it is forgotten.
[[nodiscard]] inline Decision guard_claim(const StoreOp& op, const Decision& decision,
                                          StoreOutcome& outcome) noexcept {
  const bool would_change = (op.verb == Verb::set && op.condition != Condition::if_absent) ||
                            op.verb == Verb::expire || op.verb == Verb::persist;
  if (!would_change || outcome.error != ErrorCode::ok) return decision;
  outcome.applied = outcome.has_value = false;
  outcome.value.clear();
  return fail(outcome, ErrorCode::wrong_type);
}

/// Why `op` does not pass validate(), once it is known that something is unusual about it.
[[nodiscard]] ErrorCode explain(const StoreOp& op, std::size_t key_bytes_max,
                                std::size_t value_bytes_max) noexcept;

/// The checks that need no record. Errors: db_out_of_range, key_empty, key_too_long,
/// value_too_long, invalid_expire (not for getex, where Redis looks at the record first).
[[nodiscard]] inline ErrorCode validate(const StoreOp& op, std::size_t key_bytes_max,
                                        std::size_t value_bytes_max) noexcept {
  // An empty key wraps round to the largest number, so one comparison holds both ends.
  const bool usual = op.db < limits::db_count && op.key.size() - 1 < key_bytes_max &&
                     op.value.size() <= value_bytes_max && in_range(op.expiry);
  if (usual) [[likely]] {
    return ErrorCode::ok;
  }
  return explain(op, key_bytes_max, value_bytes_max);
}

}  // namespace semel::engine
