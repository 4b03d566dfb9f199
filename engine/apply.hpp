// One store operation through an update: the join of the truth table and the core.
#pragma once

#include <string>

#include "engine/claim_codec.hpp"
#include "engine/semantics.hpp"
#include "engine/threads.hpp"
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

/// `update(decide, version) -> ErrorCode` is Core::update or its kin, bound to key and time.
template <class Update>
void apply_one(const StoreOp& op, const Options& options, Timestamp now, StoreOutcome& outcome,
               ThreadContext& context, Update&& update) {
  reset(outcome);
  context.bump(Count::operations);
  outcome.error = validate(op, options.key_bytes_max, options.value_bytes_max);
  if (outcome.error != ErrorCode::ok) [[unlikely]]
    return;
  std::string scratch;
  Version version = 0;
  const ErrorCode error = update(
      [&](const RecordView* live, Version) {
        if (outcome.found || outcome.has_value || outcome.applied) [[unlikely]] {
          reset(outcome);  // an earlier decision lost its race
        }
        // A claim that was given back and only remembers its attempts is absent to everybody else.
        if (live != nullptr && live->kind == Kind::claim && is_vacant(live->value)) live = nullptr;
        return decide(live, op, now, options.value_bytes_max, outcome, scratch);
      },
      version);
  if (error != ErrorCode::ok) [[unlikely]] {
    reset(outcome);
    outcome.error = error;
    return;
  }
  outcome.version = version;
  context.bump(outcome.found ? Count::hits : Count::misses);
}

}  // namespace semel::engine
