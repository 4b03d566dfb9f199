#include "engine/claims/claim_calls.hpp"

#include <functional>
#include <string>

namespace semel::engine {

ErrorCode check(const ClaimContext& context, OwnerVerb verb, const OwnerCall& call) {
  if (call.key.empty()) return ErrorCode::key_empty;
  if (context.dropped()) return ErrorCode::namespace_dropped;
  if (is_kept(verb, call) && call.payload.size() > context.impl.core().options().value_bytes_max) {
    return ErrorCode::value_too_long;
  }
  return check_owner(verb, call);
}

void run_single(const ClaimContext& context, OwnerVerb verb, const OwnerCall& call, Bytes table_key,
                OwnerOutcome& outcome) {
  ClaimNote note{context};
  const auto located = [&](const KeyLocation& location, std::uint64_t hash) {
    note.begin(location, hash);
  };
  run_owner(context, verb, call, note, outcome, context.single_inline(table_key, located));
  if (!may_drop(verb, call, outcome.error)) [[likely]]
    return;
  const ErrorCode why = outcome.error;
  OwnerCall without = call;
  without.keeping = ResultKeeping::none;
  run_single(context, verb, without, table_key, outcome);  // which may drop nothing more
  if (outcome.answer == OwnerAnswer::ok) outcome.dropped = why;
}

void notify_waiters(const ClaimContext& context, Bytes table_key) noexcept {
  WaitQueue& queue = context.impl.wait_queue();
  if (!queue.has_waiters()) [[likely]]
    return;
  const std::uint8_t db = context.policy.db;
  if (OwnSection* const own = context.impl.core().context().section; own != nullptr) {
    return own->note_change({db, table_key});
  }
  if (Journal* const journal = context.impl.core().journal(); journal != nullptr) {
    bool deferred = false;
    const bool asked = context.impl.core().callbacks().run(Callback::journal, [&] {
      Function<void()> later = [&queue, db, key = std::string{table_key}] {
        queue.changed(db, key);
      };
      deferred = journal->defer(later);
    });
    if (deferred) return;
    // Without memory to notify them later, the next poll() does: a notification now could make
    // them wait for this very thread.
    if (!asked) return queue.changed_meanwhile(db, table_key);
  }
  queue.changed(db, table_key);
}

OwnerOutcome owner_call(Engine& engine, const Claims::Namespace& names, OwnerVerb verb,
                        const OwnerCall& call) {
  const ClaimContext context{engine, names};
  const TableKey key{context.prefix, call.key};
  OwnerOutcome outcome;
  run_single(context, verb, call, key.bytes(), outcome);
  // A renewal too: with a shorter lease the waiters must ask again sooner.
  if (outcome.answer == OwnerAnswer::ok) notify_waiters(context, key.bytes());
  confirm(context, outcome);
  return outcome;
}

Error key_error(ErrorCode code, Bytes key) {
  try {
    return {code, "key of " + std::to_string(key.size()) + " bytes"};
  } catch (const std::bad_alloc&) {
    return {code, {}};
  }
}

}  // namespace semel::engine
