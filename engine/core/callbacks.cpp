#include "engine/core/callbacks.hpp"

namespace semel::engine {

ErrorCode GuardedJournal::wait_for_call(ThreadContext& own) const {
  if (own.section != nullptr) return ErrorCode::ok;  // commit() waits for the whole group
  // A call that changed nothing depends on what it read. That was appended before it was returned
  // (await_journalled), so the newest ticket covers it.
  const bool changed = own.ticket != 0;
  const Ticket ticket = changed ? own.ticket : newest();
  own.ticket = 0;
  if (changed) pace();
  // Whatever the journal answers, the change is visible: it can no longer be refused.
  return wait_for(ticket, durability_) ? ErrorCode::ok : ErrorCode::outcome_unknown;
}

}  // namespace semel::engine
