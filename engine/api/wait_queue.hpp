// Which callers wait for which claim. A side table: it exists only while there are waiters, and an
// owner that finishes work without waiters pays one atomic load.
//
// A waiter keeps its own request. Whenever the claim may have changed, the queue asks claim() again
// on behalf of the waiter at the head: in_flight leaves all waiting, any other answer ends
// that waiter's wait and the next one is asked. So a completion reaches all waiters, each with
// its own fingerprint check, and a free key reaches exactly one: the next finds it in flight.
//
// Everything a wait needs is allocated when it is entered. From then on nothing here can fail: the
// answers of others may depend on it, and grants are made on behalf of waiters.
//
// A waiter is, under the mutex of its shard,
//   waiting -> asked    at the head, while a thread asks claim() for it without the lock
//   -> leaving          out of its line, in `leaving` until it has been notified
//   -> running          its callback runs, without the lock
// cancel() takes it out of any of these but the last, for which it waits.
//
// Of the blocked threads one, the leader, sleeps with a timeout for the nearest timer of them all;
// the others sleep until they are notified. It hands the lead over before it acts on a timer, as it
// may run others' callbacks then.
//
// Concurrency
//   [wait_queue.waiting]  a waiter counts itself (seq_cst), then reads the record; an owner changes
//                         the record (the table's seq_cst compare-and-set), then reads the
//                         count (seq_cst). One of the two sees the other. If both missed,
//                         the waiter would sleep until the lease it saw is over.
//   `next` of a shard     its earliest timer, so that poll() finds without a lock that nothing is
//                         due. A hint: a stale one is put right at the next poll().
//   everything else       under the mutex of its shard. No lock is held while claim() is asked or
//                         a callback runs. Order of locks: shard, inside_mutex_,
//                         that of a ParkedThread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/mutex.hpp"
#include "engine/core/callbacks.hpp"
#include "engine/core/own_section.hpp"
#include "engine/memory/region.hpp"
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
  /// May throw before it has changed anything.
  using Attempt = ClaimOutcome (*)(const WaitCall&, Seen&);
  /// Releases what was granted to a waiter that had left.
  using GiveBack = void (*)(const WaitCall&, const ClaimOutcome&);

  Attempt attempt = nullptr;
  GiveBack give_back = nullptr;
  Engine* engine = nullptr;
  Claims::NamespaceRef names{};
  ClaimRequest request;  ///< bytes of the caller; the queue keeps copies
  Bytes table_key;       ///< "name:key", as changed() will get it
  std::uint8_t db = 0;
  Timestamp deadline = no_end;
  bool arrives = true;  ///< it is not in a line yet
  /// `granted` is no grant yet, but leave to ask for one: the next in line is not asked before the
  /// record has changed, or a moment has passed in which it did not.
  bool asks_first = false;
};

class WaitQueue final : public ChangeListener {
 public:
  /// Waiters count towards the limit of `region`.
  WaitQueue(Region& region, CallbackWatch& callbacks) : region_(region), callbacks_(callbacks) {}
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  /// Asks, and waits while the answer is in_flight. Progress: blocks.
  [[nodiscard]] ClaimOutcome wait(const WaitCall& call, const Clock& clock);
  /// The same; `done` is taken and runs once, on the thread that ends the wait, without any lock
  /// held. A callback that ends another wait has that wait's callback run after it has returned.
  /// `ticket` is what cancel() takes, written before `done` can run. False: it need not wait, or
  /// may not; `outcome` is the answer, and `done` is left where it is.
  [[nodiscard]] bool wait(const WaitCall& call, ClaimCallback& done, WaitTicket& ticket,
                          ClaimOutcome& outcome);
  /// See Claims::cancel_wait.
  [[nodiscard]] bool cancel(std::uint8_t db, Bytes table_key, WaitTicket ticket) noexcept {
    const Name name{db, table_key};
    return cancel_in(shard_of(name), &name, ticket);
  }
  /// The same without the key: looks at all waiters.
  [[nodiscard]] bool cancel(WaitTicket ticket) noexcept;

  /// True if there are any waiters. To be called after the change was made visible.
  [[nodiscard]] bool has_waiters() const noexcept override {
    return waiting_.load(std::memory_order_seq_cst) != 0;  // mo: seq_cst [wait_queue.waiting]
  }
  /// True if this key has waiters. Progress: blocks while others enter or leave lines.
  [[nodiscard]] bool has_waiters_for(std::uint8_t db, Bytes table_key) noexcept;
  /// The record of this key changed (or went). Not to be called inside an atomic section.
  void changed(std::uint8_t db, Bytes table_key) noexcept override {
    drain_waiters({db, table_key}, nullptr);
  }
  /// The same, but the next poll() looks.
  void changed_meanwhile(std::uint8_t db, Bytes table_key) noexcept;
  /// Claims held by `session` are free from now on.
  void session_closed(SessionId session) noexcept { drain_all_waiters(session); }
  /// Any record may have changed: databases were swapped.
  void all_changed() noexcept override { drain_all_waiters(std::nullopt); }
  /// Ends what is due by `now`: leases and deadlines. Called by Engine::advance and by waiters.
  void poll(Timestamp now) noexcept;
  /// Answers everyone with error closing, and returns when no blocked waiter is inside any more.
  void close() noexcept;

  [[nodiscard]] CallbackWatch& callbacks() noexcept { return callbacks_; }
  [[nodiscard]] std::size_t waiting() const noexcept {
    return waiting_.load(std::memory_order_relaxed);  // mo: relaxed: a statistic
  }

 private:
  static constexpr std::size_t shard_count = 16;
  static constexpr std::size_t delivery_batch = 16;  ///< bounds the results copied at one time

  struct Name {
    std::uint8_t db;
    Bytes key;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct HashName {
    std::size_t operator()(const Name& name) const noexcept {
      return std::hash<Bytes>{}(name.key) ^ (std::size_t{name.db} * 0x9E37'79B9U);
    }
  };
  /// Bytes that all who use them keep alive.
  using SharedKey = std::shared_ptr<const std::string>;

  /// A blocked waiter's thread, asleep; lives on its stack.
  struct ParkedThread {
    base::Mutex mutex;
    base::Condition awake;
    bool answered SEMEL_GUARDED_BY(mutex) = false;
    bool leads SEMEL_GUARDED_BY(mutex) = false;
    bool nudged SEMEL_GUARDED_BY(mutex) = false;  // read the timers again
    ClaimOutcome outcome;
    ParkedThread* before = nullptr;  // of all that are inside, under inside_mutex_
    ParkedThread* after = nullptr;
  };
  struct Target;
  struct Shard;
  /// Earliest first; the ticket tells equal times apart.
  using TimerKey = std::pair<Timestamp, std::uint64_t>;
  using Timers = std::map<TimerKey, Target>;
  struct Waiter {
    enum class State : std::uint8_t { waiting, asked, leaving, running };
    WaitCall call;
    std::string owner;               // bytes of call.request.owner
    SharedKey key;                   // bytes of call.table_key
    ParkedThread* parked = nullptr;  // of a blocked waiter, or
    ClaimCallback done;              // the callback
    WaitTicket ticket = 0;
    State state = State::waiting;
    bool cancelled = false;    // its callback must not run
    std::thread::id runner{};  // running: where
    Shard* shard = nullptr;
    Waiter* next = nullptr;    // leaving: to be notified by the same thread
    std::size_t charged = 0;   // to the memory limit
    Timers::iterator timer{};  // if it has a deadline
    ClaimOutcome outcome;
  };
  using Waiters = std::list<Waiter>;
  using WaiterAt = Waiters::iterator;
  struct Queue {
    SharedKey key;              // bytes of its name
    Waiters waiters;            // in order of arrival
    bool busy = false;          // a thread is asking for the head, without the lock
    bool again = false;         // something changed while it did
    Seen seen;                  // what the last in_flight said
    std::string owner;          // and whose it was
    std::uint32_t attempt = 0;  // and which grant of it
    Timers::iterator timer{};   // when to look again; at no_end: not
    std::uint64_t ticket = 0;
    std::uint64_t round = 0;  // of drain_all_waiters(), the last that met it
    std::size_t charged = 0;  // to the memory limit
  };
  using Queues = std::unordered_map<Name, Queue, HashName>;
  using Entry = Queues::value_type;
  struct Target {
    Entry* entry;
    bool lease;       // the lease of the queue's owner, else
    WaiterAt waiter;  // the deadline of this waiter
  };
  struct alignas(64) Shard {
    base::Mutex mutex;
    Queues queues SEMEL_GUARDED_BY(mutex);
    Waiters leaving SEMEL_GUARDED_BY(mutex);
    std::size_t cancellers SEMEL_GUARDED_BY(mutex) = 0;  // that wait for a callback to end
    base::Condition callback_ended;
    Timers timers SEMEL_GUARDED_BY(mutex);
    std::atomic<std::int64_t> next{no_end.time_since_epoch().count()};
  };
  /// The waiters to notify, in order. They lie in `leaving`.
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
  struct Entrance;  // what a wait needs to be entered
  class DeliveringHere;
  class Inside;

  [[nodiscard]] static ClaimOutcome give_up(const Queue& queue, const Waiter& waiter, Timestamp now,
                                            ErrorCode why) noexcept;
  [[nodiscard]] Shard& shard_of(const Name& name) noexcept {
    return shards_[HashName{}(name) / 64 % shard_count];
  }

  [[nodiscard]] static bool answered_at_once(const WaitCall& call, ClaimOutcome& outcome);
  /// Null: not entered, `why` says why.
  [[nodiscard]] SharedKey enter(const WaitCall& call, ParkedThread* parked, ClaimCallback& done,
                                WaitTicket& ticket, ErrorCode& why);
  [[nodiscard]] Entry& line_of(Shard& shard, Entrance& entrance) SEMEL_REQUIRES(shard.mutex);
  /// Asks for the waiters of `name`, from the head on, and notifies those whose wait has ended.
  /// `key`: the bytes of the name, if a callback may end whatever they lie in now.
  void drain_waiters(Name name, SharedKey key) noexcept;
  void drain_all_waiters(std::optional<SessionId> session) noexcept;
  [[nodiscard]] bool drain_batch(Shard& shard, const Name& name, SharedKey& key,
                                 Deliveries& out) noexcept;
  /// Unlocks the shard while it asks, and has locked it again when it returns.
  void ask_heads(Shard& shard, Entry& entry, Deliveries& out) noexcept SEMEL_REQUIRES(shard.mutex);
  [[nodiscard]] bool ask(const WaitCall& call, Seen& seen, ClaimOutcome& outcome) noexcept;
  /// Takes the waiter out of its line and puts it into `out`; take_out() only takes it out.
  void end_wait(Shard& shard, Entry& entry, WaiterAt waiter, ClaimOutcome&& outcome,
                Deliveries& out) noexcept SEMEL_REQUIRES(shard.mutex);
  void take_out(Shard& shard, Entry& entry, WaiterAt waiter, Waiters& to) noexcept
      SEMEL_REQUIRES(shard.mutex);
  void end_deadlines(Shard& shard, Timestamp now) noexcept;
  void erase_queue(Shard& shard, Entry& entry) noexcept SEMEL_REQUIRES(shard.mutex);
  static void set_recheck(Shard& shard, Entry& entry, Timestamp when) noexcept
      SEMEL_REQUIRES(shard.mutex);
  void publish_next(Shard& shard) noexcept SEMEL_REQUIRES(shard.mutex);
  void close_queue(Shard& shard, Entry& entry, Deliveries& out) noexcept
      SEMEL_REQUIRES(shard.mutex);
  void deliver(Deliveries deliveries) noexcept;
  void run_callback(Waiter& waiter) noexcept;
  [[nodiscard]] bool cancel_in(Shard& shard, const Name* name, WaitTicket ticket) noexcept;
  [[nodiscard]] static std::pair<Entry*, WaiterAt> find(Shard& shard, const Name* name,
                                                        WaitTicket ticket) noexcept
      SEMEL_REQUIRES(shard.mutex);
  void wake_blocked(Deliveries& deliveries) noexcept;
  void let_go(Waiters& ended) noexcept;

  void sleep(ParkedThread& parked, const Clock& clock) noexcept;
  [[nodiscard]] Millis poll_interval(Timestamp now) const noexcept;
  [[nodiscard]] bool is_due(Timestamp now) const noexcept;
  void elect(ParkedThread* not_this) noexcept SEMEL_REQUIRES(inside_mutex_);
  void nudge_leader() noexcept;

  Region& region_;
  CallbackWatch& callbacks_;
  std::array<Shard, shard_count> shards_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<WaitTicket> tickets_{1};
  std::atomic<std::uint64_t> rounds_{0};
  std::atomic<bool> closed_{false};

  base::Mutex inside_mutex_;
  base::Condition nobody_inside_;
  ParkedThread* inside_ SEMEL_GUARDED_BY(inside_mutex_) = nullptr;  // blocked waiters
  ParkedThread* leader_ SEMEL_GUARDED_BY(inside_mutex_) = nullptr;  // of them
  // When the leader will look at the timers; the earliest time there is: there is no leader.
  std::atomic<std::int64_t> leader_wakes_{Timestamp::min().time_since_epoch().count()};
};

}  // namespace semel::engine
