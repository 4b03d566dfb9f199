// Moves records together, so that memory of one size can serve another, and takes out flushed
// records.
//
// Goals      after most records of a size have ended, all but a few of its spans go back; work in
//            steps, beside operations; invisible to callers: version, time to live and timers
//            stay, and nothing is journalled.
// Non-goals  records that take spans of their own; moving what a section of others holds.
//
// A pass chooses spans to leave (Arena::choose_leaving), walks over the table, and copies each
// record that lies in one of them. A record is found by the handle in its slot, and by nothing
// else: the copy is complete before one compare-and-set puts its handle in the slot of the old
// one. If that loses, the record was replaced, ended, or its segment is frozen, and the copy is
// dropped. An operation that has read the old handle still reads the old copy, which is retired
// like any record that was replaced, and its own compare-and-set fails: it looks again. As the old
// handle is not used again before that operation has ended, it cannot take another record for the
// one it saw.
//
// Not moved: a record that the journal has not got yet, for the thread that published it will write
// to that copy (Entry::set_journalled); and nothing while a snapshot runs, which keeps all that was
// there when it began.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/mutex.hpp"
#include "engine/core/core.hpp"

namespace semel::engine {

class Compactor {
 public:
  explicit Compactor(Core& core) noexcept : core_(core) {}

  struct Effort {
    std::size_t slots;    ///< of the table to look at, about; a move counts as some
    unsigned sixteenths;  ///< leave spans of which less lives: 1..16
  };
  /// A part of a pass; begins one if none is under way and there is something to gain. Returns
  /// whether it did anything. Not inside an operation. Thread-safe: one works, others return.
  /// Progress: does not wait.
  bool step(ThreadContext& own, Effort effort);

  /// Records have been flushed: the next pass takes them out, and begins at once.
  void sweep_flushed_soon() noexcept {
    sweep_due_.store(true, std::memory_order_relaxed);  // mo: relaxed: the next pass sees it
  }
  /// Whether flushed records may still be there.
  [[nodiscard]] bool sweeps_flushed() const noexcept {
    // mo: relaxed: hints
    return sweep_due_.load(std::memory_order_relaxed) || sweeping_.load(std::memory_order_relaxed);
  }
  /// A whole pass of that kind, in steps, unless a snapshot or another thread's section is in the
  /// way. Not inside an operation. Progress: waits for a step of another thread.
  void sweep_flushed(ThreadContext& own);

  /// Timers were dropped for want of memory: the next pass renews those of all records it meets.
  void renew_timers() noexcept {
    renewal_due_.store(true, std::memory_order_relaxed);  // mo: relaxed: the next pass sees it
  }
  [[nodiscard]] bool renewal_due() const noexcept {
    return renewal_due_.load(std::memory_order_relaxed);  // mo: relaxed: a hint
  }
  [[nodiscard]] bool is_running() const noexcept {
    return running_.load(std::memory_order_relaxed);  // mo: relaxed: a hint
  }
  /// Records moved so far.
  [[nodiscard]] std::uint64_t moved() const noexcept {
    return moved_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  static constexpr std::size_t slots_at_once = 512;  // of one operation: sections wait for it
  static constexpr std::size_t slots_per_move = 16;  // what a move costs
  static constexpr std::size_t slots_per_sweep = 4;

  [[nodiscard]] bool begin(ThreadContext& own, unsigned sixteenths) SEMEL_REQUIRES(mutex_);
  /// Goes on with a pass or begins one; false: nothing is to be done.
  [[nodiscard]] bool runs_or_begins(ThreadContext& own, unsigned sixteenths) SEMEL_REQUIRES(mutex_);
  /// As much of the pass as `slots` slots cost; ends it at its end.
  void go_on(ThreadContext& own, std::size_t slots) SEMEL_REQUIRES(mutex_);
  /// What it cost; walk_blocked: it cannot go on now.
  [[nodiscard]] std::size_t walk(ThreadContext& own) SEMEL_REQUIRES(mutex_);
  void end(ThreadContext& own) SEMEL_REQUIRES(mutex_);
  /// Replaces the record by a copy elsewhere. False: it stays where it is. Inside an operation that
  /// was admitted, and not while a snapshot runs.
  [[nodiscard]] bool move_record(ThreadContext& context, ShardTable::Word& word, SlotWord seen);
  void renew_timer(ThreadContext& context, const Entry& record);
  /// Takes a flushed record out. False: it has changed, is frozen, or the heap has no room to
  /// remember it. Inside an operation that was admitted.
  [[nodiscard]] bool sweep_record(ThreadContext& context, ShardTable::Word& word, SlotWord seen);
  void note_flushed(ThreadContext& context, const Entry& old) noexcept;
  void next_segment(std::uint32_t depth) noexcept SEMEL_REQUIRES(mutex_);

  Core& core_;
  base::Mutex mutex_;
  // Where the walk is. The directory index has its bits reversed, as in scan.cpp.
  std::uint32_t shard_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint32_t reversed_index_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint32_t slot_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t birth_ SEMEL_GUARDED_BY(mutex_) = 0;  // of the segment
  bool renewing_ SEMEL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> sweeping_{false};  // flushed records; written under mutex_
  std::atomic<bool> sweep_due_{false};
  std::atomic<bool> running_{false};  // written under mutex_
  std::atomic<bool> renewal_due_{false};
  std::atomic<std::uint64_t> moved_{0};
};

}  // namespace semel::engine
