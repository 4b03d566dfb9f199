#include "engine/core/apply.hpp"

#include <string>

#include "engine/core/core_update.hpp"
#include "engine/kinds/kinds.hpp"

namespace semel::engine {

namespace {

/// Whether the operation is no use of the key, as redis-server has it.
constexpr bool only_looks(Verb verb) noexcept {
  return verb == Verb::exists || verb == Verb::type || verb == Verb::expire_time;
}

/// While such an operation runs.
class StoreLook {
 public:
  StoreLook(ThreadContext& own, Verb verb) noexcept : own_(own), before_(own.only_looks) {
    own.only_looks = before_ || only_looks(verb);
  }
  ~StoreLook() { own_.only_looks = before_; }
  StoreLook(const StoreLook&) = delete;
  StoreLook& operator=(const StoreLook&) = delete;

 private:
  ThreadContext& own_;
  const bool before_;
};

}  // namespace

void decide_store(Core& core, Operation& operation, KeyLocation location, const StoreOp& op,
                  Timestamp now, StoreOutcome& outcome, MutationSink* sink,
                  const TableProbe& first) {
  std::string scratch;
  bool asked = false;
  Bytes forgotten;  // a claim that is erased; valid until the operation ends
  const auto of_claim = [&](const RecordView& live) __attribute__((noinline)) {
    const Decision made = decide(&live, op, now, core.options().value_bytes_max, outcome, scratch);
    const bool guards = guards_claims(operation.context().decision);
    const Decision decision = guards ? guard_claim(op, made, outcome) : made;
    if (decision.action == Action::erase) forgotten = live.value;
    return decision;
  };
  const auto decision = [&](const RecordView* live, const NextVersion&) {
    if (asked) [[unlikely]] {
      reset(outcome);  // an earlier decision lost its race
      forgotten = {};
    }
    asked = true;
    // A claim that was given back and only remembers its attempts is absent to all other calls.
    if (live != nullptr && !is_visible(live->kind, live->value)) live = nullptr;
    if (live != nullptr && live->kind == Kind::claim) [[unlikely]]
      return of_claim(*live);
    return decide(live, op, now, core.options().value_bytes_max, outcome, scratch);
  };
  Version version = 0;
  const StoreLook look{operation.context(), op.verb};
  const ErrorCode error =
      decide_at(core, operation, location, {op.db, op.key}, now, decision, version, sink, first);
  if (error != ErrorCode::ok) [[unlikely]] {
    reset(outcome);
    outcome.error = error;
    return;
  }
  outcome.version = version;
  if (!forgotten.empty()) [[unlikely]]
    core.insight().note_forgotten(operation.context(), core.keys().hash64_of(0, op.key), forgotten,
                                  now);
}

}  // namespace semel::engine
