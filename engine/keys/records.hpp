// Records in memory: made, timed, and shown as mutations. No function here publishes one.
#pragma once

#include <cstring>
#include <string>

#include "engine/kinds/kinds.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/threads.hpp"
#include "engine/rules/claim_codec.hpp"
#include "engine/table/entry.hpp"
#include "semel/journal.hpp"

namespace semel::engine {

/// Of a delete marker left by an erase.
constexpr Millis delete_marker_ttl{1'000};
/// How much longer a stored value is than its caller's: a claim's encoding beside its result.
constexpr std::size_t value_overhead_max = claim_overhead_max;

/// A record that is not published yet, in memory of this thread's cache. Null: no memory.
[[nodiscard]] inline const Entry* make_entry(const Region& region, ThreadContext& context,
                                             const Entry::Header& header, Bytes key, Bytes value,
                                             Region::Use use) {
  const Handle handle = context.cache.allocate(Entry::bytes(key.size(), value.size()), use);
  if (handle == 0) [[unlikely]]
    return nullptr;
  Entry* const entry = static_cast<Entry*>(region.at(handle));
  Entry::write(entry, header, key, value);
  return entry;
}

/// An erase leaves a delete marker (entry.hpp) where a restore met it out of order, and where a
/// key that comes and goes (a lock) has filled its first lines with tombstones: the next record
/// of that key takes the marker's slot, and the tombstones stop there. Its value is `end`, the time
/// at which the wheel removes it. `db`: as stored. Null: no memory.
[[nodiscard]] const Entry* make_delete_marker(const Region& region, ThreadContext& context,
                                              std::uint8_t db, Bytes key, Version version,
                                              Timestamp end, Region::Use use = Region::Use::record);

/// When the wheel should check a record: at its end, or when a part of it ends before.
[[nodiscard, gnu::always_inline]] inline Timestamp wake_of(const Entry::Head& record) noexcept {
  if (!record.is_delete_marker()) [[likely]] {
    if (record.is_string()) return record.due();
    if (record.is(Kind::claim)) return claim_wake_of(record.value(), record.due());
    return wake_of(record.kind(), record.value(), record.due());
  }
  std::int64_t end = 0;
  std::memcpy(&end, record.value().data(), sizeof end);
  return Timestamp{Millis{end}};
}

/// The mutation that says what `entry` is. Its bytes point into the entry, or, of a large object,
/// into `scratch`. std::bad_alloc.
void fill_mutation(Mutation& mutation, const Entry& entry, std::string& scratch);
/// The same with these bytes as the value.
void fill_mutation_with(Mutation& mutation, const Entry& entry, Bytes value) noexcept;

/// Returns when the journal has a record. Progress: waits for one append of the thread that
/// published it.
void wait_for_append(const Entry& seen) noexcept;

/// The same for a record that is about to be answered from: nearly all have been appended. Inside
/// an operation.
inline void await_append(const Entry& seen) noexcept {
  if (seen.pending()) [[unlikely]]
    wait_for_append(seen);
}

}  // namespace semel::engine
