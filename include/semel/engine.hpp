// The engine: one sharded lock-free table with a timing wheel, under two faces, Store and Claims.
//
// Thread-safe throughout. Several engines may live in one process. One thread of its own, unless
// Options::background says otherwise, no signal handlers, no static initialisers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "semel/claim.hpp"
#include "semel/clock.hpp"
#include "semel/function.hpp"
#include "semel/journal.hpp"
#include "semel/op.hpp"
#include "semel/options.hpp"
#include "semel/result.hpp"
#include "semel/section.hpp"
#include "semel/stats.hpp"
#include "semel/types.hpp"

namespace semel {

class Engine;
class Confirmation;
class EngineHost;
class Store;
class Hashes;
class Claims;

/// A record of the engine that ended by its ttl, or a hash of which fields did, reported once. Not
/// reported: those that ended in the cold store.
struct ExpiredEvent {
  enum class What : std::uint8_t {
    record,
    fields,      ///< of a hash, which stays
    last_fields  ///< the record has ended because none of its fields is left
  };
  Kind kind;
  std::uint8_t db;
  Bytes key;  ///< valid during the call
  What what = What::record;
};
using ExpiredSink = Function<void(const ExpiredEvent&)>;

struct ScanOptions {
  std::optional<std::uint8_t> db{};  ///< none: all
  std::optional<Kind> kind{};
  std::optional<ClaimState> state{};  ///< claims only; in_doubt by the rules of its namespace
  Bytes prefix{};
  std::size_t count = 10;  ///< how many records to look at, about; 1..limits::scan_count_max
  bool vacant = false;     ///< claims without an owner too: given back, or issued
};

/// One record met by a scan. Bytes are valid during the call.
struct ScanItem {
  Kind kind;
  std::uint8_t db;
  Timestamp due;
  Version version;
  Bytes key;
  Bytes value;                         ///< of a string
  const ClaimRecord* claim = nullptr;  ///< of a claim
};

/// Which claims drop_namespace() removes. Any other claim keeps the namespace from being dropped.
enum class DropRule : std::uint8_t {
  unused,    ///< none: the namespace must be empty
  finished,  ///< done, failed, issued and given-back claims; their results are lost. A claim that
             ///< was given back with memos of its steps has begun, and is not finished
  all,       ///< held and in-doubt claims as well: their work may run once more
};

struct DropReport {
  std::uint64_t finished = 0;  ///< claims that went: done, failed, issued, given back
  std::uint64_t held = 0;      ///< held or in doubt
};

/// When flush() gives back the memory of the records that it removes.
enum class FlushMode : std::uint8_t {
  sync,   ///< before the call returns; after it, if a snapshot or a section delays that
  async,  ///< in steps, by advance() and Options::background; the number of removed records then
          ///< includes expired ones that no sweep has removed yet
};

/// Awaitable, see Engine::confirmed(). Resumes where the journal answers, or does not suspend. The
/// coroutine may be destroyed while it waits: then nothing is resumed.
class Confirmation {
 public:
  Confirmation(Engine& engine, Durability level) noexcept;
  ~Confirmation();
  Confirmation(const Confirmation&) = delete;
  Confirmation& operator=(const Confirmation&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  /// `waiting`: a std::coroutine_handle, whose header is the user's. False: it was answered at
  /// once, so that a loop of such waits does not deepen the stack.
  template <class Handle>
  [[nodiscard]] bool await_suspend(Handle waiting) {
    return suspend(waiting.address());
  }
  [[nodiscard]] Status await_resume();

 private:
  struct Shared;  // with the journal, which may keep it longer
  struct Held;

  [[nodiscard]] bool suspend(void* coroutine);

  Engine& engine_;
  const Durability level_;
  std::unique_ptr<Held> held_;
};

class Engine {
 public:
  /// Optional: what the first open() of a process does once, done early. The kernel lets a process
  /// with several threads wait some 10 ms for it, one with a single thread not at all.
  static void prepare_process() noexcept;
  /// Errors: bad_option (names the option and its range), out_of_address_space (also: the heap is
  /// full), no_thread (Options::background).
  [[nodiscard]] static Result<std::unique_ptr<Engine>> open(const Options& options = {});
  /// Ends all waits with an answer, and does not block: no other call may be under way. In a child
  /// of the process that opened it, it ends nothing of the parent's, and its memory stays.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// A view of one numbered database. Cheap to copy; must not outlive the engine.
  [[nodiscard]] Store store(std::uint8_t db = 0) noexcept;

  /// The hashes of one numbered database. As store().
  [[nodiscard]] Hashes hashes(std::uint8_t db = 0) noexcept;

  // --- namespaces of claims ---------------------------------------------------------------
  /// Makes `name` a namespace of claims. Name: 1..64 bytes of [A-Za-z0-9_.-]. Records live under
  /// the key "name:key" of the policy's database. With a journal, the namespace and its policy are
  /// in it when this returns, at the engine's level, and back after a restart. One that is there
  /// with this policy is fine; with another one it stays as it is.
  /// Errors: bad_namespace (the name), bad_option, namespace_differs (says which terms),
  /// namespace_dropped (it is being dropped now), memory_full, refused: nothing was changed.
  /// outcome_unknown. Thread-safe. Progress: takes a mutex and waits for the engine's level.
  [[nodiscard]] Result<Claims> claims(Bytes name, const Policy& policy);
  /// The namespace declared before. Errors: bad_namespace. Progress: takes a mutex shared.
  [[nodiscard]] Result<Claims> claims(Bytes name);
  /// Changes the policy of a namespace for later calls of all its handles. Returns the difference:
  /// "lease 60000 -> 5000, strict no -> yes"; empty: none. A change that would forget something is
  /// refused (namespace_differs): another database; an end to issued keys; claims in doubt that any
  /// caller could then take over. Other errors: those of claims(); bad_namespace (not declared).
  [[nodiscard]] Result<std::string> change_namespace(Bytes name, const Policy& policy);
  /// For operators: drops a namespace. Calls through its handles answer namespace_dropped from then
  /// on. `rule` decides which of its claims are removed; any other claim prevents the drop, so a
  /// namespace that is declared again under this name starts without claims. While the drop runs,
  /// new claims in the namespace are refused with namespace_dropped.
  /// Errors: bad_namespace, namespace_in_use (names the claims that prevent it; nothing was
  /// changed), namespace_dropped (another call drops it), bad_option (inside a section), those of
  /// scan(), refused. After an error the namespace exists, without some of the claims to remove.
  /// Progress: walks over the engine's records, up to three times, while other calls go on.
  [[nodiscard]] Result<DropReport> drop_namespace(Bytes name, DropRule rule = DropRule::unused);
  /// The names of all namespaces, in order. Where there are many, EngineHost::list_namespaces().
  [[nodiscard]] std::vector<std::string> namespaces() const;

  // --- several keys -----------------------------------------------------------------------
  /// Exclusive use of the shards of `keys` (all of them, if empty) until the Section ends. Within
  /// a section of this thread that holds them: a part of that one.
  /// Progress: blocks for other sections and for operations under way.
  /// Errors: too_many_keys; bad_option (the section of this thread does not hold them);
  /// storage_failed, storage_damaged (the cold copy of a key cannot be read); section_held.
  [[nodiscard]] Result<Section> section(std::span<const KeyRef> keys);
  // --- iteration --------------------------------------------------------------------------
  /// Visits about options.count records from `cursor` on (0 = start) and returns the cursor to
  /// go on from (0 = finished). A record present from start to end is visited at least once.
  /// Errors: bad_cursor, bad_option.
  [[nodiscard]] Result<std::uint64_t> scan(std::uint64_t cursor, const ScanOptions& options,
                                           const Function<void(const ScanItem&)>& visit);

  // --- time -------------------------------------------------------------------------------
  /// Removes about `budget` records at most that have expired by the clock, and gives memory back.
  /// Returns the budget that is left; 0: call again. One caller works, others return at once.
  std::size_t advance(std::size_t budget = 1'000'000);

  /// Calls `sink` with every record that expires from now on, on the thread that removes it, inside
  /// its operation: `sink` must be quick and must not call the engine. Returns a handle to stop it.
  std::uint64_t subscribe_expired(ExpiredSink sink);
  void unsubscribe_expired(std::uint64_t handle);

  // --- owners -----------------------------------------------------------------------------
  /// A lifetime that claims can be bound to. Closing it makes their takeover immediate. 0: the
  /// process is a child, or has no memory for a thread's first call; or it is a replica, where
  /// sessions are those of the log.
  [[nodiscard]] SessionId open_session();
  void close_session(SessionId session);

  // --- whole databases --------------------------------------------------------------------
  /// Removes every record of `db` (none: of all databases), atomically. Returns how many. Waits for
  /// the engine's level like every call. Errors: db_out_of_range; refused and memory_full, nothing
  /// is removed; outcome_unknown, they are removed.
  /// Progress: other threads wait for a moment that does not depend on how many records there are;
  /// see FlushMode for this thread. What the records hold counts towards the limit until they are
  /// taken out, which a call that finds no memory helps along.
  Result<std::uint64_t> flush(std::optional<std::uint8_t> db, FlushMode mode = FlushMode::sync);
  /// Exchanges two databases. Errors: db_out_of_range, refused, outcome_unknown.
  [[nodiscard]] Status swap_db(std::uint8_t one, std::uint8_t other);
  /// Live records of `db`. The count of the cold store is approximate: it drops a record too late
  /// by up to 1/31 of the spread of the ends in its part; a running spill may count the records of
  /// the part that it moves twice; and a record that an earlier process has replaced or erased, or
  /// that restore() has put back, counts until its end.
  [[nodiscard]] std::uint64_t size(std::uint8_t db) const;

  // --- durability -------------------------------------------------------------------------
  /// Raises the level for once: returns when all that any call changed or saw so far has reached
  /// `level`. Progress: blocks. Errors: outcome_unknown, refused (the journal's), bad_option (there
  /// is no journal), forked.
  [[nodiscard]] Status confirm(Durability level);
  /// The same without blocking: calls `then` once, at once on this thread or later on the
  /// journal's, where it must be quick and must not wait.
  void confirm_async(Durability level, Function<void(Status)> then);
  /// The same for coroutines: `Status status = co_await engine.confirmed(Durability::synced)`.
  [[nodiscard]] Confirmation confirmed(Durability level) noexcept;

  /// Changes Options::memory_bytes while calls go on. If the engine holds more than `bytes`, new
  /// records are refused with memory_full until enough records have expired or were removed. Until
  /// then live records can still be changed, completed and removed, beyond the limit if need be.
  /// Errors: bad_option (names the range, up to Options::memory_room_bytes; with a cold store; in a
  /// replica). Progress: takes a short mutex.
  [[nodiscard]] Status set_memory_limit(std::size_t bytes);

  // --- insight ----------------------------------------------------------------------------
  [[nodiscard]] Stats stats() const;
  [[nodiscard]] const Clock& clock() const noexcept;
  /// The time of a call made now: the clock's, or that of this thread's section.
  [[nodiscard]] Timestamp now() const noexcept;
  /// What a journal, a storage, a replica or a node needs besides: semel/engine_host.hpp.
  [[nodiscard]] EngineHost host() noexcept;

  class Impl;

 private:
  friend struct ImplAccess;  // in the engine
  explicit Engine(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
