// What calls about claims leave in the decision log and in the counters by namespace. Where neither
// is kept, each costs a comparison.
#pragma once

#include "engine/claims/claim_context.hpp"
#include "engine/decisions/decision_log.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// Reads what a call has met, for the log alone. Inside the operation.
void read_met(const ClaimContext& context, const RecordView* live, MetRecord& met) noexcept;

/// `arrives` false: an engine's thread asks for a waiter, whoever it serves.
void write_note(const ClaimContext& context, Bytes table_key, const ClaimRequest& request,
                const MetRecord& met, const ClaimOutcome& outcome, bool arrives) noexcept;
void write_note(const ClaimContext& context, Bytes table_key, OwnerVerb verb, const OwnerCall& call,
                const MetRecord& met, const OwnerOutcome& outcome, bool changed) noexcept;

/// An operator's call. `is_done`: of a resolve.
struct OperatorNote {
  DecisionCall call;
  bool is_done = false;
};
void write_note(const ClaimContext& context, Bytes table_key, OperatorNote note,
                const MetRecord& met, ErrorCode error, bool found) noexcept;

inline void note_claim(const ClaimContext& context, Bytes table_key, const ClaimRequest& request,
                       const MetRecord& met, const ClaimOutcome& outcome, bool arrives = true) {
  if (context.decisions == nullptr) [[likely]]
    return;
  write_note(context, table_key, request, met, outcome, arrives);
}

/// One more answer of its kind, of a namespace.
void count_by_namespace(ClaimCounts& counts, const Claims::Namespace& names,
                        const ThreadContext& own, const ClaimOutcome& outcome) noexcept;

}  // namespace semel::engine
