// Claims of a replica, which its replicated log decides (engine/logged/call_log.hpp).
//
// A claim whose answer is lost, because the leader has ended, is asked for again with the same id:
// a claim without one gets an id of its own for that. Only a repeat of finished work is answered
// without the replicated log, from the record that is here: it was acknowledged, so that its group
// has it, and no claim changes it.
#pragma once

#include <span>
#include <vector>

#include "engine/claims/claim_context.hpp"
#include "engine/logged/call_log.hpp"

namespace semel::engine {

/// Of a record that answers here: the group's time may be known worse on this node by so much.
inline constexpr Millis skew_margin{1'000};

/// Answers a claim whose work is done, if its record lives on for a while: that was acknowledged,
/// so that any replica which is current may repeat it. False: the replicated log decides, as where
/// the claim may move an end in a sliding window, unless the ends are to stay.
[[nodiscard]] bool repeat_claim(Engine& engine, const Claims::Namespace& names,
                                const GroupTime& time, const ClaimRequest& request, Ends ends,
                                ClaimOutcome& outcome);

/// A claim with an id. Bytes are the caller's.
struct LoggedRequest {
  explicit LoggedRequest(const ClaimRequest& from);
  /// What the caller is to see: it knows nothing of an id that was made here.
  void finish(ClaimOutcome& outcome) const noexcept {
    const bool is_first = outcome.answer == ClaimAnswer::regranted && has_own_id;
    if (is_first) outcome.answer = ClaimAnswer::granted;
  }

  ClaimRequest request;
  bool has_own_id;
};

/// One claim as a command.
[[nodiscard]] replication::Command command_of(Bytes name, const ClaimRequest& request);
/// The outcome that is in the answer to it.
[[nodiscard]] ClaimOutcome outcome_of(Result<replication::Answer>&& answer);

/// A full group refuses before anything is proposed: Policy::fail_open.
void open_if_full(const Policy& policy, ClaimOutcome& outcome) noexcept;

[[nodiscard]] ClaimOutcome claim_logged(CallLog& log, Engine& engine,
                                        const Claims::Namespace& names, const LoggedRequest& asked);

using ClaimBatch = replication::ClaimCommand::What;
/// Returns whether all were granted.
bool claim_logged(CallLog& log, Engine& engine, const Claims::Namespace& names, ClaimBatch what,
                  std::span<const ClaimRequest> requests, std::span<ClaimOutcome> outcomes);

[[nodiscard]] OwnerOutcome owner_call_logged(CallLog& log, const ClaimContext& context,
                                             OwnerVerb verb, const OwnerCall& call);
void complete_logged(CallLog& log, const ClaimContext& context, std::span<const OwnerCall> calls,
                     std::span<OwnerOutcome> outcomes);

}  // namespace semel::engine
