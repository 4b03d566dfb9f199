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
  /// may be visited twice with the same version. Holds the memory of records replaced
  /// meanwhile. Errors: snapshot_running; value_too_long, at the end: all was visited, but among it
  /// an object that restore() does not take, as it is longer than Options::value_bytes_max (only of
  /// an engine without journal, cold store and group).
  [[nodiscard]] Status snapshot(const Function<void(const Mutation&)>& visit);

  /// Puts a journalled or snapshot mutation back. An equal or newer record stays. Epochs and
  /// versions handed out later are larger. Errors: memory_full, key_too_long, value_too_long.
  [[nodiscard]] Status restore(const Mutation& mutation);
  /// The same for several, faster than one by one: their cache misses overlap. After an error some
  /// may have been restored.
  [[nodiscard]] Status restore(std::span<const Mutation> mutations);
  /// Before the first restore(): mutations of about so many bytes follow. Where their records may
  /// need more than half of the memory limit, restore() passes over what the cold store has as it
  /// is or newer, at the price of a read there; no spill may run until the last of them.
  void expect_restores(std::uint64_t bytes) noexcept;

  /// For the engine's journal: which of these, at most superseded_max, need not be kept. Bit i is
  /// set if the table has a newer record of asked[i]'s key that does not end before its keep_until,
  /// and whose mutation `append` has taken. A key that is not in the table proves nothing, nor does
  /// one that a section holds. Progress: does not wait.
  [[nodiscard]] std::uint32_t superseded(std::span<const HeldMutation> asked) noexcept;
  static constexpr std::size_t superseded_max = 16;
  /// What append() is called on; null: nothing.
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
  /// Writes all that may leave as one generation of the cold store, takes it out of the table and
  /// lets go of generations that have ended. All but unfinished claims leave, unless they end
  /// within Options::spill_ttl_min. With Options::background a thread does this above
  /// Options::spill_above. On an error what was not written stays in the table.
  /// Progress: blocks for the disk, for sections and for another spill; operations go on meanwhile.
  /// Not to be called inside a section.
  /// Errors: bad_option (there is no cold store), storage_failed, memory_full (also: what the store
  /// holds in memory is more than half of the limit), refused (Journal::may_spill: call
  /// Storage::recover() first).
  [[nodiscard]] Result<SpillReport> spill();
  [[nodiscard]] ColdStore* cold_store() const noexcept;  ///< Options::cold
  /// Of its cold store; id 0: it has none.
  [[nodiscard]] ColdMark cold_mark() const noexcept;
  /// Whether more than Options::spill_above is held.
  [[nodiscard]] bool spill_due() const;

  // --- calls of this thread ---------------------------------------------------------------
  /// Whether calls of this thread that would wait for a section which takes long, or have begun to,
  /// end with section_held instead (scans and random keys included). A section takes long once it
  /// has said so; before, every thread waits. False when a thread begins. Returns the previous
  /// value.
  bool set_no_wait(bool no_wait) noexcept;
  /// The section that this thread is in says so. Without effect outside of one.
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
  /// From now on, decisions about claims that this thread's calls ask for are noted as those of
  /// `client`, of which 48 bytes are copied; empty: of nobody. See Claims::explain().
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
