// Lookups beyond the table. An operation that finds nothing for its key asks the cold store's
// filters; if they say maybe, it is left, the disk is read, and the table is looked at again. What
// was read is the truth as long as the table still has nothing for the key and nothing has moved
// from the table into the store since: the store's stamp says so.
//
// A cold copy is never changed. What replaces it is in the table, a record or a delete marker,
// until no copy can live: a delete marker lasts until the latest end of all parts that may hold the
// key.
#include "base/assert.hpp"
#include "engine/core/core.hpp"
#include "engine/core/core_update.hpp"
#include "engine/rules/kinds.hpp"
#include "engine/table/rank.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace semel::engine {

Status Core::attach_cold() {
  SEMEL_ASSERT(options_.cold != nullptr && cold_charged_ == 0);
  ColdStore& cold = *options_.cold;
  SEMEL_CHECK(cold.attach(options_.shard_count,
                          [this](std::uint8_t db, Bytes key) { return keys_.rank_of(db, key); }));
  // More than a spill may end with: an engine that ran can be opened again with its options, and
  // the same files may take a little more memory then. Without records only options can be wrong:
  // then half of what a spill may end with is left for them.
  const bool is_empty = cold.stats().parts == 0;
  const std::size_t most = is_empty ? options_.memory_bytes / 4 : options_.memory_bytes / 8 * 5;
  if (Status fits = check_cold_memory(most); !fits) {
    return Error{ErrorCode::bad_option, fits.error().detail};
  }
  versions_.raise(cold.first_version());
  charge_cold();
  return Done{};
}

Status Core::check_cold_memory(std::size_t most) const {
  const std::size_t held = options_.cold->memory_bytes();
  if (held <= most) return Done{};
  return Error{ErrorCode::memory_full,
               "the cold store holds " + std::to_string(held) + " bytes of memory, at most " +
                   std::to_string(most) +
                   " with memory_bytes = " + std::to_string(options_.memory_bytes)};
}

void Core::charge_cold() noexcept {
  // A spill takes memory before it gives any back: a part at a time (1/64 of the limit and what
  // writing it needs) and the filter of its generation (2 bytes a record of 50). That must
  // be there on a full machine, so it is reserved. What is in use already cannot be reserved:
  // the rest is taken when there is room again.
  SEMEL_ASSERT(region_.used_bytes() >= cold_charged_);  // of which it is a part
  const std::size_t held = options_.cold->memory_bytes();
  const std::size_t others = region_.used_bytes() - cold_charged_;
  const std::size_t limit = region_.limit_bytes(Region::Use::record);
  const std::size_t room = limit > others + held ? limit - others - held : 0;
  const std::size_t wanted = options_.memory_bytes / 16;
  const std::size_t charge = held + std::min(room, wanted);
  SEMEL_ASSERT(charge >= held && charge - held <= wanted);
  region_.charge(static_cast<std::ptrdiff_t>(charge) - static_cast<std::ptrdiff_t>(cold_charged_));
  cold_charged_ = charge;
}

ColdAnswer Core::ask_cold(Operation& operation, KeyLocation& location, KeyRef key, ColdLook& look,
                          bool in_section) {
  SEMEL_ASSERT(options_.cold != nullptr && operation.context().is_inside());
  ColdStore& cold = *options_.cold;
  if (look.stamp != 0 && look.stamp == cold.stamp() && look.stored_db == location.stored_db) {
    SEMEL_ASSERT(look.error == ErrorCode::ok);
    return look.found ? ColdAnswer::present : ColdAnswer::absent;
  }
  look.rank = keys_.rank_of(location.stored_db, key.key);
  if (cold.may_hold_until(look.rank) == Timestamp{}) [[likely]]
    return ColdAnswer::absent;
  look.stored_db = location.stored_db;
  look.stamp = cold.stamp();
  SEMEL_ASSERT(look.stamp != 0);  // or the answer would never be taken for one
  operation.outside([&] {
    const Result<bool> found = cold.find(look.rank, look.stored_db, key.key, look.copy().record);
    look.error = found.ok() ? ErrorCode::ok : found.error().code;
    look.found = found.ok() && *found;
    const Mutation& copy = look.copy().record.record;
    if (look.found && !is_sound(copy.kind, copy.value)) {
      look.error = ErrorCode::storage_damaged;
    }
  });
  if (look.error != ErrorCode::ok) return ColdAnswer::failed;
  if (look.found) {
    ColdLook::Copy& copy = look.copy();
    const Mutation& record = copy.record.record;
    copy.view = {record.kind, value_of(record, copy.scratch), record.due, record.version};
  }
  if (!in_section && !operation.admit(location, key)) {
    look.error = ErrorCode::section_held;
    return ColdAnswer::failed;
  }
  return ColdAnswer::look_again;
}

void Core::take_cold(const ColdLook::Copy& copy, Change& change) const noexcept {
  SEMEL_ASSERT(change.old == nullptr && change.cold == nullptr && !change.live);
  const Mutation& record = copy.record.record;
  change.cold = &copy.record;
  change.floor = std::max(change.floor, record.version);
  // By the clock as well: what kept the copy from coming back may have gone since `now` was read.
  change.live = record.due > change.now && record.due > now_of(clock_);
}

Timestamp Core::cold_end(std::uint8_t stored, Bytes key) noexcept {
  if (options_.cold == nullptr) return Timestamp{};
  SEMEL_ASSERT(threads_.context().is_inside());
  const Timestamp end = options_.cold->may_hold_until(keys_.rank_of(stored, key));
  // A little longer, for threads whose clocks do not agree to the millisecond.
  return end == Timestamp{} || end > no_end - delete_marker_ttl ? end : end + delete_marker_ttl;
}

}  // namespace semel::engine
