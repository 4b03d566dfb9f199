#include "engine/hashes/hash_field_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "engine/rules/string_rules_inline.hpp"

namespace semel::engine {

namespace {

/// Changes of fields, each of which sees those before it.
class FieldPlan {
 public:
  FieldPlan(const HashGround& hash, HashOutcome& outcome) : hash_(hash), outcome_(outcome) {}

  struct State {
    Bytes value;
    Timestamp due;
  };
  /// None: no such field.
  [[nodiscard]] std::optional<State> find(Bytes field) const {
    if (const auto planned = places_.find(field); planned != places_.end()) {
      const HashChange& change = changes_[planned->second];
      if (!change.value) return std::nullopt;
      return State{*change.value, change.due};
    }
    const auto found = hash_.find(field);
    if (!found) return std::nullopt;
    return State{found->value, found->due};
  }
  void put(Bytes field, const State& state) { change(field) = {field, state.value, state.due}; }
  void retime(Bytes field, const State& state, Timestamp due) {
    put(field, {state.value, due});
    outcome_.retimes = true;
  }
  void remove(Bytes field) {
    change(field) = {field, std::nullopt};
    outcome_.removes = true;
  }
  /// One whose end has passed is removed.
  void retime_or_remove(Bytes field, const State& state, Timestamp due) {
    due > hash_.now() ? retime(field, state, due) : remove(field);
  }

  Decision write(const HashFacts& facts, HashScratch& scratch) {
    if (changes_.empty()) return {};
    const Decision decision = hash_.write(changes_, facts, outcome_, scratch);
    outcome_.is_changed = decision.action != Action::keep;
    return decision;
  }

 private:
  HashChange& change(Bytes field) {
    const auto [place, is_new] = places_.emplace(field, changes_.size());
    return is_new ? changes_.emplace_back() : changes_[place->second];
  }

  const HashGround& hash_;
  HashOutcome& outcome_;
  std::vector<HashChange> changes_;
  std::unordered_map<Bytes, std::size_t> places_;  // in changes_
};

Decision decide_ends(const HashGround& hash, const HashOp& op, HashOutcome& outcome) {
  outcome.found_field = hash.has_live_ends();
  outcome.dues.reserve(op.fields.size());
  for (const Bytes field : op.fields) {
    const auto found = hash.find(field);
    outcome.dues.push_back(found ? std::optional{found->due} : std::nullopt);
  }
  return {};
}

void plan_expire(const HashOp& op, Timestamp due, FieldPlan& plan, HashOutcome& outcome) {
  for (const Bytes field : op.fields) {
    const auto state = plan.find(field);
    std::int64_t& answer = outcome.numbers.emplace_back(FieldAnswer::no_field);
    if (!state) continue;
    answer = FieldAnswer::refused;
    if (!rule_allows(op.rule, state->due, due)) continue;
    plan.retime_or_remove(field, *state, due);
    answer = plan.find(field) ? FieldAnswer::done : FieldAnswer::removed;
  }
}

void plan_persist(const HashOp& op, FieldPlan& plan, HashOutcome& outcome) {
  for (const Bytes field : op.fields) {
    const auto state = plan.find(field);
    std::int64_t& answer = outcome.numbers.emplace_back(FieldAnswer::no_field);
    if (!state) continue;
    answer = state->due == no_end ? FieldAnswer::no_end : FieldAnswer::done;
    if (state->due != semel::no_end) plan.retime(field, *state, semel::no_end);
  }
}

/// get_del and get_ex.
void plan_get(const HashOp& op, Timestamp due, FieldPlan& plan, HashOutcome& outcome) {
  for (const Bytes field : op.fields) {
    const auto state = plan.find(field);
    auto& value = outcome.values.emplace_back();
    if (!state) continue;
    value.emplace(state->value);
    if (op.verb == HashVerb::get_del) {
      plan.remove(field);
    } else if (op.retimes && due != state->due) {
      plan.retime_or_remove(field, *state, due);
    }
  }
}

[[nodiscard]] bool refuses(const HashOp& op, const HashGround& hash) {
  if (op.condition == Condition::always) return false;
  const bool wanted = op.condition == Condition::if_present;
  return std::any_of(op.pairs.begin(), op.pairs.end(), [&](const FieldValue& pair) {
    return hash.find(pair.field).has_value() != wanted;
  });
}

void plan_set(const HashOp& op, Timestamp due, const HashGround& hash, FieldPlan& plan,
              HashOutcome& outcome) {
  for (const FieldValue& pair : op.pairs) {
    const auto state = plan.find(pair.field);
    const bool keeps = op.expiry.mode() == Expiry::Mode::keep;
    const Timestamp end = keeps && state ? state->due : due;
    if (end > hash.now()) {
      plan.put(pair.field, {pair.value, end});
      outcome.retimes = outcome.retimes || (!keeps && end != no_end);
    } else if (state) {
      plan.remove(pair.field);
    }
  }
}

}  // namespace

Decision decide_hash_fields(const HashGround& hash, const HashOp& op, const HashFacts& facts,
                            HashOutcome& outcome, HashScratch& scratch) {
  if (op.verb == HashVerb::ends) return decide_ends(hash, op, outcome);
  if (!in_range(op.expiry)) {
    outcome.error = ErrorCode::invalid_expire;
    return {};
  }
  const Timestamp due = due_of(op.expiry, nullptr, hash.now());
  FieldPlan plan{hash, outcome};
  switch (op.verb) {
    case HashVerb::expire:
      plan_expire(op, due, plan, outcome);
      break;
    case HashVerb::persist:
      plan_persist(op, plan, outcome);
      break;
    case HashVerb::get_del:
    case HashVerb::get_ex:
      plan_get(op, due, plan, outcome);
      break;
    default:
      outcome.found_field = refuses(op, hash);
      if (outcome.found_field) return {};
      plan_set(op, due, hash, plan, outcome);
      break;
  }
  return plan.write(facts, scratch);
}

}  // namespace semel::engine
