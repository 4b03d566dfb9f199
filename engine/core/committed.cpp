#include "engine/core/committed.hpp"

namespace semel::engine {

void Core::committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                     const Entry* fresh, Timestamp wake) noexcept {
  const Entry::Head was = old != nullptr ? old->head() : Entry::Head{};
  note_committed(*this, context,
                 {.hash = hash,
                  .old = old,
                  .was = was,
                  .old_wake = old != nullptr ? wake_of(was) : no_end,
                  .was_live = old_was_live,
                  .fresh = fresh,
                  .is = fresh != nullptr ? fresh->head() : Entry::Head{},
                  .wake = wake});
}

void note_write(Core& core, const Committed& change) noexcept {
  const std::uint8_t db = core.databases().shown(change.is.db());
  if (change.is.is_delete_marker() || !core.uses().is_of(db)) return;
  core.uses().note(change.hash, now_of(core.clock()), !change.was_live);
}

void note_ended(Core& core, ThreadContext& context, const Committed& change,
                Weight& less) noexcept {
  if (core.databases().is_flushed(change.was)) {
    context.bump(Count::records_flushed, 0 - less.records);
    less.records = 0;  // the flush took it off the others
  } else if (!change.was_live && !change.was.is_delete_marker()) {
    core.insight().note_expired(context, *change.old, core.keys());
  }
}

}  // namespace semel::engine
