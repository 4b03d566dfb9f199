// What the operator's calls do to a claim: pure functions like those of claim_rules.hpp.
// Source: docs/semantics.md#claims
//
//   nothing is known --issue-->   vacant
//   held, in doubt   --resolve--> done | as if it had never been granted, but for memos of steps
//   any state        --forget-->  absent
#pragma once

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// Outcome of an operator call. Error: wrong_kind.
struct OperatorOutcome {
  ErrorCode error = ErrorCode::ok;
  bool found = false;
};

/// issue: what nothing is known about becomes vacant until `ttl` from now. `found`: something is
/// known. Errors: wrong_kind.
[[nodiscard]] Decision decide_issue(const RecordView* live, Millis ttl, Timestamp now,
                                    OperatorOutcome& outcome, Scratch& scratch);

/// forget: removes a claim whatever its state. A vacant record goes too, but was not `found`.
[[nodiscard]] Decision decide_forget(const RecordView* live, OperatorOutcome& outcome) noexcept;

/// resolve: ends a held claim, in doubt or not, as done with `result` or as absent.
[[nodiscard]] Decision decide_resolve(const RecordView* live, Resolution resolution, Bytes result,
                                      const Policy& policy, Timestamp now, OperatorOutcome& outcome,
                                      Scratch& scratch);

/// Of a change of terms: a held claim whose record ends later by `policy` than it does now gets
/// that end. Its end would be a second run where the namespace never runs its work again by itself.
[[nodiscard]] Decision decide_hold(const RecordView* live, const Policy& policy, Scratch& scratch);

}  // namespace semel::engine
