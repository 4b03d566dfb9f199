// What an engine offers to those who keep its records beside it: a journal, a storage, a replica, a
// node. Users of stores and claims need none of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "semel/cold.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"
#include "semel/journal.hpp"
#include "semel/op.hpp"
#include "semel/result.hpp"
#include "semel/stats.hpp"
#include "semel/types.hpp"

namespace semel {

/// A put or an erase that a journal holds.
struct HeldMutation {
  std::uint8_t db = 0;  ///< as in the mutation: where it is stored
  Bytes key;
  Version version = 0;
  Timestamp keep_until = no_end;
};

/// A view of an engine. Cheap to copy; must not outlive it. Thread-safe, as the engine is.
class EngineHost {
 public:
  explicit EngineHost(Engine& engine) noexcept;

  // --- operations -------------------------------------------------------------------------
  /// Applies `op` in one atomic step at the clock's now. Progress: lock-free; waits only while
  /// an atomic section holds the key's shard.
  void apply(const StoreOp& op, StoreOutcome& outcome) noexcept;
  /// The same for a batch, in order, each operation atomic by itself; one reading of the clock, and
  /// another after each wait.
  /// outcomes.size() must equal ops.size(). More than limits::batch_max: each outcome says
  /// too_many_keys and nothing was changed.
  void apply(std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes) noexcept;
  /// The same at a given time (replay of a replicated log), also after a wait for a section. `now`
  /// must not go back.
  void apply_at(std::span<const StoreOp> ops, std::span<StoreOutcome> outcomes,
                Timestamp now) noexcept;

  // --- records out and in -----------------------------------------------------------------
  /// Visits every record as of one instant (a consistent cut), while writers go on. A record
  /// may be visited twice with the same version. The memory of records that are replaced during the
  /// call is kept until it returns. Errors: snapshot_running; value_too_long, after all records
  /// were visited: restore() does not take one of them, an object longer than
  /// Options::value_bytes_max (only of an engine without journal, cold store and group).
  [[nodiscard]] Status snapshot(const Function<void(const Mutation&)>& visit);

  /// Puts a journalled or snapshot mutation back. An equal or newer record stays. Epochs and
  /// versions handed out later are larger. Errors: memory_full, key_too_long, value_too_long.
  [[nodiscard]] Status restore(const Mutation& mutation);
  /// The same for several, faster than one by one: their cache misses overlap. After an error some
  /// may have been restored.
  [[nodiscard]] Status restore(std::span<const Mutation> mutations);
  /// Call before the first restore(): mutations of about `bytes` follow. If their records may need
  /// more than half of the memory limit, restore() skips a record of which the cold store has the
  /// same or a newer version, at the price of a read from the store. No spill may run before the
  /// last restore().
  void expect_restores(std::uint64_t bytes) noexcept;

  /// For the engine's journal: which of these, at most superseded_max, need not be kept. Bit i is
  /// set if the table has a newer record of asked[i]'s key that does not end before its keep_until,
  /// and whose mutation `append` has taken. A key that is not in the table proves nothing, nor does
  /// one that a section holds. Progress: does not wait.
  [[nodiscard]] std::uint32_t superseded(std::span<const HeldMutation> asked) noexcept;
  static constexpr std::size_t superseded_max = 16;
  /// The journal that takes the engine's changes; null: none.
  [[nodiscard]] const Journal* journal() const noexcept;
  /// Mutations passed to restore() so far. They are in the table and were not appended.
  [[nodiscard]] std::uint64_t restores() const noexcept;

  // --- memory -----------------------------------------------------------------------------
  /// Moves records together and gives back to the system all memory that none needs, without
  /// waiting for advance() to do so a part at a time. Values, versions and times stay; nothing is
  /// journalled. Returns the bytes that came free. Progress: walks the whole table, beside
  /// operations, which go on; not to be called inside a section.
  std::size_t compact();

  // --- a window larger than memory ----------------------------------------------------------
  /// Writes records as one generation of the cold store, takes them out of the table and releases
  /// generations that have ended. Unfinished claims stay in the table, and so do records that end
  /// within Options::spill_ttl_min. With Options::background a thread does this above
  /// Options::spill_above. On an error the records that were not written stay in the table.
  /// Progress: blocks for the disk, for sections and for another spill; operations go on. Not to be
  /// called inside a section.
  /// Errors: bad_option (there is no cold store), storage_failed, memory_full (also: the store
  /// holds more than half of the memory limit), refused (Journal::may_spill: call
  /// Storage::recover() first).
  [[nodiscard]] Result<SpillReport> spill();
  [[nodiscard]] ColdStore* cold_store() const noexcept;  ///< Options::cold
  /// Of its cold store; id 0: it has none.
  [[nodiscard]] ColdMark cold_mark() const noexcept;
  /// Whether more than Options::spill_above is held.
  [[nodiscard]] bool spill_due() const;

  // --- calls of this thread ---------------------------------------------------------------
  /// True: calls of this thread do not wait for a long section, and a wait for a section that
  /// becomes long ends: the call answers section_held (scans and random keys included). A section
  /// is long after section_takes_long(); until then every thread waits. False for a new thread.
  /// Returns the previous value.
  bool set_no_wait(bool no_wait) noexcept;
  /// Marks this thread's section as a long one, see set_no_wait(). No effect outside of a section.
  void section_takes_long() noexcept;

  // --- claims -----------------------------------------------------------------------------
  /// Visits `count` namespaces, in order of their declaration, from `cursor` on (0 = start),
  /// and returns the cursor to go on from (0 = finished). One that is there from start to end is
  /// visited once. `visit` may call the engine. Errors: bad_option (count, 1..limits::
  /// namespace_list_max).
  [[nodiscard]] Result<std::uint64_t> list_namespaces(
      std::uint64_t cursor, std::size_t count,
      const Function<void(Bytes name, const Policy& policy)>& visit) const;
  /// How claims were answered, by namespace: the first limits::counted_namespaces_max that are
  /// claimed in, each by its name even when it was dropped, and the rest as one without a name.
  /// Empty without Options::counts_by_namespace.
  [[nodiscard]] std::vector<NamespaceCounts> claim_counts() const;
  /// Labels decisions about claims by later calls of this thread with `client`, of which 48 bytes
  /// are copied; an empty one removes the label. See Claims::explain().
  void set_client(Bytes client) noexcept;
  /// Whether this thread is inside a section of this engine: what it changes is appended by the end
  /// of the section, not by the call. Progress: wait-free.
  [[nodiscard]] bool in_section() const noexcept;
  /// Options::replicated: the log of a group decides its calls. Progress: wait-free.
  [[nodiscard]] bool is_replica() const noexcept;
  /// Waits until every operation under way has ended and all freed memory is reusable.
  void quiesce();
  /// Walks everything and returns a sentence for each broken rule (none: sound). No operation
  /// may be under way. For tests and the verify preset.
  [[nodiscard]] std::vector<std::string> check_invariants();

 private:
  Engine* engine_;
  Engine::Impl* impl_;
};

/// For a storage of a release before 0.2, after its last restore(): memos of steps, which lay in
/// hashes beside their claims, become a part of the claims' records. Each claim in one section,
/// so that the call may be cut off and made again. Returns how many claims. Errors: those of
/// scan() and section(); value_too_long (names the key: Options::value_bytes_max is less than
/// before). Progress: walks over the engine's records.
[[nodiscard]] Result<std::uint64_t> fold_memos(Engine& engine);

/// Puts back deltas (is_delta()) of one key, of ascending versions. Those are passed over that have
/// ended, or whose key holds a record or an erase of their version or a newer one; the next are
/// applied as long as each follows on the version before. Returns how many are done, from the first
/// on: of the one after them the base is not there, or not there yet. Errors: those of
/// EngineHost::restore(); storage_damaged (a trail is not one of its base), and nothing was
/// changed.
[[nodiscard]] Result<std::size_t> restore_deltas(Engine& engine, std::span<const Mutation> deltas);

}  // namespace semel
