// Who waits for which claim. A side table: it exists only while somebody waits, and an owner that
// finishes work nobody waits for pays one atomic load.
//
// A waiter keeps its own request. Whenever the claim may have changed, the queue asks claim() again
// on behalf of the waiter at the head: in_flight leaves everybody waiting, any other answer ends
// that waiter's wait and the next one is asked. So a completion reaches all waiters, each with
// its own fingerprint check, and a free key reaches exactly one: the next finds it in flight.
//
// Concurrency
//   [wait_queue.waiting]  a waiter counts itself (seq_cst), then reads the record; an owner changes
//                         the record (the table's seq_cst compare-and-set), then reads the
//                         count (seq_cst). One of the two sees the other. If both missed,
//                         the waiter would sleep until the lease it saw is over.
//   `next` of a shard     its earliest timer, so that poll() finds without a lock that nothing is
//                         due. A hint: a stale one is put right at the next poll().
//   everything else       under the mutex of its shard. No lock is held while claim() is asked or
//                         a callback runs.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "semel/claims.hpp"

namespace semel::engine {

/// What an attempt learned besides its outcome.
struct Seen {
  Timestamp now;
  Timestamp held_until{};      ///< in_flight: end of what is in the way
  SessionId held_session = 0;  ///< in_flight: whose lease it is
};

/// One claim that may wait, and how to ask it again.
struct WaitCall {
  using Attempt = ClaimOutcome (*)(const WaitCall&, Seen&);

  Attempt attempt = nullptr;
  Engine* engine = nullptr;
  std::shared_ptr<const Claims::Namespace> names{};
  ClaimRequest request;  ///< bytes of the caller; the queue keeps copies
  Bytes table_key;       ///< "name:key", what changed() will be told
  std::uint8_t db = 0;
  Timestamp deadline = no_end;
  bool arrives = true;  ///< it is not in a line yet
};

class WaitQueue {
 public:
  WaitQueue() = default;
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  /// Asks, and waits while the answer is in_flight. Progress: blocks.
  [[nodiscard]] ClaimOutcome wait(const WaitCall& call, const Clock& clock);
  /// The same; `done` runs once, on the thread that ends the wait, without any lock held. A
  /// callback that ends another wait has that wait's callback run after it has returned. 0: it
  /// has run; else what cancel() takes.
  WaitTicket wait(const WaitCall& call, ClaimCallback done);
  /// See Claims::cancel_wait.
  [[nodiscard]] bool cancel(std::uint8_t db, Bytes table_key, WaitTicket ticket);

  /// True if anybody waits for anything. To be asked after the change was made visible.
  [[nodiscard]] bool has_waiters() const noexcept {
    return waiting_.load(std::memory_order_seq_cst) != 0;  // mo: seq_cst [wait_queue.waiting]
  }
  /// True if anybody waits for this key. Progress: blocks while others enter or leave lines.
  [[nodiscard]] bool has_waiters_for(std::uint8_t db, Bytes table_key);
  /// The record of this key changed (or went). Not to be called inside an atomic section.
  void changed(std::uint8_t db, Bytes table_key);
  /// Claims held by `session` are free from now on.
  void session_closed(SessionId session);
  /// Any record may have changed: databases were swapped.
  void all_changed();
  /// Ends what is due by `now`: leases and deadlines. Called by Engine::advance and by waiters.
  void poll(Timestamp now);
  /// Answers everyone with error closing, and returns when no blocked waiter is inside any more.
  void close();

  [[nodiscard]] std::size_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  /// Asks again for every key, or for those whose lease `session` held.
  void settle_all(std::optional<SessionId> session);

  static constexpr std::size_t shard_count = 16;
  static constexpr std::size_t delivery_batch = 16;  ///< bounds the results copied at one time

  /// Where a blocked waiter sleeps; lives on its stack.
  struct Bed {
    std::mutex mutex;
    std::condition_variable awake;
    bool answered = false;
    ClaimOutcome outcome;
  };
  /// Earliest first; the ticket tells equal times apart.
  using TimerKey = std::pair<Timestamp, std::uint64_t>;
  struct Waiter {
    WaitCall call;
    std::string owner;   // bytes of call.request.owner
    Bed* bed = nullptr;  // of a blocked waiter, or
    ClaimCallback done;  // the callback
    WaitTicket ticket = 0;
    bool cancelled = false;  // while it is asked for: it goes if the answer is in_flight
  };
  using WaiterAt = std::list<Waiter>::iterator;
  struct Queue {
    std::string key;             // bytes of each waiter's table_key
    std::list<Waiter> waiters;   // in order of arrival
    bool busy = false;           // a thread is asking for the head, without the lock
    bool again = false;          // something changed while it did
    Seen seen;                   // what the last in_flight said
    std::string owner;           // and whose it was
    std::uint32_t attempt = 0;   // and which grant of it
    Timestamp recheck = no_end;  // the timer set for this queue
    std::uint64_t ticket = 0;
  };
  using QueueKey = std::string;  // db byte, then the table key
  using Queues = std::unordered_map<QueueKey, Queue>;
  using Entry = Queues::value_type;
  struct Target {
    Entry* entry;
    bool lease;       // the lease of the queue's owner, else
    WaiterAt waiter;  // the deadline of this waiter
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    Queues queues;
    std::map<TimerKey, Target> timers;
    std::atomic<std::int64_t> next{no_end.time_since_epoch().count()};
  };
  struct Delivery {
    Bed* bed;
    ClaimCallback done;
    ClaimOutcome outcome;
  };
  using Deliveries = std::deque<Delivery>;
  class DeliveringHere;

  [[nodiscard]] static QueueKey queue_key(std::uint8_t db, Bytes table_key);
  [[nodiscard]] static ClaimOutcome give_up(const Queue& queue, const Waiter& waiter, Timestamp now,
                                            ErrorCode why);
  [[nodiscard]] static Millis nap(const Shard& shard, Timestamp now) noexcept;
  [[nodiscard]] Shard& shard_of(const QueueKey& key) noexcept;

  [[nodiscard]] bool answered_at_once(const WaitCall& call, ClaimOutcome& outcome);
  [[nodiscard]] ErrorCode enter(const WaitCall& call, const QueueKey& key, Bed* bed,
                                ClaimCallback& done, WaitTicket& ticket);
  void settle(const QueueKey& key);
  [[nodiscard]] bool settle_some(Shard& shard, const QueueKey& key, Deliveries& out);
  void ask_heads(std::unique_lock<std::mutex>& lock, Shard& shard, Entry& entry, Deliveries& out);
  void end_wait(Shard& shard, Entry& entry, WaiterAt waiter, ClaimOutcome&& outcome,
                Deliveries& out);
  void end_deadlines(Shard& shard, Timestamp now);
  static void set_recheck(Shard& shard, Entry& entry, Timestamp when);
  static void publish_next(Shard& shard) noexcept;
  void close_queue(Shard& shard, Entry& entry, Deliveries& out);
  void deliver(Deliveries&& deliveries);

  std::array<Shard, shard_count> shards_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<WaitTicket> tickets_{1};
  std::atomic<bool> closed_{false};

  std::mutex inside_mutex_;
  std::condition_variable nobody_inside_;
  std::size_t inside_ = 0;  // blocked waiters

  std::mutex delivering_mutex_;
  std::vector<std::pair<std::thread::id, Deliveries*>> delivering_;
};

}  // namespace semel::engine
