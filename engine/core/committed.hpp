// The end of a change of one record, once the table has it: figures, timer, and the memory of the
// record before. Inline for the hot path; Core::committed() is the same as a call.
#pragma once

#include "engine/core/core.hpp"
#include "engine/keys/records.hpp"

namespace semel::engine {

/// A change that is visible. `old` and `fresh` may be null, not both.
struct Committed {
  HashBits hash;
  const Entry* old;
  Entry::Head was;     ///< of old
  Timestamp old_wake;  ///< of old; no_end without one
  bool was_live;
  const Entry* fresh;
  Entry::Head is;  ///< of fresh, before it was published
  Timestamp wake;  ///< of fresh; no_end without one
};

/// What a record adds to the figures besides its bytes.
struct Weight {
  std::uint64_t records = 0;
  std::uint64_t timed = 0;
};

[[nodiscard, gnu::always_inline]] inline Weight weight_of(const Entry::Head& record,
                                                          Timestamp wake) noexcept {
  if (record.is_delete_marker()) return {};
  // A hash of which a field ends: an idle group tells its time while there are timed records.
  const Timestamp end = record.is(Kind::hash) ? wake : record.due();
  return {.records = 1, .timed = end == no_end ? 0U : 1U};
}

/// A record of a cache was made or replaced.
void note_write(Core& core, const Committed& change) noexcept;
/// What ended before the change: by its time, or by a flush, which took it off the others.
void note_ended(Core& core, ThreadContext& context, const Committed& change, Weight& less) noexcept;

/// See Core::committed().
[[gnu::always_inline]] inline void note_committed(Core& core, ThreadContext& context,
                                                  const Committed& change) noexcept {
  const bool was_there = change.old != nullptr, is_there = change.fresh != nullptr;
  const Timestamp old_wake = change.old_wake;
  const bool has_early_timer = is_there && change.is.has_early_timer();
  const Weight more = is_there ? weight_of(change.is, change.wake) : Weight{};
  Weight less = was_there ? weight_of(change.was, old_wake) : Weight{};
  const std::size_t old_size = was_there ? change.was.bytes() : 0;
  const std::size_t size = is_there ? change.is.bytes() : 0;
  const std::size_t old_bytes = was_there ? Arena::rounded(old_size) : 0;
  if (was_there && (!change.was_live || core.databases().is_flushed(change.was))) [[unlikely]]
    note_ended(core, context, change, less);
  if (change.was_live && old_wake != no_end && old_wake != change.wake && !has_early_timer)
    context.bump(Count::ended_early);
  // Counters wrap around: one thread adds, another takes away. Most replacements change none.
  if (size != old_size) {
    context.bump(Count::bytes_records, (is_there ? Arena::rounded(size) : 0) - old_bytes);
  }
  if (more.timed != less.timed) context.bump(Count::records_with_ttl, more.timed - less.timed);
  if (more.records != less.records) {
    context.bump(Count::records, more.records - less.records);
    const std::uint8_t db = (is_there ? change.is : change.was).db();
    ThreadContext::add(context.db_records[db], more.records - less.records);
  }
  if (is_there && core.uses().any()) [[unlikely]]
    note_write(core, change);
  const bool keeps_timer =
      was_there && change.was_live && change.wake == old_wake && !change.was.has_early_timer();
  if (change.wake != no_end && !has_early_timer && !keeps_timer) {
    context.bump(Count::timers_logged);
    if (context.timers.push({change.hash.bits, change.wake})) context.drain_due = true;
  }
  if (!was_there) return;
  if (core.snapshot_cut().preserve(change.was.version(), core.region().handle_of(change.old)))
    return;
  core.large_records().retire(context, *change.old, old_bytes);
}

}  // namespace semel::engine
