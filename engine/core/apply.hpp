// One store operation on the core: the join of the truth table and the table.
#pragma once

#include "engine/core/core.hpp"
#include "engine/rules/string_rules.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

inline void reset(StoreOutcome& outcome) noexcept {
  outcome.error = ErrorCode::ok;
  outcome.found = outcome.applied = outcome.has_value = false;
  outcome.kind = Kind::string;
  outcome.number = outcome.second = 0;
  outcome.due = no_end;
  outcome.version = 0;
  outcome.value.clear();
}

inline void refuse(StoreOutcome& outcome, ErrorCode why) noexcept {
  reset(outcome);
  outcome.error = why;
}

/// Makes the outcome ready. False: the operation is refused, the outcome says why.
[[nodiscard]] inline bool begin_apply(const StoreOp& op, const Options& options,
                                      StoreOutcome& outcome, ThreadContext& context) {
  reset(outcome);
  context.bump(Count::operations);
  outcome.error = validate(op, options.key_bytes_max, options.value_bytes_max);
  return outcome.error == ErrorCode::ok;
}

/// Repeats and reads are most of what is asked: GET and SET NX that find a live string are answered
/// from the record itself. Says what the truth table says, in a third of the
/// instructions; the rest of the processor's window is for the next operation's cache misses.
[[nodiscard]] inline bool only_looks(const StoreOp& op) noexcept {
  return op.verb == Verb::get || (op.verb == Verb::set && op.condition == Condition::if_absent);
}
[[nodiscard]] inline bool answers(const StoreOp& op, const Entry& live, StoreOutcome& outcome) {
  if (live.kind() != Kind::string) return false;
  outcome.found = true;
  outcome.version = live.version();
  if (op.get || op.verb == Verb::get) {
    outcome.value.append(live.value());
    outcome.has_value = true;
  }
  return true;
}

/// The rest of apply_at(), and all of it inside a section (`sink`).
void decide_store(Core& core, Core::Operation& operation, Core::Place place, const StoreOp& op,
                  Timestamp now, StoreOutcome& outcome, MutationSink* sink = nullptr);

/// After begin_apply() and Core::admit().
inline void apply_at(Core& core, Core::Operation& operation, const Core::Place& place,
                     const StoreOp& op, Timestamp now, StoreOutcome& outcome) {
  const Entry* const live = only_looks(op) ? core.hit(place, op.key, now) : nullptr;
  if (live == nullptr || !answers(op, *live, outcome)) {
    decide_store(core, operation, place, op, now, outcome);
  }
  operation.context().bump(outcome.found ? Count::hits : Count::misses);
}

}  // namespace semel::engine
