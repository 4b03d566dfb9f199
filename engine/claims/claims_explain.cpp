// Claims::explain: the decision log of a key, with its times and reasons for people.
#include <new>
#include <string>
#include <vector>

#include "engine/claims/claim_calls.hpp"
#include "engine/decisions/decision_words.hpp"

namespace semel {
namespace {

using engine::DecisionFacts;

[[nodiscard]] Status check_explain(const engine::ClaimContext& context, Bytes key,
                                   std::size_t count) {
  if (key.empty()) return engine::key_error(ErrorCode::key_empty, key);
  if (context.dropped()) {
    return Error{ErrorCode::namespace_dropped, std::string{context.names.name()}};
  }
  if (context.decisions == nullptr) {
    return Error{ErrorCode::bad_option, "decision_log_bytes is 0: no decisions are kept"};
  }
  if (count != 0 && count <= limits::decisions_per_key_max) return Done{};
  return Error{ErrorCode::bad_option, "count = " + std::to_string(count) + ", range 1.." +
                                          std::to_string(limits::decisions_per_key_max)};
}

ClaimDecision decision_of(const DecisionFacts& facts) {
  ClaimDecision decision;
  decision.call = facts.call;
  decision.outcome = engine::outcome_of(facts);
  decision.epoch = facts.epoch;
  each_row<claim_numbers>(
      [&](auto number) { decision.*number.row.noted = facts.numbers[number.index]; });
  decision.owner = facts.owner;
  decision.client = facts.client;
  decision.seen = facts.met;
  decision.seen_epoch = facts.met_epoch;
  decision.seen_owner = facts.met_owner;
  decision.why = engine::reason_of(facts);
  return decision;
}

[[nodiscard]] bool is_grant_of_nothing(const DecisionFacts& facts) noexcept {
  return facts.call == DecisionCall::claim && facts.met == ClaimState::absent &&
         static_cast<ClaimAnswer>(facts.answer) == ClaimAnswer::granted;
}

/// Of a grant, by the decision before it.
[[nodiscard]] std::string_view why_nothing_was_known(const ClaimDecision& before) noexcept {
  const bool had_record = before.seen != ClaimState::absent;
  if (before.call == DecisionCall::forget && had_record) {
    return "; the record that there was had been forgotten: its work may run once more";
  }
  return {};
}

}  // namespace

Result<std::vector<ClaimDecision>> Claims::explain(Bytes key, std::size_t count) {
  engine::Core& core = engine::impl_of(*engine_).core();
  if (const ErrorCode no = core.begin_call(); no != ErrorCode::ok)
    return engine::key_error(no, key);
  try {
    const engine::ClaimContext context{*engine_, *names_};
    SEMEL_CHECK(check_explain(context, key, count));
    const engine::TableKey table_key{context.prefix, key};
    const Bytes whole = table_key.bytes();
    if (const ErrorCode bad = core.keys().check(context.policy.db, whole); bad != ErrorCode::ok) {
      return engine::key_error(bad, key);
    }
    // The decision log has the engine's time; people read the wall clock's.
    const auto unix_ms = [offset = context.impl.clock().wall_offset_ms()](Timestamp at) {
      return at.time_since_epoch().count() + offset;
    };
    std::vector<ClaimDecision> decisions;
    context.decisions->for_each(
        core.keys().hash64_of(0, whole),
        [&](const DecisionFacts& facts, Timestamp last, std::uint64_t times) {
          ClaimDecision& decision = decisions.emplace_back(decision_of(facts));
          // The grant does not note it: it would have to search for a record that is gone.
          if (decisions.size() > 1 && is_grant_of_nothing(facts)) {
            decision.why += why_nothing_was_known(decisions[decisions.size() - 2]);
          }
          decision.first_unix_ms = unix_ms(facts.at);
          decision.last_unix_ms = unix_ms(last);
          decision.times = times;
        });
    if (decisions.size() > count) {
      decisions.erase(decisions.begin(), decisions.end() - static_cast<std::ptrdiff_t>(count));
    }
    return decisions;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_full, {}};
  }
}

}  // namespace semel
