#include "engine/rules/claim_view.hpp"

#include <algorithm>

#include "engine/rules/claim_states.hpp"
#include "semel/claim_fields.hpp"

namespace semel::engine {

ErrorCode view_claim(const RecordView* live, const Policy& policy, const ClaimFacts& facts,
                     ClaimView& view) {
  view = {};
  ClaimRecord record;
  const auto show_numbers = [&] {
    each_row<claim_numbers>([&](auto number) { view.*number.row.seen = record.*number.row.kept; });
  };
  const ClaimFound found = read_claim(live, record);
  if (found == ClaimFound::wrong_kind) return ErrorCode::wrong_kind;
  if (live == nullptr) return ErrorCode::ok;
  if (found == ClaimFound::absent) {
    view.state = state_of(record, policy, facts.now, false);
    if (view.state == ClaimState::absent) return ErrorCode::ok;
    show_numbers();
    view.unique_remaining = live->due - facts.now;
    return ErrorCode::ok;
  }

  const auto left = [&](Timestamp until) {
    return until > facts.now ? until - facts.now : Millis{0};
  };
  view.state = state_of(record, policy, facts.now, facts.owner_dead);
  each_row<claim_flags>([&](auto flag) {
    if constexpr (flag.row.seen != nullptr) view.*flag.row.seen = record.*flag.row.field;
  });
  show_numbers();
  view.epoch = record.epoch;
  view.fingerprint = record.fingerprint;
  each_row<claim_labels>([&](auto label) { view.*label.row.seen = record.*label.row.kept; });
  if (record.state == ClaimState::held) {
    if (!facts.owner_dead) view.lease_remaining = left(record.lease_until);
    return ErrorCode::ok;
  }
  if (record.state == ClaimState::in_doubt) {
    view.result = record.result;
    return ErrorCode::ok;
  }
  view.result_expired = result_over(record, facts.now);
  view.unique_remaining = left(std::min(record.unique_until, live->due));
  if (!view.result_expired) {
    view.result_remaining = left(record.result_until);
    view.result = record.result;
  }
  return ErrorCode::ok;
}

}  // namespace semel::engine
