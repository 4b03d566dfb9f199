// Proposals and reads of other threads, until the loop takes them; and how many bytes of proposals
// wait anywhere in this node.
//
// Concurrency
//   [calls.posting]  release by a thread that has woken the loop, acquire by the thread that stops
//     the replica: its last use of the replica.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "replication/proposals/proposal.hpp"

namespace semel::replication {

/// Thread-safe. Functions with "loop" in their comments are for the loop's thread alone.
class CallQueue {
 public:
  enum class Pushed : std::uint8_t {
    queued,
    wakes,   ///< queued; the caller must wake the loop and then call end_wake()
    full,    ///< not queued: `bytes_max` of proposals wait
    closed,  ///< not queued
  };
  struct Calls {
    std::vector<Proposal> proposals{};
    std::vector<Reader> reads{};
  };
  /// Bytes of proposals that begin and end to wait elsewhere than here.
  struct Change {
    std::size_t added = 0;
    std::size_t freed = 0;
  };

  /// Closed until open().
  explicit CallQueue(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  void open();
  /// Takes no memory.
  void close() noexcept;
  /// Moves from `call` if it is queued.
  [[nodiscard]] Pushed push(Proposal& call);
  [[nodiscard]] Pushed push(Reader& call);
  /// Runs `what` before a close() that comes later. False: it is closed, and nothing was run.
  template <class What>
  [[nodiscard]] bool run_if_open(What&& what) {
    const base::MutexLock lock{mutex_};
    if (is_closed_) return false;
    what();
    return true;
  }

  /// True: the caller must wake the loop and then call end_wake().
  [[nodiscard]] bool begin_wake();
  /// `is_woken` false: the loop could not be woken, and the next caller has to. The last use of the
  /// replica by a thread that does not own it.
  void end_wake(bool is_woken) noexcept;
  /// Whether a thread is between begin_wake() and the end of end_wake(). After close() none begins.
  [[nodiscard]] bool is_waking() const noexcept {
    // mo: acquire [calls.posting]: what they did to the replica is before its end
    return posting_.load(std::memory_order_acquire) != 0;
  }

  /// Loop: all calls. `is_busy`: until the next take() only proposals that fill an entry wake it.
  [[nodiscard]] Calls take(Change change, bool is_busy);
  /// Loop, behind a take(): no new entry begins. Whatever was queued before has woken the loop.
  void show_busy();
  [[nodiscard]] bool shows_busy() const noexcept { return shows_busy_; }
  /// Loop. Calls that were not taken. Takes no memory.
  [[nodiscard]] Calls take_rest() noexcept;

 private:
  [[nodiscard]] bool begin_wake_locked() SEMEL_REQUIRES(mutex_);
  /// Invariant: new_bytes_ <= waiting_bytes_.
  void check_invariants() const noexcept SEMEL_REQUIRES(mutex_);

  const std::size_t bytes_max_;
  bool shows_busy_ = false;  // is_busy_, for the loop, which alone changes it
  mutable base::Mutex mutex_;
  Calls new_ SEMEL_GUARDED_BY(mutex_);
  std::size_t new_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;  // of new_.proposals
  std::size_t waiting_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;
  bool is_woken_ SEMEL_GUARDED_BY(mutex_) = false;
  bool is_busy_ SEMEL_GUARDED_BY(mutex_) = false;
  bool is_closed_ SEMEL_GUARDED_BY(mutex_) = true;
  std::atomic<unsigned> posting_{0};
};

}  // namespace semel::replication
