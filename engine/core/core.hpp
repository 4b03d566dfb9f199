// The heart: one atomic read-decide-commit step on one key, over table, arena, wheel and journal.
//
// Data flow of an operation: hash -> shard -> find -> decide (a pure function) -> one
// compare-and-set -> timer, counters, Mutation. If the compare-and-set loses, find and decide
// again.
//
// Concurrency
//   [core.section]  a shard's section flag. Set by a Section before its membarrier, read by every
//                   operation after its announcement: one of the two sees the other. Cleared with
//                   release, read with acquire: what the section did is visible afterwards.
//                   Where sections are frequent the shard is left watched: operations announce
//                   themselves to it by an exchange (20 cycles), sections need no membarrier (9 us
//                   and an interrupt for each thread that runs). An operation that saw it unwatched
//                   had announced itself before the membarrier of the section that left it so.
//   versions_       the source of version blocks; only uniqueness and growth are asked of it:
//   relaxed. [core.snapshot] see snapshot.cpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "engine/core/callbacks.hpp"
#include "engine/core/cold_look.hpp"
#include "engine/core/compactor.hpp"
#include "engine/core/own_section.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/region.hpp"
#include "engine/memory/segment_pool.hpp"
#include "engine/memory/threads.hpp"
#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "engine/table/entry.hpp"
#include "engine/table/table.hpp"
#include "engine/time/ttl_wheel.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

class Core final : public SegmentSink {
 public:
  /// The version that a change decided now will have.
  class NextVersion {
   public:
    NextVersion(Core& core, ThreadContext& context, Version floor) noexcept
        : core_(core), context_(context), floor_(floor) {}
    [[nodiscard]] Version operator()() const noexcept { return core_.candidate(context_, floor_); }

   private:
    Core& core_;
    ThreadContext& context_;
    Version floor_;
  };
  struct StdSync {
    template <class T>
    using atomic = std::atomic<T>;
    static constexpr bool vector_lines = has_vector_lines;
  };
  using ShardTable = Table<StdSync, SegmentPool>;
  using Probe = ShardTable::Probe;

  struct alignas(128) Shard {
    Shard(Region& region, Threads& threads, std::uint32_t line_count,
          ShardTable::Word* directory) noexcept
        : table(pool, line_count, directory),
          pool(region, threads, ShardTable::segment_bytes(line_count)) {}
    std::atomic<std::uint32_t> section{0};  // [core.section] free, watched, held or held_long
    ShardTable table;
    SegmentPool pool;
    alignas(64) std::mutex section_mutex;
    std::uint32_t recent_sections = 0;  // under the mutex, since advance() last looked
  };

  explicit Core(const Options& options, const Clock& clock);
  ~Core() override;

  /// Errors: out_of_address_space, bad_option (the limit holds no table).
  [[nodiscard]] Status start();

  // --- one key ----------------------------------------------------------------------------
  /// `decide(const RecordView* live, const NextVersion&) -> Decision` may run several times.
  /// `version` becomes that of the record written, or seen if kept. `now` moves on if the call had
  /// to wait, before `decide` runs: a lease or ttl is never counted from before a wait. Errors:
  /// key_empty, key_too_long, db_out_of_range, value_too_long, memory_full, refused.
  template <class Decide>
  ErrorCode update(std::uint8_t db, Bytes key, Timestamp& now, Decide&& decide, Version& version);

  struct NobodyAnswers {
    bool operator()(const Entry&) const noexcept { return false; }
  };
  /// The same, and `answers(const Entry&)` is asked first about a live record that is found at
  /// once: true ends the call without looking again, and without a version being taken.
  template <class Answers, class Decide>
  ErrorCode update_unless(std::uint8_t db, Bytes key, Timestamp& now, Answers&& answers,
                          Decide&& decide, Version& version);

  /// The same inside a section that covers the key.
  template <class Decide>
  ErrorCode update_exclusive(std::uint8_t db, Bytes key, Timestamp now, Decide&& decide,
                             Version& version, MutationSink& sink);

  /// Whether a record is that of a key; the hash said it may be.
  struct Match {
    [[nodiscard]] bool operator()(Handle handle) const noexcept {
      return static_cast<const Entry*>(region.at(handle))->has_key(db, key);
    }
    const Region& region;
    std::uint8_t db;
    Bytes key;
  };

  // An update in its parts, for those who can often do without the last two: admit, hit, look,
  // decide_at.
  class Operation;
  struct Place {
    Shard* shard;
    HashBits hash;
    std::uint8_t stored_db;
  };
  /// Where a key is that has passed check_key(). Needs no operation.
  [[nodiscard]] Place place_of(KeyRef key) noexcept {
    const std::uint8_t stored = stored_db(key.db);
    const HashBits hash = hash_of(stored, key.key);
    return {&shard_of(hash), hash, stored};
  }
  /// Returns when no section holds the place. The databases may be swapped while we wait. False: a
  /// section holds it that takes long, and the thread does not wait for such (section_held).
  [[nodiscard]] bool admit(Operation& operation, Place& place, KeyRef key) noexcept;
  [[nodiscard]] Probe look(const Place& place, Bytes key) const noexcept {
    return place.shard->table.find(place.hash, Match{region_, place.stored_db, key});
  }
  /// The live record of a key, or null, which says nothing: then look.
  [[nodiscard, gnu::always_inline]] const Entry* hit(const Place& place, Bytes key,
                                                     Timestamp now) const noexcept {
    return hit_of(place, now, Match{region_, place.stored_db, key});
  }
  /// The same for a record of which more than the first line will be read: the misses of both are
  /// waited for together.
  [[nodiscard, gnu::always_inline]] const Entry* hit_far(const Place& place, Bytes key,
                                                         Timestamp now) const noexcept {
    const Match match{region_, place.stored_db, key};
    return hit_of(place, now, [&](Handle handle) {
      constexpr std::size_t line_bytes = 64;
      __builtin_prefetch(static_cast<const char*>(region_.at(handle)) + line_bytes);
      return match(handle);
    });
  }
  template <class Matches>
  [[nodiscard, gnu::always_inline]] const Entry* hit_of(const Place& place, Timestamp now,
                                                        Matches&& matches) const noexcept {
    const Handle handle = place.shard->table.hit(place.hash, matches);
    if (handle == 0) return nullptr;
    const auto* const found = static_cast<const Entry*>(region_.at(handle));
    if (!lives(*found, now)) return nullptr;
    settle(*found);
    return found;
  }
  /// `now` is read again after each wait, before `decide` runs.
  template <class Decide>
  [[nodiscard]] ErrorCode decide_at(Operation& operation, Place place, KeyRef key, Timestamp& now,
                                    Decide& decide, Version& version, MutationSink* sink = nullptr);

  /// Up to group_max keys as one operation. The cache misses of the whole group are waited for
  /// together, in two rounds: first the slots, then the records they point to.
  /// `key_at(i) -> KeyRef`; `run(i, operation, place)`: as after admit(), of a key that was not
  /// checked; place.shard is null if that was false. `now` is read again after each wait, before
  /// `run`.
  static constexpr std::size_t group_max = 16;
  template <class KeyAt, class Run>
  void group(std::size_t count, Timestamp& now, KeyAt&& key_at, Run&& run);

  [[nodiscard]] HashBits hash_of(std::uint8_t db, Bytes key) const noexcept {
    return HashBits::of(hash64_of(db, key));
  }
  [[nodiscard]] std::uint64_t hash64_of(std::uint8_t db, Bytes key) const noexcept;
  [[nodiscard]] Shard& shard_of(HashBits hash) noexcept {
    return shards_[hash.shard() & shard_mask_];
  }
  /// The checks of a key that need no table.
  [[nodiscard]] ErrorCode check_key(std::uint8_t db, Bytes key) const noexcept {
    if (key.empty()) return ErrorCode::key_empty;
    if (key.size() > options_.key_bytes_max) return ErrorCode::key_too_long;
    return db < limits::db_count ? ErrorCode::ok : ErrorCode::db_out_of_range;
  }

  /// Brings slots and the first `bytes` of the records of up to 64 keys into the cache, so
  /// that their misses are waited for together. `hash_at(i) -> HashBits`. Inside an operation.
  template <class HashAt>
  void prefetch(std::size_t count, HashAt&& hash_at, std::size_t bytes) noexcept;

  // --- operations and sections ------------------------------------------------------------
  /// What a refused operation has tried already.
  enum class Room : std::uint8_t { nothing, retired, swept, gathered, moved, all };
  /// Inside one operation; sections wait for it, it waits for sections.
  class Operation {
   public:
    Operation(Core& core, ThreadContext& context) noexcept : core_(core), context_(context) {
      core_.threads_.enter(context_);
    }
    ~Operation() { core_.threads_.leave(context_); }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    [[nodiscard]] static bool is_free(const Shard& shard) noexcept {
      // mo: acquire [core.section]: what an ended section did comes before what follows.
      return shard.section.load(std::memory_order_acquire) == 0;
    }
    /// To be called before touching a shard; may leave and enter again. Waits for every section.
    void admit(Shard& shard) noexcept {
      while (!is_free(shard)) [[unlikely]] {
          if (core_.is_own(context_, shard) || passes_watched(shard)) return;
          static_cast<void>(wait(shard, false));
        }
    }
    /// The same, but false where an impatient thread would wait for a section that takes long.
    [[nodiscard]] bool try_admit(Shard& shard) noexcept {
      while (!is_free(shard)) [[unlikely]] {
          if (core_.is_own(context_, shard) || passes_watched(shard)) return true;
          if (!wait(shard, context_.impatient)) return false;
        }
      return true;
    }

    /// The same, but false where anybody would wait.
    [[nodiscard]] bool admit_now(Shard& shard) noexcept {
      return is_free(shard) || core_.is_own(context_, shard) || passes_watched(shard);
    }

    [[nodiscard]] ThreadContext& context() const noexcept { return context_; }

    /// Reads the clock again if this operation has waited since it was read.
    void keep_up(Timestamp& now) noexcept {
      if (!waited_) [[likely]]
        return;
      waited_ = false;
      now = std::max(now, core_.now(context_));
    }
    void note_wait() noexcept { waited_ = true; }

    /// Runs what may block outside of the operation. Then admit and look again.
    template <class Work>
    void outside(Work&& work) {
      waited_ = true;
      core_.threads_.leave(context_);
      work();
      core_.threads_.enter(context_);
    }
    /// After a refusal, see Core::make_room(). True: admit and try again.
    [[nodiscard]] bool reclaim(Room& tried) {
      core_.threads_.leave(context_);
      const bool made = core_.make_room(context_, tried);
      note_wait();
      core_.threads_.enter(context_);
      return made;
    }

   private:
    /// Announces itself so that a section which needs no membarrier sees it. False: one is there.
    [[nodiscard]] bool passes_watched(const Shard& shard) noexcept {
      core_.threads_.announce_again(context_);
      // mo: seq_cst [core.section]: after the announcement, and before nothing else.
      return !is_held(shard.section.load(std::memory_order_seq_cst));
    }
    [[nodiscard]] bool wait(Shard& shard, bool impatient) noexcept {
      waited_ = true;
      core_.threads_.leave(context_);
      const bool waited = wait_for_section(shard, impatient);
      core_.threads_.enter(context_);
      return waited;
    }
    Core& core_;
    ThreadContext& context_;
    bool waited_ = false;  // since the time of the call was read
  };

  [[nodiscard]] ThreadContext& context() { return threads_.context(); }
  /// Whether a call of this thread may begin. Errors: forked; memory_full (the first call of a
  /// thread needs room on the heap).
  [[nodiscard]] ErrorCode begin_call() noexcept {
    return threads_.try_context() != nullptr ? ErrorCode::ok : why_no_context();
  }
  [[nodiscard]] ErrorCode why_no_context() const noexcept {
    return threads_.is_forked() ? ErrorCode::forked : ErrorCode::memory_full;
  }
  /// Whether the thread is in a section that holds this shard.
  [[nodiscard]] bool is_own(const ThreadContext& context, const Shard& shard) const noexcept {
    return context.section != nullptr &&
           context.section->holds_shard(static_cast<std::uint32_t>(&shard - shards_));
  }
  /// The time of a call that begins now: in a section it stands still.
  [[nodiscard]] Timestamp now(const ThreadContext& context) const noexcept {
    if (context.section != nullptr) [[unlikely]]
      return context.section->now();
    return clock_.now();
  }
  [[nodiscard]] Threads& threads() noexcept { return threads_; }
  [[nodiscard]] Region& region() noexcept { return region_; }
  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] std::span<Shard> shards() const noexcept { return {shards_, shard_count_}; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] CallbackWatch& callbacks() noexcept { return callbacks_; }
  [[nodiscard]] Journal* journal() const noexcept { return options_.journal; }
  // The journal. An exception of it comes too late: the change is visible already.
  /// 0: not taken, or it threw.
  [[nodiscard]] Ticket append(std::span<const Mutation> group) noexcept;
  [[nodiscard]] Ticket newest() noexcept;
  void pace() noexcept;
  /// False: not reached, not known, or it threw.
  [[nodiscard]] bool wait_for(Ticket ticket, Durability level) noexcept;
  /// Returns when the journal has a record that is about to be answered from. Inside an operation.
  /// Progress: waits for one append of the thread that published it.
  void settle(const Entry& seen) const noexcept {
    if (seen.pending()) [[unlikely]]
      wait_for_append(seen);
  }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const Entry& entry(SlotWord word) const noexcept {
    return *static_cast<const Entry*>(region_.at(slot::handle(word)));
  }

  /// Puts a mutation back as it was; a record of the same or a larger version stays. An erase of a
  /// key that is not there leaves a grave until `grave_end`, so that an older put that comes later
  /// stays away. What was flushed is passed over.
  [[nodiscard]] ErrorCode restore(const Mutation& mutation, Timestamp now, Timestamp grave_end);

  /// Brings what restore() will look at into the cache; at most group_max mutations.
  void prefetch_keys(std::span<const Mutation> group) noexcept;

  [[nodiscard]] std::uint64_t all_shards() const noexcept {
    return shard_count_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << shard_count_) - 1;
  }
  /// Stops all operations on the shards in `mask`, and starts them again.
  /// False: an impatient thread would have to wait for a section that takes long; nothing is held.
  [[nodiscard]] bool begin_section(std::uint64_t mask);
  void end_section(std::uint64_t mask);
  /// Of a section that holds `mask`: sends away who is impatient.
  void prolong_section(std::uint64_t mask) noexcept;
  /// Under a section over everything: no version handed out before is used again later.
  [[nodiscard]] Version fence_versions() noexcept;
  /// Versions handed out from now on are larger.
  void raise_versions(Version above) noexcept;
  /// One of no thread's block, larger than all that were handed out before: of what lies beside the
  /// table.
  [[nodiscard]] Version take_version() noexcept {
    return versions_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as for blocks
  }
  [[nodiscard]] Version next_version() const noexcept {
    return versions_.load(std::memory_order_relaxed);  // mo: relaxed: a lower bound
  }

  /// The mutation that says what `entry` is. Its bytes point into the entry.
  static void fill_mutation(Mutation& mutation, const Entry& entry) noexcept;
  /// Ends `seen` in `word` outside of any decision (a restored flush). Under a section only, and
  /// not inside an operation: one of our own would keep the memory of all of them.
  void erase_exclusive(ShardTable::Word& word, SlotWord seen);

  // --- beyond the table (cold.cpp, spill.cpp) ----------------------------------------------
  [[nodiscard]] ColdStore* cold() const noexcept { return options_.cold; }
  [[nodiscard]] std::uint64_t rank_of(std::uint8_t stored, Bytes key) const noexcept;
  /// When nothing in the cold store can hold this key any more; Timestamp{}: nothing does. Inside
  /// an operation.
  [[nodiscard]] Timestamp cold_end(std::uint8_t stored, Bytes key) const noexcept;
  /// Records, table, wheel and what is charged: what a spill could make less, free lists apart.
  [[nodiscard]] std::uint64_t held_bytes() noexcept;

  // --- memory that comes back (compactor.cpp, room.cpp) -------------------------------------
  /// Puts a copy of the record elsewhere in its place. False: it stays where it is. Inside an
  /// operation that was admitted, and not while a snapshot runs.
  [[nodiscard]] bool move_record(ThreadContext& context, ShardTable::Word& word, SlotWord seen);
  void renew_timer(ThreadContext& context, const Entry& record);
  /// After a refusal for want of memory, outside of the operation: ends what is due, takes back
  /// what threads keep, moves records, each time the next of these. False: there is nothing more to
  /// try. Progress: bounded; waits for nobody.
  [[nodiscard]] bool make_room(ThreadContext& context, Room& tried);
  /// Region::try_charge(), but looks for room before it says no. Not inside an operation.
  [[nodiscard]] bool try_charge(std::size_t bytes);
  /// Moves everything together that can be. Returns the bytes that came free.
  std::size_t compact();
  /// A larger part of a pass that advance() has begun, for a thread that has the time.
  void go_on_compacting();

  // --- time -------------------------------------------------------------------------------
  /// `wait_for_turn`: if another thread is advancing, wait for it instead of returning.
  std::size_t advance(Timestamp now, std::size_t budget, bool wait_for_turn);
  /// Moves this thread's timers into the wheel if nobody else is using it.
  void drain_own_timers(ThreadContext& context);

  // --- numbered databases -----------------------------------------------------------------
  [[nodiscard]] std::uint8_t stored_db(std::uint8_t db) const noexcept {
    // mo: relaxed: changes only inside a section over everything; [core.section] orders it.
    return static_cast<std::uint8_t>((db_map_.load(std::memory_order_relaxed) >> (db * 4)) & 15);
  }
  [[nodiscard]] std::uint8_t shown_db(std::uint8_t stored) const noexcept;
  void set_db_map(std::uint64_t map) noexcept {
    db_map_.store(map, std::memory_order_relaxed);  // mo: relaxed: as in stored_db
  }
  [[nodiscard]] std::uint64_t db_map() const noexcept {
    return db_map_.load(std::memory_order_relaxed);  // mo: relaxed: as in stored_db
  }

  // --- flushed databases (flush.cpp) --------------------------------------------------------
  // A flush is a floor: records of the database with a smaller version have ended, for everybody
  // and at once. They are taken out behind it, beside operations.
  /// Whether a flush has ended the record.
  [[nodiscard]] bool is_flushed(const Entry& record) const noexcept {
    return record.version() < flushed_below(record.db());
  }
  /// What flushed_below() is for each database, as stored.
  using Floors = std::array<Version, limits::db_count>;
  [[nodiscard]] Floors floors() const noexcept;
  [[nodiscard]] Version flushed_below(std::uint8_t stored) const noexcept {
    // mo: relaxed: changes only inside a section over everything; [core.section] orders it.
    return floors_[stored].load(std::memory_order_relaxed);
  }
  void raise_floor(std::uint8_t stored, Version below) noexcept;
  /// Under a section over everything: ends all records of a database, whose versions are all below
  /// `below`. Returns how many there were, those that had ended by their ttl and are still there
  /// with them.
  std::uint64_t flush_database(std::uint8_t stored, Version below) noexcept;
  /// Takes out what was flushed, unless a snapshot or somebody's section is in the way: then
  /// advance() does. Progress: waits for a step of another thread that is at it.
  void sweep_flushed();
  /// Takes one of them out. False: it has changed, is frozen, or the heap has no room to remember
  /// it. Inside an operation that was admitted.
  [[nodiscard]] bool sweep_flushed(ThreadContext& context, ShardTable::Word& word, SlotWord seen);
  void help_growth(Shard& shard, HashBits hash, Handle stuck);
  /// Neither its ttl nor a flush has ended it.
  [[nodiscard]] bool lives(const Entry& record, Timestamp now) const noexcept {
    return record.lives_at(now) && !is_flushed(record);
  }

  // --- insight ----------------------------------------------------------------------------
  [[nodiscard]] Stats stats();
  [[nodiscard]] std::uint64_t records_in(std::uint8_t stored_db);
  void check_invariants(std::vector<std::string>& broken);

  /// Told about each record that ended by its ttl. Changed only inside a section over everything.
  std::vector<std::pair<std::uint64_t, ExpiredSink>> expired_sinks;

  // --- snapshot (snapshot.cpp) --------------------------------------------------------------
  /// Versions below belong to the running snapshot; 0: none runs.
  std::atomic<Version> snapshot_cut{0};
  std::mutex preserved_mutex;
  std::vector<Handle> preserved;  // replaced records of the cut, under preserved_mutex
  bool preserved_lost = false;    // there are more, under preserved_mutex

  // SegmentSink
  void reuse_segment(void* segment) noexcept override;

 private:
  // Of Shard::section.
  static constexpr std::uint32_t section_free = 0;
  static constexpr std::uint32_t section_held_now = 1;
  static constexpr std::uint32_t section_held_long = 2;
  static constexpr std::uint32_t section_watched = 3;  // free
  static constexpr std::uint32_t recent_sections_many = 4;
  [[nodiscard]] static constexpr bool is_held(std::uint32_t section) noexcept {
    return section == section_held_now || section == section_held_long;
  }
  /// Leaves shards alone in which sections have become rare.
  void unwatch_shards() noexcept;
  static constexpr std::size_t drain_budget = 256;  // timers that a drain may look at again
  static constexpr Version version_block = 64;
  static constexpr Millis grave_ttl{1'000};      // of a grave left by an erase
  static constexpr unsigned grave_distance = 4;  // random keys rarely lie so far from home
  /// What a claim's encoding adds to its result.
  static constexpr std::size_t value_overhead_max = claim_overhead_max;

  /// The version a change would get now: larger than `floor` and than any this thread used.
  [[nodiscard]] Version candidate(ThreadContext& context, Version floor) noexcept {
    if (context.version_next > floor && context.version_next < context.version_end) [[likely]] {
      return context.version_next;
    }
    // mo: relaxed: blocks are disjoint and grow; a floor always comes from a
    //     block taken before.
    context.version_next = versions_.fetch_add(version_block, std::memory_order_relaxed);
    context.version_end = context.version_next + version_block;
    return context.version_next;
  }

  /// A grave is a record that is dead from the start: only its key and version are meant. One is
  /// left by an erase that restore() met out of order, and where a key that comes and goes (a lock)
  /// has filled its first lines with tombstones: the next record of that key takes the
  /// grave's slot, and the tombstones stop there.
  /// Its value is the time at which the wheel removes it. Null: no memory.
  [[nodiscard]] const Entry* make_grave(ThreadContext& context, std::uint8_t db, Bytes key,
                                        Version version, Timestamp end,
                                        Region::Use use = Region::Use::record);
  /// A record nobody can see yet. Null: no memory.
  [[nodiscard]] const Entry* make_entry(ThreadContext& context, const Entry::Header& header,
                                        Bytes key, Bytes value, Region::Use use);
  [[nodiscard]] static bool is_grave(const Entry& entry) noexcept {
    return entry.due() == Timestamp{};
  }
  /// When the wheel should look at a record: at its end, or when a part of it ends before.
  [[nodiscard]] static Timestamp wake_of(const Entry& entry) noexcept;
  /// After a lost compare-and-set: helps a replacement of the segment along.
  void after_lost_race(ThreadContext& context, Shard& shard, HashBits hash, const Probe& probe);
  /// What follows a change that is visible now. `old` and `fresh` may be null, not both.
  void committed(ThreadContext& context, HashBits hash, const Entry* old, bool old_was_live,
                 const Entry* fresh, Timestamp wake) noexcept;
  void tell_expired(ThreadContext& context, const Entry& old) noexcept;
  /// Whether the running snapshot needs it, and frees it when it has ended.
  [[nodiscard]] bool is_preserved(const Entry& old) noexcept;
  static void wait_for_append(const Entry& seen) noexcept;
  void expire_batch(ThreadContext& context, std::span<const std::uint64_t> batch, Timestamp now);
  /// A timer that came while a section held the shard for long comes again. Inside an operation.
  void put_off(ThreadContext& context, HashBits hash, Timestamp now);
  /// Takes an ended record, or grave, out. False: it has changed or is frozen.
  [[nodiscard]] bool sweep(ThreadContext& context, HashBits hash, ShardTable::Word& word,
                           SlotWord seen, Timestamp now);
  void trim_record(std::uint8_t stored_db, Bytes key, Timestamp now);
  /// Records that the timer may be of, counted up to `at_most`.
  [[nodiscard]] unsigned timers_alive(std::uint64_t hash_bits, Timestamp wake, unsigned at_most);
  void drain(ThreadContext& context);
  void step_wheel_compaction(std::size_t budget);
  /// Takes out some of what was flushed. False: there was none, or something is in the way.
  [[nodiscard]] bool sweep_some_flushed(ThreadContext& context);
  /// Whether room was looked for in vain and nothing has ended since.
  [[nodiscard]] bool is_futile() noexcept;
  /// Used and not held: in spans of which a part lives, in caches, in retire lists.
  [[nodiscard]] std::size_t idle_bytes() noexcept;
  /// Gives back what lies idle, and moves records where that is worth it. Under wheel_mutex_.
  void step_compaction(ThreadContext& context, std::size_t budget);
  [[nodiscard]] bool accepts_writes(const MutationSink* sink) const noexcept {
    return sink != nullptr ? sink->accepts() : options_.journal->accepts_writes();
  }
  [[nodiscard]] ErrorCode refuse(ThreadContext& context) noexcept {
    context.bump(Count::refused);
    return ErrorCode::memory_full;
  }

  /// What a decision was made about.
  struct Change {
    Bytes key;
    Timestamp now;
    const Entry* old;  ///< null: none; `live`: and it has not ended
    bool live;
    Version floor;  ///< of the version of what comes next
    MutationSink* sink;
    const ColdRecord* cold = nullptr;  ///< the newest copy beyond the table, if that has nothing
  };
  void tell(ThreadContext& context, const Change& change, const Entry* fresh, bool erases,
            Version version) noexcept;
  [[nodiscard]] Status attach_cold();
  /// Brings the limit up to date with what the cold store holds and the next spill will need.
  void charge_cold() noexcept;
  [[nodiscard]] unsigned shard_bits() const noexcept;
  /// Of a key for which the table has nothing. Reads the disk only if the filters say so.
  [[nodiscard]] ColdAnswer ask_cold(Operation& operation, Place& place, KeyRef key, ColdLook& look,
                                    bool in_section);
  void take_cold(const ColdLook::Copy& copy, Change& change) const noexcept;
  /// What an erase leaves behind, null: a tombstone is enough. False: no memory.
  [[nodiscard]] bool make_remains(ThreadContext& context, const Place& place, const Probe& probe,
                                  const Change& change, Version version, const Entry*& remains);
  friend class Spill;
  friend class Spiller;
  [[nodiscard]] bool wait_for_place(Operation& operation, Place& place, KeyRef key) noexcept;
  /// Sleeps until the section of a shard changes its state, if one holds it. False: it takes long,
  /// and `impatient` says not to sleep then.
  [[nodiscard]] static bool wait_for_section(Shard& shard, bool impatient) noexcept;
  /// Stores or erases at the place that `probe` found. None: something changed there meanwhile, so
  /// look and decide again.
  [[nodiscard]] std::optional<ErrorCode> carry_out(ThreadContext& context, const Place& place,
                                                   const Probe& probe, const Change& change,
                                                   const Decision& decision, Version& version);
  const Options options_;
  CallbackWatch callbacks_{options_.on_callback_exception};
  const Clock& clock_;
  Region region_;
  const bool reserved_;
  Arena arena_;
  std::uint32_t shard_mask_ = 0;
  Shard* shards_ = nullptr;  // one block: an index away, without a pointer between
  std::size_t shard_count_ = 0;
  ShardTable::Word* directories_ = nullptr;
  std::size_t cold_charged_ = 0;  // of start(), then of the spiller
  std::atomic<std::uint64_t> db_map_{0xfedc'ba98'7654'3210};
  std::array<std::atomic<Version>, limits::db_count> floors_{};
  alignas(64) unsigned char secret_[192];
  alignas(64) std::atomic<Version> versions_;
  alignas(64) std::mutex wheel_mutex_;
  std::unique_ptr<TtlWheel> wheel_;  // under wheel_mutex_
  bool compacting_ = false;          // under wheel_mutex_
  std::uint64_t advances_ = 0;       // under wheel_mutex_
  std::size_t compact_above_ = 0;    // under wheel_mutex_
  unsigned compact_pause_ = 0;       // under wheel_mutex_: calls until a pass is tried again
  Compactor compactor_{*this};
  // futile_bytes_: relaxed; what lay idle when making room was last in vain. Who reads an old value
  // tries once too often, or once too late.
  std::atomic<std::uint64_t> futile_bytes_{0};
  std::atomic<std::uint32_t> futile_skipped_{0};
  std::atomic<std::uint64_t> wheel_size_{0};
  std::atomic<std::uint64_t> wheel_bytes_{0};
  std::atomic<std::int64_t> wheel_time_{0};
  // Last: its contexts hold memory of the arena.
  Threads threads_;
};

}  // namespace semel::engine

#include "engine/core/core_update.hpp"
