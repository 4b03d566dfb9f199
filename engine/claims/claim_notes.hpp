// What calls about claims leave in the decision log and in the counters by namespace. Where neither
// is kept, each costs a comparison.
#pragma once

#include "engine/claims/claim_context.hpp"
#include "engine/decisions/decision_log.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// An operator's call. `is_done`: of a resolve.
struct OperatorCall {
  DecisionCall call;
  bool is_done = false;
};

/// The note of one call: made before it looks the record up, so that the decision log's cold lines
/// are fetched in parallel. A note that is not written leaves nothing.
class ClaimNote {
 public:
  ClaimNote(const ClaimContext& context, Bytes table_key) noexcept
      : context_(context), log_(context.decisions) {
    if (log_ != nullptr) [[unlikely]]
      begin(table_key);
  }
  ClaimNote(const ClaimNote&) = delete;
  ClaimNote& operator=(const ClaimNote&) = delete;

  /// What the call has met. Inside the operation. `owner_dead`: its session was closed.
  void read(const RecordView* live, bool owner_dead) noexcept {
    if (log_ != nullptr) [[unlikely]]
      read_record(live, owner_dead);
  }
  /// `arrives` false: re-evaluation on behalf of a parked waiter, by any thread.
  void write(const ClaimRequest& request, const ClaimOutcome& outcome,
             bool arrives = true) const noexcept {
    if (log_ != nullptr) [[unlikely]]
      add(request, outcome, arrives);
  }
  void write(OwnerVerb verb, const OwnerCall& call, const OwnerOutcome& outcome,
             bool changed) const noexcept {
    if (log_ != nullptr) [[unlikely]]
      add(verb, call, outcome, changed);
  }
  void write(OperatorCall call, ErrorCode error, bool found) const noexcept {
    if (log_ != nullptr) [[unlikely]]
      add(call, error, found);
  }

 private:
  void begin(Bytes table_key) noexcept;
  void read_record(const RecordView* live, bool owner_dead) noexcept;
  [[nodiscard]] DecisionFacts facts() const noexcept;
  void add(DecisionFacts& facts, bool arrives) const noexcept;
  void add(const ClaimRequest& request, const ClaimOutcome& outcome, bool arrives) const noexcept;
  void add(OwnerVerb verb, const OwnerCall& call, const OwnerOutcome& outcome,
           bool changed) const noexcept;
  void add(OperatorCall call, ErrorCode error, bool found) const noexcept;

  const ClaimContext& context_;
  DecisionLog* const log_;  ///< null: nothing is kept, and nothing below is used
  std::uint64_t hash_;
  MetClaim met_;
  bool owner_dead_;
  Label<limits::owner_label_max> owner_;  // of the record: a copy
};

/// One more answer of its kind, of a namespace.
void count_by_namespace(ClaimCounts& counts, const Claims::Namespace& names,
                        const ThreadContext& own, const ClaimOutcome& outcome) noexcept;

}  // namespace semel::engine
