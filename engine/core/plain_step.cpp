// The changes that are made most: of a string or a claim in an engine without journal, cold store
// and group, outside of sections, where the slot holds nothing, or a string or claim that lives.
// Each is one straight line; all other changes take RecordStep::apply_any().
#include "engine/core/committed.hpp"
#include "engine/core/record_step.hpp"
#include "engine/keys/records.hpp"

namespace semel::engine {

namespace {

/// Whether the record never names a large object, nor has parts that end.
[[nodiscard]] inline bool is_plain(const Entry::Head& record) noexcept {
  return record.is_string() || record.is(Kind::claim);
}

/// wake_of() of such a record.
[[nodiscard, gnu::always_inline]] inline Timestamp plain_wake_of(bool is_claim, Bytes value,
                                                                 Timestamp due) noexcept {
  return is_claim ? claim_wake_of(value, due) : due;
}

}  // namespace

inline bool RecordStep::takes_plain_change() noexcept {
  ThreadContext& context = operation_.context();
  return context.timers.is_ready() && context.retired.reserve() &&
         (seen_.old == nullptr ? probe_.state == TableProbe::State::vacant
                               : seen_.live && is_plain(seen_.head));
}

inline void RecordStep::retire_plain(std::size_t bytes) noexcept {
  const Handle old = slot::handle(probe_.seen);
  if (core_.snapshot_cut().preserve(seen_.floor, old)) [[unlikely]]
    return;
  core_.threads().retire_record(operation_.context(), old, bytes);
}

std::optional<ErrorCode> RecordStep::store_plain(const Decision& decision, Version& version) {
  ThreadContext& context = operation_.context();
  if (!takes_plain_change()) [[unlikely]]
    return apply_any(decision, version);
  const Version fresh_version = core_.versions().candidate(context, seen_.floor);
  SEMEL_ASSERT(fresh_version > seen_.floor);
  if (fresh_version > Entry::version_max) [[unlikely]]
    return ErrorCode::versions_exhausted;
  if (decision.value.size() > core_.options().value_bytes_max + value_overhead_max) [[unlikely]]
    return ErrorCode::value_too_long;
  if (!seen_.live && core_.region().is_over()) [[unlikely]]
    return ErrorCode::memory_full;
  const std::size_t size = Entry::bytes(key_.key.size(), decision.value.size());
  const Handle handle =
      context.cache.allocate(size, seen_.live ? Region::Use::structure : Region::Use::record);
  if (handle == 0) [[unlikely]]
    return ErrorCode::memory_full;
  auto* const fresh = static_cast<Entry*>(core_.region().at(handle));
  Entry::write_inline(
      fresh, {decision.kind, location_.stored_db, decision.due, fresh_version, false, decision.raw},
      key_.key, decision.value);
  SEMEL_ASSERT_SLOW(!fresh->is_delete_marker());
  const Timestamp due = fresh->due();
  const Timestamp wake = plain_wake_of(decision.kind == Kind::claim, decision.value, due);
  const std::size_t bytes = Arena::rounded(size);
  bool keeps_timer = false;
  Timestamp old_due{}, old_wake{};
  std::size_t old_bytes = 0;
  if (seen_.old != nullptr) {
    old_due = seen_.head.due();
    old_wake = plain_wake_of(seen_.head.is(Kind::claim), seen_.head.value(), old_due);
    old_bytes = Arena::rounded(seen_.head.bytes());
    keeps_timer = wake != no_end && serves(old_wake, wake, seen_.now);
    if (keeps_timer && (old_wake != wake || seen_.head.has_early_timer())) {
      fresh->note_early_timer(true);
    }
  }
  if (!swap_in(handle)) [[unlikely]]
    return lose_race(fresh);
  version = fresh_version;
  context.version_next = fresh_version + 1;
  verify_change(fresh, version);
  context.bump(Count::changes);
  if (bytes != old_bytes) context.bump(Count::bytes_records, bytes - old_bytes);
  if (core_.uses().any()) [[unlikely]]
    note_write(core_, location_.stored_db, location_.hash, !seen_.live);
  if (seen_.old == nullptr) {
    context.bump(Count::records);
    ThreadContext::add(context.db_records[location_.stored_db], 1);
    if (due != no_end) context.bump(Count::records_with_ttl);
  } else {
    if ((due == no_end) != (old_due == no_end)) [[unlikely]]
      context.bump(Count::records_with_ttl, due == no_end ? ~std::uint64_t{0} : 1);
    // The clock may have gone on since `now`, and so may the wheel.
    keeps_timer = keeps_timer && !core_.firing().has_reached(old_wake);
    if (!keeps_timer && old_wake != no_end) context.bump(Count::ended_early);
    retire_plain(old_bytes);
  }
  if (!keeps_timer && wake != no_end) log_timer(context, location_.hash, wake);
  return ErrorCode::ok;
}

std::optional<ErrorCode> RecordStep::erase_plain(Version& version) {
  ThreadContext& context = operation_.context();
  if (!takes_plain_change() || leaves_marker()) [[unlikely]] {
    return apply_any({.action = Action::erase, .kind = Kind::string, .due = no_end, .value = {}},
                     version);
  }
  SEMEL_ASSERT_SLOW(seen_.old != nullptr);
  const Version ended = core_.versions().candidate(context, seen_.floor);
  SEMEL_ASSERT(ended > seen_.floor);
  if (ended > Entry::version_max) [[unlikely]]
    return ErrorCode::versions_exhausted;
  if (!location_.shard->table.bury(probe_, ended)) [[unlikely]]
    return lose_race(nullptr);
  version = ended;
  context.version_next = ended + 1;
  verify_change(nullptr, version);
  constexpr std::uint64_t one_less = ~std::uint64_t{0};
  const std::size_t bytes = Arena::rounded(seen_.head.bytes());
  context.bump(Count::changes);
  context.bump(Count::bytes_records, 0 - bytes);
  context.bump(Count::records, one_less);
  ThreadContext::add(context.db_records[location_.stored_db], one_less);
  if (seen_.head.due() != no_end) {
    context.bump(Count::records_with_ttl, one_less);
    context.bump(Count::ended_early);
  }
  retire_plain(bytes);
  return ErrorCode::ok;
}

}  // namespace semel::engine
