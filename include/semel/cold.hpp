// The window larger than memory: where an engine puts records that it has no room for.
//
// An engine with a ColdStore keeps its newest records in the table. Above a mark it writes all that
// may leave as one generation of the store (a spill) and takes them out of the table. From then on
// a key that the table does not know is asked for in the store: by filters in memory, which nearly
// always say no, then on disk. What a key holds is still one truth: the table's record, or else the
// newest copy in the store. Source: docs/decisions/0007-window-larger-than-memory.md
//
// Ranks: the store knows keys by the 64-bit number the engine gives them, which stands for its
// place in the engine's table. A spill comes in the order of ranks, so that a part of it is a
// stretch of ranks, and so are a bucket on disk and a line of a filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

/// A copy found in a cold store, with its bytes.
struct ColdRecord {
  ColdRecord() = default;
  ColdRecord(const ColdRecord&) = delete;  // record points into bytes
  ColdRecord& operator=(const ColdRecord&) = delete;

  Mutation record;         ///< a put; db is the stored one
  std::uint64_t part = 0;  ///< which part of the store holds the copy
  std::string bytes;
};

/// A record that was written, by what the engine needs to find it again.
struct ColdPlace {
  std::uint64_t rank;
  Version version;
};

/// The storage that a cold store belongs to: see Storage::recover().
struct ColdBond {
  std::uint64_t storage = 0;  ///< its id; 0: to none yet
  std::uint64_t token = 0;    ///< random; the storage has the same
  std::uint64_t before = 0;   ///< the token before
  bool is_changing = false;   ///< the storage may have the token before
};

/// The durable clock of that storage.
struct StorageClock {
  std::uint64_t storage = 0;   ///< its id
  std::int64_t offset_ms = 0;  ///< what it adds to the engine's milliseconds
};

struct ColdStats {
  std::uint64_t records = 0;      ///< live or not, superseded or not, on disk
  std::uint64_t generations = 0;  ///< that any record is in
  std::uint64_t parts = 0;
  std::uint64_t filter_bytes = 0;  ///< in memory
  std::uint64_t memory_bytes = 0;  ///< all that the store holds in memory, filters included
  std::uint64_t disk_bytes = 0;    ///< of the files, filters included
  std::uint64_t lookups = 0;       ///< times the disk was asked because a filter said maybe
  std::uint64_t found = 0;         ///< of them, those that found the key
  std::uint64_t buckets_read = 0;
  std::uint64_t read_errors = 0;
};

/// Implementations are safe to call from any thread. "Spiller": the one thread that writes, at a
/// time.
class ColdStore {
 public:
  /// The rank of a key of a stored database.
  using RankOf = std::function<std::uint64_t(std::uint8_t, Bytes)>;

  virtual ~ColdStore() = default;

  // --- the engine opens ---------------------------------------------------------------------
  /// What the engine's hash must start from, so that ranks mean the same in every life.
  [[nodiscard]] virtual std::uint64_t hash_seed() const noexcept = 0;
  /// Its id, random and never 0, and the newest generation, also after that was dropped.
  [[nodiscard]] virtual ColdMark mark() const noexcept = 0;
  /// Before anything else. Errors: bad_option (another shard count than in the first life).
  [[nodiscard]] virtual Status attach(unsigned shard_count, RankOf rank_of) = 0;
  /// Larger than every version in the store, flushes included.
  [[nodiscard]] virtual Version first_version() const noexcept = 0;

  // --- the storage it belongs to ------------------------------------------------------------
  [[nodiscard]] virtual ColdBond bond() const { return {}; }
  /// Synced. Errors: storage_failed.
  [[nodiscard]] virtual Status bind(const ColdBond& bond) {
    static_cast<void>(bond);
    return Done{};
  }
  /// Before records are recovered: ends in the store are times of this clock from now on, so a
  /// record and the erase that keeps it away end together, whatever the wall clock did. Synced.
  /// Errors: storage_failed, storage_damaged.
  [[nodiscard]] virtual Status follow_clock(const StorageClock& clock) {
    static_cast<void>(clock);
    return Done{};
  }
  /// Calls `first`, and copies the store to `directory`, which must not be there. In between
  /// nothing is written to the store: spills wait. Errors: those of `first`, storage_failed.
  [[nodiscard]] virtual Status backup(const std::string& directory,
                                      const std::function<Status()>& first) {
    static_cast<void>(first);
    return Error{ErrorCode::storage_failed, directory + ": this cold store makes no backups"};
  }

  // --- lookups ------------------------------------------------------------------------------
  /// The latest end of those parts that may hold a key of this rank; Timestamp{}: none does.
  /// Memory only. Progress: wait-free. Inside an operation of the engine only: see reclaim().
  [[nodiscard]] virtual Timestamp may_hold_until(std::uint64_t rank) const noexcept = 0;
  /// The newest copy of a key, dead or alive. False: there is none. Progress: reads the disk.
  /// Errors: storage_failed, storage_damaged (whether there is one is unknown).
  [[nodiscard]] virtual Result<bool> find(std::uint64_t rank, std::uint8_t db, Bytes key,
                                          ColdRecord& found) = 0;
  /// Changes whenever a key may have moved from the table into the store.
  [[nodiscard]] virtual std::uint64_t stamp() const noexcept = 0;
  /// A copy was replaced or erased: it counts no more. Part 0: that of the running spill. Inside an
  /// operation only.
  virtual void superseded(std::uint64_t rank, std::uint64_t part, std::uint8_t db,
                          Timestamp due) noexcept = 0;

  // --- spilling, by the spiller -------------------------------------------------------------
  /// Begins a generation, which is newer than all others. Errors: storage_failed (too many).
  [[nodiscard]] virtual Status begin_generation() = 0;
  /// Takes a record into the part that is being collected; in any order.
  virtual void collect(std::uint64_t rank, const Mutation& record) = 0;
  /// What the collected part takes in memory.
  [[nodiscard]] virtual std::size_t collected_bytes() const noexcept = 0;
  /// The collected places, until end_part() or abandon().
  [[nodiscard]] virtual std::span<const ColdPlace> collected() const noexcept = 0;
  /// One of them with its bytes.
  [[nodiscard]] virtual Mutation collected_record(std::size_t index) const = 0;
  /// Puts the part on disk, synced. It covers the ranks first..last. When this returns
  /// may_hold_until() knows of it; find() does not yet. Errors: storage_failed.
  [[nodiscard]] virtual Status write_part(std::uint64_t first, std::uint64_t last) = 0;
  /// From here on find() sees the part.
  virtual void reveal() = 0;
  /// All of the part that can leave the table has left it.
  virtual void end_part() noexcept = 0;
  /// Discards the written part, or the collected places.
  virtual void abandon() noexcept = 0;
  /// Frees what calls of may_hold_until() that began before the last change may have been reading.
  virtual void reclaim() noexcept = 0;
  /// Forgets the oldest generations whose records have all ended. Each costs the same however many
  /// records it has. Errors: storage_failed.
  [[nodiscard]] virtual Status drop_ended(Timestamp now) = 0;

  // --- whole databases ----------------------------------------------------------------------
  /// Copies of `db` with a smaller version are dead from now on. In memory; see keep_flushes().
  virtual void flush(std::uint8_t db, Version below) noexcept = 0;
  /// Puts what flush() said on disk, synced. Errors: storage_failed.
  [[nodiscard]] virtual Status keep_flushes() = 0;
  /// Copies of `db` that live and were not superseded in this life.
  [[nodiscard]] virtual std::uint64_t size(std::uint8_t db, Timestamp now) const = 0;

  // --- iteration ----------------------------------------------------------------------------
  class View;
  /// The store as it is now, without later writes.
  [[nodiscard]] virtual std::shared_ptr<const View> view() const = 0;
  /// Visits the newest copy, dead or alive, of each key from `rank` on, about `count` of them.
  /// Returns the rank to go on from; 0: finished. Errors: storage_failed, storage_damaged.
  [[nodiscard]] virtual Result<std::uint64_t> scan(
      const View& view, std::uint64_t rank, std::size_t count,
      const std::function<void(std::uint64_t rank, const ColdRecord&)>& visit) = 0;

  [[nodiscard]] virtual std::size_t memory_bytes() const = 0;
  [[nodiscard]] virtual ColdStats stats() const = 0;
};

/// What an implementation pins for iteration.
class ColdStore::View {
 public:
  virtual ~View() = default;
};

}  // namespace semel
