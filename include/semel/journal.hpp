// The only way out: every change of an engine leaves as a Mutation through a Journal.
// Durability and replication are implementations of it; EngineHost::restore is the one way back in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "semel/claim.hpp"
#include "semel/function.hpp"
#include "semel/op.hpp"
#include "semel/types.hpp"

namespace semel {

/// One change for the journal. For each key, replay keeps the mutation with the largest version, so
/// a journal may be written and read in any order (docs/decisions/0002-order-of-versions.md).
struct Mutation {
  enum class Type : std::uint8_t {
    put,     ///< the record is now this
    erase,   ///< the record is gone (expiry is not journalled: due says it)
    flush,   ///< every record of db with a smaller version is gone; key is empty
    db_map,  ///< value holds limits::db_count bytes: numbered database -> where it is stored
  };
  Type type = Type::put;
  Kind kind = Kind::string;
  std::uint8_t db = 0;
  Version version = 0;
  Timestamp due = no_end;  ///< end of the record on the engine's clock
  /// Until when the journal must keep this: the later end of this record and of the record that it
  /// replaces, which would come back if this were forgotten first.
  Timestamp keep_until = no_end;
  Bytes key;
  Bytes value;  ///< of a string; of a hash as engine/rules/hash_value.hpp packs it
  std::optional<ClaimRecord> claim;  ///< of a claim; its times are on the engine's clock
  /// Of what takes the place of a live object whose record has limits::trail_record_bytes_min bytes
  /// or more: the version of that. Else 0.
  Version base = 0;
  /// What a put changes of that record, which has the same kind and `due`, if that is much shorter
  /// than `value`; else empty. A journal that has the record of `base` may keep this in the place
  /// of `value`; the mutation is a delta then, which restore_deltas() puts back. `value` is empty
  /// from the beginning if Journal::keeps_trail() has said so.
  Bytes trail{};
};

/// Without the record that it makes.
[[nodiscard]] inline bool is_delta(const Mutation& mutation) noexcept {
  return mutation.value.empty() && !mutation.trail.empty();
}

/// Names a place in a journal. Tickets of one journal grow.
using Ticket = std::uint64_t;

/// The failures that acknowledged changes survive (docs/guarantees.md).
enum class Durability : std::uint8_t {
  memory,  ///< none: the end of the process may lose all changes
  logged,  ///< the end of the process, also by kill -9. A power cut may lose changes younger than
           ///< the journal's sync interval (StorageOptions::sync_every, 1 s)
  synced,  ///< a power cut as well, since changes are on the disk. The loss of the disk loses them
  quorum,  ///< the loss of a minority of nodes. Only in a group: elsewhere a wait ends with
           ///< outcome_unknown
};

/// A cold store and its newest generation.
struct ColdMark {
  std::uint64_t id = 0;          ///< 0: none
  std::uint64_t generation = 0;  ///< the newest one that has begun
};

/// Implementations are safe to call from any thread.
class Journal {
 public:
  virtual ~Journal() = default;

  /// Takes one group of mutations, all or nothing on replay. Called after the change is visible
  /// in memory, and before any answer that depends on it. Must not block on a disk and
  /// must not call back into the engine; the bytes are valid only during the call. 0: not taken;
  /// waiting for it fails.
  [[nodiscard]] virtual Ticket append(std::span<const Mutation> group) = 0;

  /// Whether the journal will keep the trail of this delta instead of the record, whose bytes are
  /// not made yet. Called before a change of a large object; true is a promise for that change.
  /// Must be quick.
  [[nodiscard]] virtual bool keeps_trail(const Mutation& delta) const noexcept {
    static_cast<void>(delta);
    return false;
  }

  /// Called by a thread after its append, outside of locks and before it waits. Back-pressure: may
  /// block a writer that outpaces the draining, for a bounded time.
  virtual void pace() {}

  /// Blocks until everything up to `ticket` has reached `level`.
  /// Errors: outcome_unknown (it may or may not be there), refused (it is not).
  [[nodiscard]] virtual Status wait(Ticket ticket, Durability level) = 0;

  /// The ticket of the newest append so far; waiting on it covers all of them.
  [[nodiscard]] virtual Ticket newest() const = 0;

  /// Calls `then` once with the status that wait() would return: at once on this thread, or later
  /// on another one, where `then` must be quick and must not wait.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): overriding functions keep it.
  virtual void when(Ticket ticket, Durability level, Function<void(Status)> then) {
    then(wait(ticket, level));
  }

  /// Takes `then` and returns true if this thread's changes go to the journal in one write of their
  /// own, later. Calls `then` on this thread after that write; it notifies the waiters of the
  /// changes.
  [[nodiscard]] virtual bool defer(Function<void()>& then) {
    static_cast<void>(then);
    return false;
  }

  /// False: new work must be refused before it is made visible (disk full, failed sync).
  [[nodiscard]] virtual bool accepts_writes() const noexcept { return true; }

  /// True: the journal still takes changes that only free memory while new work is refused: an
  /// erase, an earlier end, the end of a granted claim.
  [[nodiscard]] virtual bool accepts_frees() const noexcept { return accepts_writes(); }

  /// The largest group of mutations that append() takes, in bytes of keys and values, about.
  [[nodiscard]] virtual std::size_t group_bytes_max() const noexcept {
    return std::numeric_limits<std::size_t>::max();
  }

  /// The engine ends now: do not use it any more.
  virtual void engine_ends() noexcept {}

  /// False: the journal has records that EngineHost::restore has not put back yet, so none may be
  /// spilled.
  [[nodiscard]] virtual bool may_spill() const noexcept { return true; }
  /// True: when a spill moves records into a cold store, append the records that stay in memory
  /// again, so that the journal can forget all older mutations.
  [[nodiscard]] virtual bool wants_spills() const noexcept { return false; }
  /// Of mutations up to `cut` only db_map is still needed, as soon as all up to `kept` are synced:
  /// the records are synced in the cold store or were appended again. Forgetting must go from old
  /// to new, or an erase would go before the put it ended. From then on the cold store `cold` must
  /// be there whenever the journal's records are put back.
  virtual void spilled(Ticket cut, Ticket kept, const ColdMark& cold) {
    static_cast<void>(cut), static_cast<void>(kept), static_cast<void>(cold);
  }
};

}  // namespace semel
