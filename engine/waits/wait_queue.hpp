// Calls that wait. A waiter keeps its attempt. Whenever one of its keys may have changed, the
// queue tries again for the waiters of that key, in order of arrival, on the thread that made the
// change and right after it.
//
// cancel() takes a waiter out of any of its states but the last, for which it waits.
//
// Concurrency: one mutex, held for a few steps and never while an attempt is tried or a receiver
// runs. A change of a key for which nothing waits does not take it, see WaitMarks.
// Order of locks: mutex_, then those of ParkedThreads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "engine/core/callbacks.hpp"
#include "engine/keys/own_section.hpp"
#include "engine/waits/attempt.hpp"
#include "engine/waits/held_changes.hpp"
#include "engine/waits/parked_threads.hpp"
#include "engine/waits/wait_lines.hpp"
#include "engine/waits/wait_marks.hpp"

namespace semel::engine {

class WaitQueue final : public ChangeListener {
  /// Where the changes of a thread go, and of which queue.
  struct Held {
    const WaitQueue* queue = nullptr;
    HeldChanges* changes = nullptr;
  };

 public:
  /// Waiters count towards the limit of `region`.
  WaitQueue(Region& region, CallbackWatch& callbacks)
      : callbacks_(callbacks), lines_(region, marks_) {}
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  /// Waits for a change of one of `keys` that answers `attempt`, until `deadline`. The attempt has
  /// been tried before, and is tried again at once: a change in between is not missed. ok: it has
  /// its answer. Errors: waiters_full, memory_full, closing: it did not wait. Progress: blocks.
  [[nodiscard]] ErrorCode wait(Attempt& attempt, std::span<const KeyRef> keys, Timestamp deadline,
                               const Clock& clock);
  /// The same; `receiver` takes the answer once, on the thread that ends the wait, without any lock
  /// held. A receiver that ends another wait has that one's run after it has returned. `ticket` is
  /// what cancel() takes, written before the receiver can run. Not ok: both are left where they
  /// are. `arrival`: the ticket of an earlier wait, whose place in the lines this one takes.
  [[nodiscard]] ErrorCode wait(std::unique_ptr<Attempt>& attempt,
                               std::unique_ptr<Receiver>& receiver, std::span<const KeyRef> keys,
                               Timestamp deadline, WaitTicket& ticket, WaitTicket arrival = 0);
  /// See Claims::cancel_wait. `key`: one of the wait's, or it is not found; null: whatever it
  /// waits for.
  [[nodiscard]] bool cancel(WaitTicket ticket, const KeyRef* key = nullptr) noexcept;

  /// True if there are any waiters. To be called after the change was made visible.
  [[nodiscard]] bool has_waiters() const noexcept override { return marks_.any(); }
  /// True if this key has waiters. Progress: blocks while others enter or leave lines.
  [[nodiscard]] bool has_waiters_for(std::uint8_t db, Bytes key) noexcept;
  /// While it lives, the changes of this thread are not tried for; then they are, in their order.
  /// Of those within another one, the outermost counts. Cheap if nothing waits.
  class Hold {
   public:
    explicit Hold(WaitQueue& queue) noexcept;
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class WaitQueue;
    static void drain(WaitQueue& queue, HeldChanges& changes) noexcept;

    WaitQueue* queue_ = nullptr;  // null: within another one
    Held outer_;                  // of another queue
    HeldChanges changes_;
  };

  /// The record of this key changed (or went). Not to be called inside an atomic section.
  void changed(std::uint8_t db, Bytes key) noexcept override;
  /// The same, but the next poll() looks.
  void changed_meanwhile(std::uint8_t db, Bytes key) noexcept;
  /// What `session` holds is free from now on.
  void session_closed(SessionId session) noexcept;
  /// Any record may have changed: databases were swapped.
  void all_changed() noexcept override;
  /// Tries again where a lease is over by `now`, then ends the waits whose deadline is. Called by
  /// Engine::advance and by waiters.
  void poll(Timestamp now) noexcept;
  /// Answers everyone with error closing, and returns when no blocked waiter is inside any more.
  void close() noexcept;

  [[nodiscard]] std::size_t waiting() const noexcept { return marks_.waiting(); }
  /// Asserts the invariants of its lines. O(waiters).
  void check_invariants() noexcept;

 private:
  static constexpr std::size_t delivery_batch = 16;  ///< bounds the results copied at one time

  /// The waiters to notify, in order. They are leaving.
  class Deliveries {
   public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    void push(Waiter& waiter) noexcept;
    [[nodiscard]] Waiter& pop() noexcept;
    void append(Deliveries& more) noexcept;

   private:
    Waiter* first_ = nullptr;
    Waiter* last_ = nullptr;
    std::size_t count_ = 0;
  };
  class DeliveringHere;
  class HeldBy;

  /// One pass along a line.
  struct Pass {
    Deliveries& out;
    HeldChanges& made;  ///< by the tries
    Timestamp recheck = no_end;
    std::uint32_t stopped = 0;  ///< kinds that are not tried any more, a bit for each
  };

  /// Enters it with `attempt`, and tries.
  template <class Entered>
  [[nodiscard]] ErrorCode enter(WaitLines::Entrance& entrance, const Entered& entered);
  /// Tries for the waiters of `name` and notifies those whose wait has ended. `key`: the bytes of
  /// the name, if a receiver may end whatever they lie in now. The changes of the tries go to
  /// `made`, for which the caller tries next: a chain of waiters that each serve the next takes no
  /// stack.
  void drain_line(LineName name, SharedKey key, HeldChanges& made) noexcept;
  [[nodiscard]] bool drain_batch(LineName& name, SharedKey& key, Deliveries& out,
                                 HeldChanges& made) noexcept;
  void ask_line(WaitLine& line, Deliveries& out, HeldChanges& made) noexcept SEMEL_REQUIRES(mutex_);
  [[nodiscard]] WaitPlace* ask(WaitLine& line, WaitPlace& place, Pass& pass) noexcept
      SEMEL_REQUIRES(mutex_);
  void end_wait(Waiter& waiter, Deliveries& out) noexcept SEMEL_REQUIRES(mutex_);
  void give_up(Waiter& waiter, ErrorCode why, Timestamp now, Deliveries& out) noexcept
      SEMEL_REQUIRES(mutex_);
  void drain_due(Timestamp now) noexcept;
  void deliver(Deliveries deliveries) noexcept;
  void wake_blocked(Deliveries& deliveries) noexcept;
  void run_receiver(Waiter& waiter) noexcept;

  static constinit thread_local Held held_;

  CallbackWatch& callbacks_;
  WaitMarks marks_;
  ParkedThreads threads_;
  base::Mutex mutex_;
  base::Condition receiver_ended_;
  WaitLines lines_ SEMEL_GUARDED_BY(mutex_);
  std::size_t cancellers_ SEMEL_GUARDED_BY(mutex_) = 0;  // that wait for a receiver to end
  bool closed_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::engine
