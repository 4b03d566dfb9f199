// The repeat oracle: which calls a live record answers by itself, and with what. Most calls are
// repeats (a claim of finished work, a GET or SET NX of a live string), and answering them from the
// record takes a third of a decision's instructions; the rest of the processor's window is for the
// next call's cache misses.
//
// The answers are those of the truth tables: tests/engine/rules/repeat_test.cpp compares them over
// all states of a record and all operations. All fast paths ask here.
#pragma once

#include <algorithm>

#include "engine/rules/claim_states.hpp"
#include "semel/claim.hpp"
#include "semel/op.hpp"

namespace semel::engine {

/// Whether `op` is answered by a live record for which answers_repeat() is true.
[[nodiscard]] constexpr bool may_repeat(const StoreOp& op) noexcept {
  return op.verb == Verb::get || (op.verb == Verb::set && op.condition == Condition::if_absent);
}

/// Whether a live record of this kind answers what may_repeat().
[[nodiscard]] constexpr bool answers_repeat(Kind live) noexcept {
  return live == Kind::string;
}

/// Answers an operation that may_repeat() from `live`, which has kind(), version() and value().
/// False: decide() has to. The outcome was reset; it is complete then but for error and applied,
/// which stay as they are.
template <class Live>
[[nodiscard, gnu::always_inline]] inline bool answer_repeat(const StoreOp& op, const Live& live,
                                                            StoreOutcome& outcome) {
  if (!answers_repeat(live.kind())) return false;
  outcome.found = true;
  outcome.version = live.version();
  if (op.get || op.verb == Verb::get) {
    outcome.value.append(live.value());
    outcome.has_value = true;
  }
  return true;
}

/// Answers a claim from the bytes of a live claim record: a replay of finished work. False:
/// decide_claim() has to. The outcome is a fresh one.
[[nodiscard]] inline bool answer_repeat(const ClaimRequest& request, Bytes record, Timestamp now,
                                        ClaimOutcome& outcome) {
  if (request.fingerprint.algorithm != 0) return false;
  Replay replay;
  if (!read_replay(record, now, replay)) return false;
  outcome.answer = ClaimAnswer::replay;
  outcome.attempt = replay.attempts;
  outcome.result.append(replay.result);
  return true;
}

/// The same of work that is under way, by an owner in its lease. `is_closed(SessionId)`: its
/// session is. `due`: the end of the record.
template <class IsClosed>
[[nodiscard]] bool answer_in_flight(const ClaimRequest& request, Bytes record, const Policy& policy,
                                    Timestamp now, IsClosed&& is_closed, ClaimOutcome& outcome) {
  HeldClaim held;
  if (request.fingerprint.algorithm != 0 || request.claim_id || !read_held(record, held)) {
    return false;
  }
  if ((held.head & claim_number_bits) != 0) [[unlikely]]
    return false;
  if (lease_over(held.lease_until, now, is_closed(held.session))) return false;
  outcome.answer = ClaimAnswer::in_flight;
  outcome.attempt = held.attempts;
  outcome.remaining = held.lease_until - now;
  outcome.retry_after = std::min(outcome.remaining, policy.retry_after_max);
  outcome.owner.append(held.owner());
  return true;
}

}  // namespace semel::engine
