// The hash's truth table: what one operation does to one record, as a pure function of (record or
// none, operation, now). No clock, no state, and random bits come in with the operation; a decision
// may be taken several times until its compare-and-set wins, so it writes to nothing but outcome
// and scratch.
// Source: docs/semantics.md#hashes
//
//   no record           reads find nothing; a write begins a hash, without end
//   another kind        wrong_type, nothing changes
//   no field is left    the record goes
//   a field has ended   it is not there; a write takes it out
//   all have ended      there is no record
#pragma once

#include "engine/hashes/hash_op.hpp"
#include "engine/hashes/hash_scratch.hpp"
#include "engine/rules/record.hpp"

namespace semel::engine {

/// What `op` does to `live` (null: absent). The outcome is overwritten. Decision::value points into
/// `scratch`. Errors, with which the record is kept: wrong_type, value_too_long, not_an_integer,
/// increment_overflow, not_a_float, nan_or_infinity, bad_option, invalid_expire, storage_damaged.
[[nodiscard]] Decision decide_hash(const RecordView* live, const HashOp& op, const HashFacts& facts,
                                   HashOutcome& outcome, HashScratch& scratch);

}  // namespace semel::engine
