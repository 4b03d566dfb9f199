#include "engine/core/committed.hpp"

namespace semel::engine {

namespace {

/// What a record adds to the figures besides its bytes.
struct Weight {
  std::uint64_t records = 0;
  std::uint64_t timed = 0;
};

[[nodiscard]] Weight weight_of(const Entry::Head& record, Timestamp wake) noexcept {
  if (record.is_delete_marker()) return {};
  // A hash of which a field ends: an idle group tells its time while there are timed records.
  const Timestamp end = record.is(Kind::hash) ? wake : record.due();
  return {.records = 1, .timed = end == no_end ? 0U : 1U};
}

/// What ended before the change: by its time, or by a flush, which took it off the others.
void note_ended(Core& core, ThreadContext& context, const Committed& change,
                Weight& less) noexcept {
  if (core.databases().is_flushed(change.was)) {
    context.bump(Count::records_flushed, 0 - less.records);
    less.records = 0;  // the flush took it off the others
  } else if (!change.was_live && !change.was.is_delete_marker()) {
    core.insight().note_expired(context, *change.old, core.keys());
  }
}

}  // namespace

void Core::committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                     const Entry* fresh, Timestamp wake) noexcept {
  const Entry::Head was = old != nullptr ? old->head() : Entry::Head{};
  const Timestamp old_wake = old != nullptr ? wake_of(was) : no_end;
  // Of another end its timer knows nothing: the record has no mark.
  const bool keeps_timer = old != nullptr && old_was_live && wake == old_wake &&
                           !was.has_early_timer() && !firing_.has_reached(wake);
  committed(context, {.hash = hash,
                      .old = old,
                      .was = was,
                      .old_wake = old_wake,
                      .was_live = old_was_live,
                      .fresh = fresh,
                      .is = fresh != nullptr ? fresh->head() : Entry::Head{},
                      .wake = wake,
                      .keeps_timer = keeps_timer});
}

void Core::committed(ThreadContext& context, const Committed& change) noexcept {
  const bool was_there = change.old != nullptr, is_there = change.fresh != nullptr;
  const Timestamp old_wake = change.old_wake;
  const Weight more = is_there ? weight_of(change.is, change.wake) : Weight{};
  Weight less = was_there ? weight_of(change.was, old_wake) : Weight{};
  const std::size_t old_size = was_there ? change.was.bytes() : 0;
  const std::size_t size = is_there ? change.is.bytes() : 0;
  const std::size_t old_bytes = was_there ? Arena::rounded(old_size) : 0;
  if (was_there && (!change.was_live || databases().is_flushed(change.was))) [[unlikely]]
    note_ended(*this, context, change, less);
  if (change.was_live && old_wake != no_end && !change.keeps_timer)
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
  if (is_there && uses_.any() && !change.is.is_delete_marker()) [[unlikely]]
    note_write(*this, change.is.db(), change.hash, !change.was_live);
  if (change.wake != no_end && !change.keeps_timer) log_timer(context, change.hash, change.wake);
  if (!was_there) return;
  if (snapshot_cut_.preserve(change.was.version(), region_.handle_of(change.old))) return;
  large_records_.retire(context, *change.old, old_bytes);
}

void lose_race(ThreadContext& own, KeyLocation location, TableProbe probe, Handle fresh) noexcept {
  if (fresh != 0) own.cache.free(fresh);
  own.bump(Count::lost_races);
  KeySpace::help_growth(*location.shard, location.hash, probe);
}

const char* change_broken_by(Core& core, const KeyLocation& location, const TableProbe& probe,
                             const Entry* fresh, Version version) noexcept {
  const Entry* const old = probe.seen != 0 ? &core.keys().entry(probe.seen) : nullptr;
  if (version >= core.versions().next()) return "a version is larger than all that were handed out";
  // Equal: it was no change (Decision::keeps_version).
  if (old != nullptr && old->version() > version) return "a change has an older version";
  if (fresh != nullptr) {
    if (fresh->version() != version) return "a record has another version than its change";
    if (fresh->db() != location.stored_db) return "a record is in another database than its change";
    if (core.keys().hash_of(fresh->db(), fresh->key()).bits != location.hash.bits)
      return "a record lies where the hash of its key does not lead";
  }
  return core.keys().line_broken_by(location, probe);
}

void note_write(Core& core, std::uint8_t stored_db, HashBits hash, bool is_new) noexcept {
  if (!core.uses().is_of(core.databases().shown(stored_db))) return;
  core.uses().note(hash, now_of(core.clock()), is_new);
}

}  // namespace semel::engine
