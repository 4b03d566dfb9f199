// The cold store beside the table: lookups beyond the table, and the memory that the store holds.
//
// An operation that finds nothing for its key in the table asks the store's filters. If they say
// maybe, the thread leaves the operation, reads the disk, and looks at the table again. The copy
// from the disk is current if the table still has nothing for the key and the store's stamp is the
// same: no record has moved from the table into the store since.
//
// A cold copy is never changed. It is replaced by a record or a delete marker in the table, until
// no copy can live: a delete marker lasts until the latest end of all parts that may hold the key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/core/cold_look.hpp"
#include "engine/keys/key_space.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/versions.hpp"
#include "semel/cold.hpp"
#include "semel/options.hpp"

namespace semel::engine {

class ColdSide {
 public:
  ColdSide(const Options& options, const KeySpace& keys, Region& region) noexcept
      : store_(options.cold),
        memory_bytes_(options.memory_bytes),
        shard_count_(options.shard_count),
        keys_(keys),
        region_(region) {}

  /// Null: there is none; then only end_of() may be called.
  [[nodiscard]] ColdStore* store() const noexcept { return store_; }
  /// Once, before operations. Errors: those of ColdStore::attach, bad_option (the store leaves no
  /// memory for records).
  [[nodiscard]] Status attach(VersionSource& versions);
  /// The store is held beside the table, and grows with each record that moves there. Without room
  /// for records every few of them would be a generation. Errors: memory_full.
  [[nodiscard]] Status check_memory(std::size_t most) const;
  /// Brings the limit up to date with what the store holds and the next spill will need. One thread
  /// at a time.
  void charge() noexcept;
  /// When nothing in the store can hold this key any more; Timestamp{}: nothing does. `db`: as
  /// stored. Inside an operation of `context`.
  [[nodiscard]] Timestamp end_of(const ThreadContext& context, std::uint8_t db,
                                 Bytes key) const noexcept;
  /// Of a key for which the table has nothing, inside an operation. Does not read the disk.
  [[nodiscard]] ColdAnswer ask(const KeyLocation& location, Bytes key, ColdLook& look);
  /// After `unknown`, outside of the operation: reads the disk. ok, or why it is not known; then
  /// the table is to be looked at, and ask() called, again.
  [[nodiscard]] ErrorCode read(Bytes key, ColdLook& look);

 private:
  ColdStore* const store_;
  const std::size_t memory_bytes_;
  const unsigned shard_count_;
  const KeySpace& keys_;
  Region& region_;
  std::size_t charged_ = 0;  // of start(), then of the spiller
};

}  // namespace semel::engine
