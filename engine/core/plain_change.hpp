// The change that is made most, in one straight line and in the frame of its caller: a string or a
// claim is stored in an engine without journal, cold store and group, outside of sections, where
// the slot holds nothing, or a string or claim that lives. It is complete once the table has it.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/core/committed.hpp"
#include "engine/keys/records.hpp"
#include "engine/rules/claim_codec.hpp"

namespace semel::engine {

/// Whether the record never names a large object, nor has parts that end.
[[nodiscard, gnu::always_inline]] inline bool is_plain(const Entry::Head& record) noexcept {
  return record.is_string() || record.is(Kind::claim);
}
/// wake_of() of such a record.
[[nodiscard, gnu::always_inline]] inline Timestamp plain_wake_of(bool is_claim, Bytes value,
                                                                 Timestamp due) noexcept {
  return is_claim ? claim_wake_of(value, due) : due;
}

/// Where the change is made, as a look within its operation has found it.
struct PlainPlace {
  const KeyLocation& location;
  Bytes key;
  const TableProbe& probe;  ///< vacant, or found
  const Entry::Head* old;   ///< of the record there, which is_plain() and lives; null: none
  Version floor;            ///< the version of old, or the floor of the probe
  Timestamp now;
};
/// The record that is stored there, but for the bytes of its value.
struct PlainRecord {
  Kind kind;
  Timestamp due;
  std::size_t value_bytes;
  bool raw = false;
};

/// Whether there is room for what a change needs once it is visible: its timer, and the record
/// before.
[[nodiscard, gnu::always_inline]] inline bool has_room_for_plain(ThreadContext& own) noexcept {
  return own.timers.is_ready() && own.retired.reserve();
}

/// Of the record before.
[[gnu::always_inline]] inline void retire_plain(Core& core, ThreadContext& own, SlotWord seen,
                                                Version version, std::size_t bytes) noexcept {
  const Handle old = slot::handle(seen);
  if (core.snapshot_cut().preserve(version, old)) [[unlikely]]
    return;
  core.threads().retire_record(own, old, bytes);
}

/// After has_room_for_plain(). `write(char* to, Version)`: writes the bytes of the value. Errors:
/// memory_full, value_too_long, versions_exhausted; then nothing was changed. None: the slot has
/// changed, so find and decide again.
template <class Write>
[[nodiscard, gnu::always_inline]] inline std::optional<ErrorCode> store_plain(
    Core& core, ThreadContext& own, const PlainPlace& at, const PlainRecord& record, Write&& write,
    Version& version) noexcept {
  const bool replaces = at.old != nullptr;
  const std::uint8_t db = at.location.stored_db;
  const Version fresh_version = core.versions().candidate(own, at.floor);
  SEMEL_ASSERT(fresh_version > at.floor);
  if (fresh_version > Entry::version_max) [[unlikely]]
    return ErrorCode::versions_exhausted;
  if (record.value_bytes > core.options().value_bytes_max + value_overhead_max) [[unlikely]]
    return ErrorCode::value_too_long;
  if (!replaces && core.region().is_over()) [[unlikely]]
    return ErrorCode::memory_full;
  const std::size_t size = Entry::bytes(at.key.size(), record.value_bytes);
  const Handle handle =
      own.cache.allocate(size, replaces ? Region::Use::structure : Region::Use::record);
  if (handle == 0) [[unlikely]]
    return ErrorCode::memory_full;
  auto* const fresh = static_cast<Entry*>(core.region().at(handle));
  char* const to = Entry::write_all_but_value(
      fresh, {record.kind, db, record.due, fresh_version, false, record.raw}, at.key,
      record.value_bytes);
  write(to, fresh_version);
  SEMEL_ASSERT_SLOW(!fresh->is_delete_marker());
  const Timestamp due = fresh->due();
  const Timestamp wake = plain_wake_of(record.kind == Kind::claim, {to, record.value_bytes}, due);
  const std::size_t bytes = Arena::rounded(size);
  bool keeps_timer = false;
  Timestamp old_due{}, old_wake{};
  std::size_t old_bytes = 0;
  if (replaces) {
    old_due = at.old->due();
    old_wake = plain_wake_of(at.old->is(Kind::claim), at.old->value(), old_due);
    old_bytes = Arena::rounded(at.old->bytes());
    keeps_timer = wake != no_end && serves(old_wake, wake, at.now);
    if (keeps_timer && (old_wake != wake || at.old->has_early_timer())) {
      fresh->note_early_timer(true);
    }
  }
  if (!at.location.shard->table.publish(at.probe, handle)) [[unlikely]] {
    lose_race(own, KeyLocation{at.location}, TableProbe{at.probe}, handle);
    return std::nullopt;
  }
  version = fresh_version;
  own.version_next = fresh_version + 1;
  verify_change(core, at.location, at.probe, fresh, version);
  own.bump(Count::changes);
  if (bytes != old_bytes) own.bump(Count::bytes_records, bytes - old_bytes);
  if (core.uses().any()) [[unlikely]]
    note_write(core, db, at.location.hash, !replaces);
  if (!replaces) {
    own.bump(Count::records);
    ThreadContext::add(own.db_records[db], 1);
    if (due != no_end) own.bump(Count::records_with_ttl);
  } else {
    if ((due == no_end) != (old_due == no_end)) [[unlikely]]
      own.bump(Count::records_with_ttl, due == no_end ? ~std::uint64_t{0} : 1);
    // The clock may have gone on since `now`, and so may the wheel.
    keeps_timer = keeps_timer && !core.firing().has_reached(old_wake);
    if (!keeps_timer && old_wake != no_end) own.bump(Count::ended_early);
    retire_plain(core, own, at.probe.seen, at.floor, old_bytes);
  }
  if (!keeps_timer && wake != no_end) log_timer(own, at.location.hash, wake);
  return ErrorCode::ok;
}

/// The same of the record there, of a key that is near its home line. None: as above.
[[nodiscard, gnu::always_inline]] inline std::optional<ErrorCode> erase_plain(
    Core& core, ThreadContext& own, const PlainPlace& at, Version& version) noexcept {
  SEMEL_ASSERT_SLOW(at.old != nullptr);
  const Version ended = core.versions().candidate(own, at.floor);
  SEMEL_ASSERT(ended > at.floor);
  if (ended > Entry::version_max) [[unlikely]]
    return ErrorCode::versions_exhausted;
  if (!at.location.shard->table.bury(at.probe, ended)) [[unlikely]] {
    lose_race(own, KeyLocation{at.location}, TableProbe{at.probe}, 0);
    return std::nullopt;
  }
  version = ended;
  own.version_next = ended + 1;
  verify_change(core, at.location, at.probe, nullptr, version);
  constexpr std::uint64_t one_less = ~std::uint64_t{0};
  const std::size_t bytes = Arena::rounded(at.old->bytes());
  own.bump(Count::changes);
  own.bump(Count::bytes_records, 0 - bytes);
  own.bump(Count::records, one_less);
  ThreadContext::add(own.db_records[at.location.stored_db], one_less);
  if (at.old->due() != no_end) {
    own.bump(Count::records_with_ttl, one_less);
    own.bump(Count::ended_early);
  }
  retire_plain(core, own, at.probe.seen, at.floor, bytes);
  return ErrorCode::ok;
}

}  // namespace semel::engine
