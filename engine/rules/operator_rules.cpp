#include "engine/rules/operator_rules.hpp"

#include <algorithm>

#include "engine/rules/claim_states.hpp"

namespace semel::engine {

Decision decide_issue(const RecordView* live, Millis ttl, Timestamp now, OperatorOutcome& outcome,
                      Scratch& scratch) {
  outcome = {};
  outcome.found = live != nullptr;
  ClaimRecord record;
  if (read_claim(live, record) == ClaimFound::wrong_kind) outcome.error = ErrorCode::wrong_kind;
  if (live != nullptr) return {};
  return store_vacant(0, 0, {}, now + ttl, scratch);
}

Decision decide_forget(const RecordView* live, OperatorOutcome& outcome) noexcept {
  outcome = {};
  ClaimRecord record;
  const ClaimFound found = read_claim(live, record);
  outcome.found = found == ClaimFound::claim;
  if (found == ClaimFound::wrong_kind) {
    outcome.error = ErrorCode::wrong_kind;
    return {};
  }
  return live == nullptr ? Decision{} : erase_claim;
}

Decision decide_resolve(const RecordView* live, Resolution resolution, Bytes result,
                        const Policy& policy, Timestamp now, OperatorOutcome& outcome,
                        Scratch& scratch) {
  outcome = {};
  ClaimRecord record;
  const ClaimFound found = read_claim(live, record);
  if (found == ClaimFound::wrong_kind) outcome.error = ErrorCode::wrong_kind;
  if (found != ClaimFound::claim || !is_open(record)) return {};
  outcome.found = true;
  if (resolution == Resolution::released) {
    return giving_up(give_back(record, policy, now, scratch));
  }
  return giving_up(store_done(record, result, policy, now, scratch));
}

Decision decide_hold(const RecordView* live, const Policy& policy, Scratch& scratch) {
  ClaimRecord record;
  if (read_claim(live, record) != ClaimFound::claim || !is_open(record)) return {};
  const Timestamp due = std::max(live->due, held_due(record, policy));
  return due == live->due ? Decision{} : store_claim(record, due, scratch);
}

}  // namespace semel::engine
