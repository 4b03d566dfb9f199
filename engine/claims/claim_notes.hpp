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

/// The note of one call: begun before it looks the record up, so that the decision log's cold lines
/// are fetched in parallel. A note that is not begun, or not written, leaves nothing.
class ClaimNote {
 public:
  explicit ClaimNote(const ClaimContext& context) noexcept
      : context_(context), log_(context.decisions) {
    if (log_ != nullptr) [[unlikely]]
      bucket_ = nullptr;
  }
  ClaimNote(const ClaimContext& context, Bytes table_key) noexcept : ClaimNote(context) {
    if (log_ != nullptr) [[unlikely]]
      begin(context.impl.core().keys().hash64_of(0, table_key));
  }
  ClaimNote(const ClaimNote&) = delete;
  ClaimNote& operator=(const ClaimNote&) = delete;

  /// `hash`: all of that of the key, which lies at `location`.
  void begin(const KeyLocation& location, std::uint64_t hash) noexcept {
    if (log_ != nullptr) [[unlikely]]
      begin(moved_by_db(hash, location.stored_db));
  }
  /// What the call has met. Inside the operation. `owner_dead`: its session was closed.
  void read(const RecordView* live, bool owner_dead) noexcept {
    if (log_ == nullptr) [[likely]]
      return;
    DecisionLog::fetch_place(*bucket_);
    met_ = {};
    if (live != nullptr) read_record(*live, owner_dead);
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
  /// `hash`: of the key in database 0, wherever it is, so that a swap of databases changes nothing.
  void begin(std::uint64_t hash) noexcept {
    hash_ = hash;
    bucket_ = &log_->bucket_of(hash);
    DecisionLog::fetch_head(*bucket_);
    met_ = {};
  }
  void read_record(const RecordView& live, bool owner_dead) noexcept;
  /// Writes what all decisions have.
  void fill(DecisionLog::Place& place, ErrorCode error, Bytes owner, bool arrives) const noexcept;
  void add(const ClaimRequest& request, const ClaimOutcome& outcome, bool arrives) const noexcept;
  void add(OwnerVerb verb, const OwnerCall& call, const OwnerOutcome& outcome,
           bool changed) const noexcept;
  void add(OperatorCall call, ErrorCode error, bool found) const noexcept;

  /// What read() has met. Not initialised where nothing is kept.
  struct Met {
    Epoch epoch;
    std::int64_t lease_ms;
    ClaimState state;
    std::uint8_t flags;  ///< DecisionFacts::owner_dead
    std::uint8_t owner_size;
  };

  const ClaimContext& context_;
  DecisionLog* const log_;       ///< null: nothing is kept, and nothing below is used
  DecisionLog::Bucket* bucket_;  ///< null: not begun
  std::uint64_t hash_;
  Met met_;
  char met_owner_[limits::owner_label_max];  // a copy
};

// The same of calls of which nothing else is to be said, in the place of a ClaimNote. Their
// bucket's head is fetched before the look, and its place after it. `hash`: of the key in database
// 0; `now`: of the decision.

/// Of a first grant, to a caller that said no more than its key.
void note_grant(DecisionLog& log, const ThreadContext& own, std::uint64_t hash, Timestamp now,
                Epoch epoch, Millis lease) noexcept;
/// Of a completion by the owner of `held`, whose lease is not over. Inside the operation, as its
/// bytes are read.
void note_completion(DecisionLog& log, const ThreadContext& own, std::uint64_t hash, Timestamp now,
                     const HeldClaim& held) noexcept;

/// One more answer of its kind, of a namespace.
void count_by_namespace(ClaimCounts& counts, const Claims::Namespace& names,
                        const ThreadContext& own, const ClaimOutcome& outcome) noexcept;

}  // namespace semel::engine
