#include "engine/rules/memo_rules.hpp"

#include "engine/rules/claim_states.hpp"
#include "engine/rules/memo_list.hpp"

namespace semel::engine {
namespace {

/// Ownership: checked before everything else that a step does. Epoch 0 owns nothing.
[[nodiscard]] ErrorCode find_owned(const RecordView* live, Epoch epoch, const ClaimFacts& facts,
                                   ClaimRecord& record) noexcept {
  const ClaimFound found = read_claim(live, record);
  if (found == ClaimFound::wrong_kind) return ErrorCode::wrong_kind;
  const bool owns = found == ClaimFound::claim && epoch != 0 && record.epoch == epoch &&
                    record.state == ClaimState::held &&
                    !lease_over(record, facts.now, facts.owner_dead);
  return owns ? ErrorCode::ok : ErrorCode::not_owner;
}

}  // namespace

ErrorCode check_step(Bytes step) noexcept {
  const bool fits = !step.empty() && step.size() <= limits::step_name_max;
  return fits ? ErrorCode::ok : ErrorCode::bad_option;
}

bool has_room(Bytes memos, const Fingerprint& payload, const MemoCall& call,
              MemoOutcome& outcome) noexcept {
  const MemoSize size =
      size_with(memos, {.payload = payload, .step = call.step, .bytes = call.bytes});
  const bool too_many = size.count > limits::memos_max;
  if (!too_many && size.bytes <= call.bytes_limit) return true;
  outcome.error = ErrorCode::value_too_long;
  outcome.given = too_many ? size.count : size.bytes;
  outcome.limit = too_many ? limits::memos_max : call.bytes_limit;
  return false;
}

void decide_recall(const RecordView* live, const MemoCall& call, const ClaimFacts& facts,
                   MemoOutcome& outcome) {
  outcome = {};
  ClaimRecord record;
  outcome.error = find_owned(live, call.epoch, facts, record);
  if (outcome.error != ErrorCode::ok) return;
  if (const auto memo = find_memo(record.memos, record.fingerprint, call.step)) {
    outcome.memo.emplace(*memo);
    return;
  }
  static_cast<void>(has_room(record.memos, record.fingerprint, call, outcome));
}

Decision decide_remember(const RecordView* live, const MemoCall& call, const Policy& policy,
                         const ClaimFacts& facts, MemoOutcome& outcome, Scratch& scratch) {
  outcome = {};
  ClaimRecord record;
  outcome.error = find_owned(live, call.epoch, facts, record);
  if (outcome.error != ErrorCode::ok) return {};
  if (!has_room(record.memos, record.fingerprint, call, outcome)) return {};
  const std::string memos = with_memo(
      record.memos, {.payload = record.fingerprint, .step = call.step, .bytes = call.bytes});
  record.memos = memos;
  return store_claim(record, held_due(record, policy), scratch);
}

}  // namespace semel::engine
