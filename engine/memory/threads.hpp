// The threads inside one engine: what each of them owns, when each is inside an operation, and when
// memory that one of them took out of the table may be used again.
//
// Epochs: an operation announces the global epoch; memory retired in epoch e is free once the
// global epoch has reached e + 2, which needs every announced operation to have ended in between.
// The announcement is a plain store. Its other half, "make sure you see it", is paid by the rare
// side with a membarrier system call (about 9 us), so that operations carry no fence and the
// processor may overlap the cache misses of successive operations
// (docs/decisions/0003-table-layout.md). Where membarrier is missing, or stops working, each
// announcement is followed by a full fence; on both sides, as neither an exchange nor an acquire
// load keeps a later load behind an earlier store (POWER; LDAPR on ARM).
//
// Threads come and go, the engine's contexts stay. A thread's contexts are let go by a destructor
// of a thread-specific key: it runs after those of C++'s thread_local objects, which may therefore
// call the engine; in main, objects with static storage may, as there it never runs. A call that
// comes later still binds the thread anew.
// After fork() the child's only thread is bound to nothing, and bind() refuses what the parent
// made.
//
// Concurrency
//   [threads.announce]  release store by the owner of a context, pairs with the acquire loads of
//                       try_advance_epoch() and wait_for_others(): what the ended operation read
//                       and wrote happened before memory is reused or a section begins.
//   [threads.epoch]     the global epoch: compare-and-set by a thread that saw all threads pass.
//                       A stale read announces an older epoch, which only delays reuse.
//   [threads.list]      contexts are pushed once and never removed; release push, acquire walk.
//   [threads.key]       whether the key that ends threads is there; acquire by threads that use it.
//   [threads.owner]     in_use: release when a thread lets its context go, acquire by the next
//                       owner.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "engine/memory/arena.hpp"
#include "engine/memory/retire_list.hpp"
#include "engine/memory/timer_queue.hpp"
#include "engine/table/slot.hpp"
#include "semel/journal.hpp"
#include "semel/limits.hpp"
#include "semel/process.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// Counters per thread, summed on request.
enum class Count : std::uint8_t {
  operations,
  hits,
  misses,
  expired,
  refused,
  claims_granted,
  claims_duplicate,
  takeovers,
  stale_owners,
  claims_forgotten,
  sections,
  growth_steps,
  lost_races,
  changes,           // of records, by calls
  records,           // of these five the sum over all threads is meant: one thread adds,
  records_with_ttl,  // another takes away
  records_flushed,   // ended by a flush and still there; not counted in `records`
  bytes_records,
  bytes_nodes,  // of large objects, until they are freed
  ended_early,  // timed records replaced or erased before their time
  timers_logged,
  evicted,
  count_
};

class OwnSection;
struct DecisionContext;

/// What one thread owns inside one engine. Plain fields belong to the thread that holds in_use.
struct alignas(128) ThreadContext {
  explicit ThreadContext(Arena& arena) : cache(arena), timers(arena.region()) {}

  std::atomic<std::uint64_t> announce{0};  // sequence << 33 | epoch << 1 | inside
  std::uint64_t sequence = 0;              // of the operation, << 33
  Version version_next = 0;                // versions this thread may hand out: next..end - 1
  Version version_end = 0;
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Count::count_)> counts{};
  std::array<std::atomic<std::uint64_t>, limits::db_count> db_records{};

  Arena::Cache cache;
  RetireList retired;
  std::size_t retired_count = 0;  // since the epoch was last pushed
  std::size_t retired_bytes = 0;
  std::size_t large_bytes = 0;  // of nodes that wait for retired records, since the last collection
  TimerQueue timers;
  Ticket ticket = 0;                          // of what this thread's call changed; 0: nothing yet
  OwnSection* section = nullptr;              // the one that this thread's calls are a part of
  const DecisionContext* decision = nullptr;  // of the entry that this thread applies to a replica
  std::uint8_t client_size = 0;
  std::array<char, 48> client{};  // the caller's label, for the decision log
  bool no_wait = false;           // its calls do not wait for sections that take long
  bool own_state = false;         // its calls do not ask the log of the replica's group
  bool in_upkeep = false;         // it sweeps: refusals on its way are final
  bool drain_due = false;         // the queue has grown by a chunk, or large_bytes beyond its bound
  bool only_looks = false;        // its reads are no uses of keys
  std::string whole;              // a large object, for the journal, while a change is under way
  std::string record;             // that a change of an object makes, while it is under way
  // Until it has added room_bytes to room_from, this thread need not ask whether the counted bytes
  // have reached their limit; under the terms of this generation.
  std::uint64_t room_from = 0;
  std::int64_t room_bytes = 0;
  std::uint32_t room_generation = 0;
  std::uint64_t drained_ended = 0;   // of the two counts, when the queue was last emptied;
  std::uint64_t drained_logged = 0;  // guarded by the wheel's mutex

  std::atomic<bool> in_use{true};
  ThreadContext* next = nullptr;

  /// Whether calls of its thread see the replica itself and not its group: within an entry, and in
  /// the scope of an OwnState. To be asked by that thread.
  [[nodiscard]] bool sees_replica() const noexcept { return decision != nullptr || own_state; }
  /// Whether its thread is inside an operation. To be asked by that thread.
  [[nodiscard]] bool is_inside() const noexcept {
    return (announce.load(std::memory_order_relaxed) & 1) != 0;  // mo: relaxed: its own word
  }
  /// Whether its calls stand by themselves: in no section, and of no entry of a replicated log.
  [[nodiscard]] bool is_by_itself() const noexcept {
    return (reinterpret_cast<std::uintptr_t>(section) |
            reinterpret_cast<std::uintptr_t>(decision)) == 0;
  }
  /// Adds to a counter that only this thread writes.
  [[gnu::always_inline]] void bump(Count which, std::uint64_t by = 1) noexcept {
    add(counts[static_cast<std::size_t>(which)], by);
  }
  /// Of this thread alone.
  [[nodiscard]] std::uint64_t count(Count which) const noexcept {
    // mo: relaxed: its own thread writes it
    return counts[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
  }
  [[gnu::always_inline]] static void add(std::atomic<std::uint64_t>& counter,
                                         std::uint64_t by) noexcept {
    // mo: relaxed: one writer; readers want a recent figure, not an order.
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
};

/// The asymmetric barrier: what the rare side calls, so that the frequent side needs no fence.
/// Both say whether it worked; tests put others in their place.
struct Barrier {
  bool (*prepare)() noexcept;  ///< once a process
  bool (*run)() noexcept;      ///< every thread of the process has passed a full fence
  /// membarrier(2).
  [[nodiscard]] static const Barrier& of_kernel() noexcept;
};

/// Takes back segments that no thread can be reading any more.
class SegmentSink {
 public:
  virtual ~SegmentSink() = default;
  virtual void reuse_segment(void* segment) noexcept = 0;
};

/// Takes back what a record of a large object names, before the record's own memory is freed.
class LargeRecordSink {
 public:
  virtual ~LargeRecordSink() = default;
  virtual void release_large(ThreadContext& context, Handle record) noexcept = 0;
};

class Threads {
 public:
  Threads(Arena& arena, SegmentSink& segments, const Barrier& barrier = Barrier::of_kernel());
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// Once, before operations.
  void serve(LargeRecordSink& sink) noexcept { large_ = &sink; }

  /// The calling thread's context in this engine. The first call of a thread allocates one.
  /// std::bad_alloc if it cannot; in a child of this engine's process it is of no consequence.
  [[nodiscard]] ThreadContext& context() {
    if (last_binding.id == id_) [[likely]]
      return *last_binding.context;
    return *bind();
  }
  /// The same for a call that can still be refused. Null: is_forked(), or no memory.
  [[nodiscard]] ThreadContext* try_context() noexcept {
    if (last_binding.id == id_) [[likely]]
      return last_binding.context;
    return try_bind();
  }
  /// Whether this thread's last call was one of this engine; false: not known.
  [[nodiscard, gnu::always_inline]] bool is_last() const noexcept { return last_binding.id == id_; }
  /// Of a thread for which is_last().
  [[nodiscard, gnu::always_inline]] static ThreadContext& last_context() noexcept {
    return *last_binding.context;
  }
  /// Whether this is a child of the process that the engine was opened in.
  [[nodiscard]] bool is_forked() const noexcept { return !process_.is_here(); }
  /// In a child, by its only thread, before anything else.
  static void forget_bindings() noexcept;
  /// The calling thread is bound to nothing that it finds at once.
  static void forget_last() noexcept;

  /// Nothing later is read before everything earlier can be seen by others.
  static void full_fence() noexcept;

  /// Begins an operation: from here to leave() nothing the table points to is reused.
  [[gnu::always_inline]] void enter(ThreadContext& context) noexcept {
    // mo: relaxed: a stale epoch only delays reuse.
    const std::uint64_t epoch = epoch_.load(std::memory_order_relaxed) & epoch_mask;
    const std::uint64_t word = (context.sequence += sequence_step) + (epoch * 2 + 1);
    // mo: relaxed: set once; barrier_failed() waits for those who do not see it yet.
    if (asymmetric_.load(std::memory_order_relaxed)) [[likely]] {
      // mo: release [threads.announce]; the compiler must not move later loads before it, the
      //     processor may: the membarrier of the other side answers for that.
      context.announce.store(word, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // mo: compiler only [threads.announce]
    } else {
      announce(context, word);
    }
  }
  /// Inside an operation: what it has announced is in order before what it reads next, also for
  /// those who call wait_for_others() without a barrier.
  void announce_again(ThreadContext& context) noexcept {
    // mo: relaxed: one writer, ourselves.
    announce(context, context.announce.load(std::memory_order_relaxed));
  }
  [[gnu::always_inline]] void leave(ThreadContext& context) noexcept {
    // mo: release [threads.announce]
    context.announce.store(context.sequence, std::memory_order_release);
  }

  /// Gives memory back once no operation can be using it. Inside an operation only. Lost if there
  /// is no memory to remember it: see RetireList::reserve(). `handle`: of a record that names a
  /// large object with RetireList::large_bit.
  void retire_record(ThreadContext& context, Handle handle, std::size_t bytes) noexcept {
    context.retired.push({handle, now_epoch()});
    note_retired(context, 1, bytes);
  }
  /// The same of several that name no large object; `bytes`: all together.
  void retire_records(ThreadContext& context, std::span<const Handle> handles,
                      std::size_t bytes) noexcept {
    context.retired.push(handles, now_epoch());
    note_retired(context, handles.size(), bytes);
  }
  void retire_segment(ThreadContext& context, void* segment, std::size_t bytes) noexcept {
    context.retired.push(
        {RetireList::segment_bit | reinterpret_cast<std::uintptr_t>(segment), now_epoch()});
    note_retired(context, 1, bytes);
  }

  /// Frees as much of it as it can without waiting, and gives it to the pool. `by_step`: at most
  /// one epoch ends, and the thread keeps the memory.
  void collect_now(ThreadContext& context, bool by_step = false) noexcept;
  /// The same for this thread and all contexts without a thread, until nothing is left. Must not
  /// be called inside an operation.
  void collect_all(ThreadContext& context);
  /// The same, but it gives up on threads that stay inside: one may be stuck in a journal.
  void collect_some(ThreadContext& context) noexcept;

  /// Returns when every operation that other threads were inside of has ended; if `have_announced`,
  /// each of those that matter, which have called announce_again().
  /// Progress: blocks for them.
  void wait_for_others(const ThreadContext& self, bool have_announced = false) noexcept {
    static_cast<void>(wait_for_others(self, have_announced, ~std::uint64_t{0}));
  }

  /// Visits every context; the plain fields may be used only when no operation can run.
  template <class Visit>
  void for_each(Visit&& visit) {
    // mo: acquire [threads.list]
    for (ThreadContext* c = registry_->head.load(std::memory_order_acquire); c != nullptr;
         c = c->next) {
      visit(*c);
    }
  }
  /// Takes a context whose thread has ended, or null.
  [[nodiscard]] ThreadContext* adopt() noexcept;
  void release(ThreadContext& context) noexcept;

  [[nodiscard]] std::uint64_t sum(Count which) noexcept;

  /// Outlives the engine in threads that have been inside it.
  struct Registry {
    std::atomic<ThreadContext*> head{nullptr};
    base::Mutex mutex;  // orders the end of a thread and the end of the engine
    bool closed SEMEL_GUARDED_BY(mutex) = false;  // the contexts are gone
  };
  struct Binding {
    std::uint64_t id;
    ThreadContext* context;
  };

 private:
  static constexpr std::uint64_t epoch_mask = 0xffff'ffff;
  static constexpr std::uint64_t sequence_step = std::uint64_t{1} << 33;
  // Pushing the epoch costs a membarrier, which interrupts every thread of the process for 5 to
  // 10 us, so it waits for this much to be worth it.
  static constexpr std::size_t push_count = 512;
  static constexpr std::size_t push_count_upkeep = 4'096;
  static constexpr std::size_t push_bytes = 256 * 1024;
  static constexpr std::size_t free_every = 64;

  [[nodiscard]] std::uint64_t now_epoch() const noexcept {
    // mo: relaxed [threads.epoch]: read after the change that unlinked the memory; an older value
    //     would free too early, but a thread inside an operation holds the epoch at most one
    //     behind.
    return epoch_.load(std::memory_order_relaxed) + 1;
  }
  void note_retired(ThreadContext& context, std::size_t count, std::size_t bytes) noexcept {
    const std::size_t push_at = context.in_upkeep ? push_count_upkeep : push_count;
    const std::size_t before = context.retired_count;
    context.retired_bytes += bytes;
    context.retired_count += count;
    if (context.retired_count >= push_at || context.retired_bytes >= push_bytes) {
      context.retired_count = context.retired_bytes = 0;
      if (try_advance_epoch()) free_old(context);
    } else if (context.retired_count / free_every != before / free_every) {
      free_old(context);
    }
  }
  [[nodiscard]] ThreadContext* bind();
  [[nodiscard]] ThreadContext* try_bind() noexcept;
  [[nodiscard]] static bool try_adopt(ThreadContext& context) noexcept;
  /// Stores an announcement, with a full fence behind it.
  static void announce(ThreadContext& context, std::uint64_t word) noexcept;
  [[nodiscard]] bool try_advance_epoch() noexcept;
  void free_old(ThreadContext& context) noexcept;
  void collect_abandoned() noexcept;
  void heavy_barrier() noexcept;
  void light_barrier() noexcept;
  /// The system call no longer works: from now on every announcement pays for its fence.
  void barrier_failed() noexcept;
  /// False: after `looks` looks a thread was still inside.
  [[nodiscard]] bool wait_for_others(const ThreadContext& self, bool have_announced,
                                     std::uint64_t looks) noexcept;

  static constinit thread_local Binding last_binding;

  Arena& arena_;
  SegmentSink& segments_;
  LargeRecordSink* large_ = nullptr;
  const ProcessMark process_;
  const std::uint64_t id_;
  const Barrier& membarrier_;
  std::atomic<bool> asymmetric_;
  alignas(64) std::atomic<std::uint64_t> epoch_{1};
  std::atomic<std::uint32_t> barrier_{0};
  alignas(64) std::shared_ptr<Registry> registry_;
};

}  // namespace semel::engine
