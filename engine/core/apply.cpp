#include "engine/core/apply.hpp"

#include <string>

#include "engine/core/core_update.hpp"
#include "engine/rules/kinds.hpp"

namespace semel::engine {

void decide_store(Core& core, Core::Operation& operation, Core::KeyLocation location,
                  const StoreOp& op, Timestamp now, StoreOutcome& outcome, MutationSink* sink) {
  std::string scratch;
  bool asked = false;
  const auto decision = [&](const RecordView* live, const NextVersion&) {
    if (asked) [[unlikely]]
      reset(outcome);  // an earlier decision lost its race
    asked = true;
    // A claim that was given back and only remembers its attempts is absent to all other calls.
    if (live != nullptr && !is_visible(live->kind, live->value)) live = nullptr;
    return decide(live, op, now, core.options().value_bytes_max, outcome, scratch);
  };
  Version version = 0;
  const ErrorCode error =
      core.decide_at(operation, location, {op.db, op.key}, now, decision, version, sink);
  if (error != ErrorCode::ok) [[unlikely]] {
    reset(outcome);
    outcome.error = error;
    return;
  }
  outcome.version = version;
}

}  // namespace semel::engine
