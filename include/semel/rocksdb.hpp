// Joined commits: your effect and the claim's "done" in one write of RocksDB, so that no crash can
// part them. The only public header that includes RocksDB; semel/semel.hpp does not include it.
//
//   auto storage = open_storage({.directory = dir}, clock, {{"payments", {}}});
//   .. an engine on it, recover(), a claim that was granted ..
//   rocksdb::WriteBatch effects;
//   effects.Put(family(*storage, "payments"), "order-4711", "paid");
//   auto done = complete_joined(*storage, orders, {.key = "order-4711", .epoch = claim.epoch,
//                                                  .payload = "paid"}, effects);
//
// Source: docs/guarantees.md#joined-commits
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/storage.hpp"

namespace semel {

/// Storage::open, and `families` of yours are opened in its database, made if they are not there.
/// Errors: those of Storage::open; bad_option (a name that is empty, named twice, or Semel's own:
/// "default", "journal", "joined").
[[nodiscard]] Result<std::unique_ptr<Storage>> open_storage(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {});

/// The database of a storage that open_storage has opened, for reads, and for writes of your own to
/// your own families. A family that is dropped by it takes no more effects. Ends with the storage.
[[nodiscard]] rocksdb::DB& database(Storage& storage) noexcept;

/// A family that was named to open_storage, or that is there from an earlier life. Null: there is
/// none, or it is Semel's own. Belongs to the storage.
[[nodiscard]] rocksdb::ColumnFamilyHandle* family(Storage& storage,
                                                  const std::string& name) noexcept;

/// The largest batch of effects: the next open reads it as a whole.
inline constexpr std::size_t joined_effects_bytes_max = std::size_t{256} << 20;

struct JoinedOutcome {
  OwnerOutcome owner;  ///< what Claims::complete would have answered
  /// True: this call finished the work, and its effects are in the database. False: nothing of them
  /// was written; with the answer ok, the work had been finished before, together with the
  /// effects that came with it then.
  bool written = false;
};

/// Claims::complete, and if that finishes the work, `effects` and the finished claim in one write;
/// after every other answer nothing is written. Neither is ever there without the other, whatever
/// ends the process. No answer says that the work is done before the write has reached the level
/// that was asked for: a repeat waits for it, and waiters for the claim are notified after it.
///
/// `claims` is of the engine on this storage that was recovered from it, and no replica. The thread
/// is not inside a section of it. `effects` may write to families of yours only, stays as it is,
/// and can be used again. It holds what RocksDB will not refuse later: Put, Delete, SingleDelete,
/// DeleteRange (its end not before its begin), PutLogData; PutEntity in a family without a merge
/// operator, Merge in one with it, if that takes the operands now; at most joined_effects_bytes_max
/// bytes; families whose tables are block-based and whose keys have no timestamps. `level` is
/// logged or synced, and at least the engine's.
///
/// Errors: bad_option (which entry of `effects`, or what of the call), storage_failed, forked
/// (nothing was changed); outcome_unknown (after the next open both are there, or neither; the
/// storage has failed, see Storage::stats, unless the failed write was that of another caller).
/// Progress: blocks for the disk, and while a family is dropped.
[[nodiscard]] Result<JoinedOutcome> complete_joined(Storage& storage, Claims& claims,
                                                    const OwnerCall& call,
                                                    const rocksdb::WriteBatch& effects,
                                                    Durability level = Durability::synced);

}  // namespace semel
