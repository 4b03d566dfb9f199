// One store operation on the core: the join of the truth table and the table.
#pragma once

#include "engine/core/core_update.hpp"
#include "engine/rules/repeat.hpp"
#include "engine/rules/string_rules.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

inline void reset(StoreOutcome& outcome) noexcept {
  outcome.error = ErrorCode::ok;
  outcome.found = outcome.applied = outcome.has_value = false;
  outcome.kind = Kind::string;
  outcome.raw = false;
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

/// The rest of apply_at(), and all of it inside a section (`sink`). `first`: see decide_at().
void decide_store(Core& core, Operation& operation, KeyLocation location, const StoreOp& op,
                  Timestamp now, StoreOutcome& outcome, MutationSink* sink = nullptr,
                  const TableProbe& first = {});

/// After begin_apply() and Core::admit().
inline void apply_at(Core& core, Operation& operation, const KeyLocation& location,
                     const StoreOp& op, Timestamp now, StoreOutcome& outcome) {
  HomeRecord first;
  if (may_repeat(op)) first = core.keys().look_home_record(location, op.key);
  if (first.answers(core.databases(), now) && answer_repeat(op, first.head, outcome)) {
    core.uses().note_read(operation.context().only_looks, op.db, location.hash, now);
  } else {
    decide_store(core, operation, location, op, now, outcome, nullptr,
                 first.look.probe(location.hash));
  }
  operation.context().bump(outcome.found ? Count::hits : Count::misses);
}

}  // namespace semel::engine
