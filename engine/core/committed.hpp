// The end of a change of one record, once the table has it: figures, timer, and the memory of the
// record before.
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
  Entry::Head is;    ///< of fresh, before it was published
  Timestamp wake;    ///< of fresh; no_end without one
  bool keeps_timer;  ///< of old: it serves fresh as well
};

/// Whether the timer of the record before, which ends at `old_wake`, serves the one that replaces
/// it: it comes at that time or before, and it has not fired. Firing::has_reached() is to be asked
/// once the change is visible.
[[nodiscard, gnu::always_inline]] inline bool serves(Timestamp old_wake, Timestamp wake,
                                                     Timestamp now) noexcept {
  return old_wake > now && old_wake <= wake;
}

/// A compare-and-set on `probe` was lost: frees the record that it was to publish, unless that is
/// 0. Find and decide again.
[[gnu::cold]] void lose_race(ThreadContext& own, KeyLocation location, TableProbe probe,
                             Handle fresh) noexcept;
/// The first rule that a change just published in the slot of `probe` breaks, or the line of the
/// table that it is in; null: none. `fresh` may be null.
[[nodiscard]] const char* change_broken_by(Core& core, const KeyLocation& location,
                                           const TableProbe& probe, const Entry* fresh,
                                           Version version) noexcept;
inline void verify_change([[maybe_unused]] Core& core, [[maybe_unused]] const KeyLocation& location,
                          [[maybe_unused]] const TableProbe& probe,
                          [[maybe_unused]] const Entry* fresh,
                          [[maybe_unused]] Version version) noexcept {
#if defined(SEMEL_VERIFY)
  const char* const broken = change_broken_by(core, location, probe, fresh, version);
  if (broken != nullptr) base::assertion_failed(broken, __FILE__, __LINE__);
#endif
}

/// Notes that a record was made or replaced, if its database is a cache.
void note_write(Core& core, std::uint8_t stored_db, HashBits hash, bool is_new) noexcept;
inline void log_timer(ThreadContext& context, HashBits hash, Timestamp wake) noexcept {
  context.bump(Count::timers_logged);
  if (context.timers.push({hash.bits, wake})) context.drain_due = true;
}

}  // namespace semel::engine
