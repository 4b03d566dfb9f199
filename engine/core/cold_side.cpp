#include "engine/core/cold_side.hpp"

#include <algorithm>
#include <string>

#include "base/assert.hpp"
#include "engine/keys/records.hpp"
#include "engine/kinds/kinds.hpp"

namespace semel::engine {

Status ColdSide::attach(VersionSource& versions) {
  SEMEL_ASSERT(store_ != nullptr && charged_ == 0);
  ColdStore& cold = *store_;
  SEMEL_CHECK(cold.attach(shard_count_,
                          [this](std::uint8_t db, Bytes key) { return keys_.rank_of(db, key); }));
  // More than a spill may end with: an engine that ran can be opened again with its options, and
  // the same files may take a little more memory then. Without records only options can be wrong:
  // then half of what a spill may end with is left for them.
  const bool is_empty = cold.stats().parts == 0;
  const std::size_t most = is_empty ? memory_bytes_ / 4 : memory_bytes_ / 8 * 5;
  if (Status fits = check_memory(most); !fits) {
    return Error{ErrorCode::bad_option, fits.error().detail};
  }
  versions.raise(cold.first_version());
  charge();
  return Done{};
}

Status ColdSide::check_memory(std::size_t most) const {
  const std::size_t held = store_->memory_bytes();
  if (held <= most) return Done{};
  return Error{ErrorCode::memory_full, "the cold store holds " + std::to_string(held) +
                                           " bytes of memory, at most " + std::to_string(most) +
                                           " with memory_bytes = " + std::to_string(memory_bytes_)};
}

void ColdSide::charge() noexcept {
  // A spill takes memory before it gives any back: for a part at a time (1/64 of the limit, and
  // the buffers that write it) and for the filter of its generation (2 bytes a record of 50). It
  // must find this memory on a full machine, so the memory is reserved. Memory in use cannot be
  // reserved: a later call reserves the rest, when there is room again.
  SEMEL_ASSERT(region_.used_bytes() >= charged_);  // of which it is a part
  const std::size_t held = store_->memory_bytes();
  const std::size_t others = region_.used_bytes() - charged_;
  const std::size_t limit = region_.limit_bytes(Region::Use::record);
  const std::size_t room = limit > others + held ? limit - others - held : 0;
  const std::size_t wanted = memory_bytes_ / 16;
  const std::size_t charge = held + std::min(room, wanted);
  SEMEL_ASSERT(charge >= held && charge - held <= wanted);
  region_.charge(static_cast<std::ptrdiff_t>(charge) - static_cast<std::ptrdiff_t>(charged_));
  charged_ = charge;
}

ColdAnswer ColdSide::ask(const KeyLocation& location, Bytes key, ColdLook& look) {
  SEMEL_ASSERT(store_ != nullptr);
  if (look.stamp != 0 && look.stamp == store_->stamp() && look.stored_db == location.stored_db) {
    SEMEL_ASSERT(look.error == ErrorCode::ok);
    return look.found ? ColdAnswer::present : ColdAnswer::absent;
  }
  look.rank = keys_.rank_of(location.stored_db, key);
  if (store_->may_hold_until(look.rank) == Timestamp{}) [[likely]]
    return ColdAnswer::absent;
  look.stored_db = location.stored_db;
  look.stamp = store_->stamp();
  SEMEL_ASSERT(look.stamp != 0);  // or the answer would never be taken for one
  return ColdAnswer::unknown;
}

ErrorCode ColdSide::read(Bytes key, ColdLook& look) {
  SEMEL_ASSERT(store_ != nullptr && look.stamp != 0);
  ColdLook::Copy& copy = look.copy();
  const Mutation& record = copy.record.record;
  const Result<bool> found = store_->find(look.rank, look.stored_db, key, copy.record);
  look.error = found.ok() ? ErrorCode::ok : found.error().code;
  look.found = found.ok() && *found;
  if (look.found && !is_sound(record.kind, record.value)) look.error = ErrorCode::storage_damaged;
  if (look.found && look.error == ErrorCode::ok) {
    copy.view = {record.kind, value_of(record, copy.scratch), record.due, record.version};
  }
  return look.error;
}

Timestamp ColdSide::end_of(const ThreadContext& context, std::uint8_t db,
                           Bytes key) const noexcept {
  if (store_ == nullptr) return Timestamp{};
  SEMEL_ASSERT(context.is_inside());
  const Timestamp end = store_->may_hold_until(keys_.rank_of(db, key));
  // A little longer, for threads whose clocks do not agree to the millisecond.
  return end == Timestamp{} || end > no_end - delete_marker_ttl ? end : end + delete_marker_ttl;
}

}  // namespace semel::engine
