// A lock with a lease. A silent owner loses the lock, and the fencing token lets the systems that
// it writes to refuse its late writes.
//
//   auto locks = engine->claims("locks", policies::fair_lock).value();
//   Lock lock{locks, "invoice-run"};
//   if (lock.try_lock_for(Millis{5'000})) {
//     file.write(lock.fencing_token(), ..);    // the file refuses a token below its largest
//   }                                          // given back here
//
// The token grows with each holder, and makes the lock safe: a holder that was paused for longer
// than its lease does not notice, so only the system that it writes to can refuse it.
// Source: docs/patterns.md#lock
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/function.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel {

/// The category of Lock's exceptions; a value is an ErrorCode.
[[nodiscard]] const std::error_category& error_category() noexcept;

struct LockOptions {
  std::optional<Duration> lease{};     ///< none: the policy's
  Bytes owner{};                       ///< label for people, copied
  std::optional<SessionId> session{};  ///< none: the engine's own; the lock ends with it
  Watchdog* watchdog = nullptr;  ///< renews the lease; must outlive the lock. A lease that is too
                                 ///< short for it (Watchdog::can_keep) is refused
  /// The holder moves between threads, like a coroutine or a handle of C: unlock(), renew(),
  /// is_held() and fencing_token() concern the hold on any thread.
  bool moves = false;
};

/// One owner of a lock. The thread that acquires the lock holds it; it may lock again while it
/// holds it, and then unlocks as often. Each thread should have its own Lock. A thread that uses
/// the Lock of another is safe: while the other holds it or waits for it, attempts are refused
/// (object_in_use), fencing_token() is 0, and unlock() gives nothing back. All calls but
/// destruction are safe from any thread. Neither copied nor moved. std::lock_guard<Lock> and
/// std::unique_lock<Lock> work: the lock is held, or lock() throws.
///
/// Errors of all attempts, in why_not(): timed_out (another owner holds it); object_in_use;
/// key_empty, key_too_long, wrong_kind, bad_option (lease, label), waiters_full, memory_full,
/// refused, outcome_unknown, closing; not_owner (this owner had lost its hold, and the attempt
/// gives it up; or the key is that of work which is done, failed finally or in doubt).
class Lock {
 public:
  /// The key is copied.
  Lock(const Claims& claims, Bytes key, const LockOptions& options = {});
  /// Gives the lock back.
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// True: held now. False: why() and why_not() have the reason, in_flight if another holds it.
  [[nodiscard]] bool try_lock();
  /// Waits in the order of arrival, at most this long; Millis::max() is unlimited.
  [[nodiscard]] bool try_lock_for(Duration wait);
  /// Waits for as long as it takes. Returns with the lock held, or throws std::system_error of
  /// error_category() with the code of why_not().
  void lock();
  /// The last unlock() of a holder gives the lock back. False: the lock was lost, another thread
  /// holds it, or the journal failed; in the last case the lock is free at the end of its lease at
  /// the latest.
  bool unlock() noexcept;

  /// Whether this thread holds the lock and its lease runs. Asks the engine.
  [[nodiscard]] bool is_held() const;
  /// The token of this thread's hold, larger than that of every earlier holder. 0: no hold; no
  /// Fence admits 0.
  [[nodiscard]] Epoch fencing_token() const noexcept;
  /// Restarts the lease. False: the lock was lost.
  [[nodiscard]] bool renew();
  /// Why the last attempt failed; ok: it did not. timed_out: another owner holds the lock.
  [[nodiscard]] Error why_not() const;
  /// The claim's answer to the last attempt.
  [[nodiscard]] ClaimOutcome why() const;

  /// For a wait that blocks no thread (Claims::begin_wait), after try_lock() found the lock held:
  /// request() is valid as long as this lock; take() ends the wait. True: held now.
  [[nodiscard]] ClaimRequest request() const noexcept;
  [[nodiscard]] bool take(ClaimOutcome&& outcome);

 private:
  enum class Begun : std::uint8_t { held, refused, asks };

  /// Begins an attempt. asks: no thread holds the lock through this object, and no other thread
  /// may ask before take().
  [[nodiscard]] Begun begin();
  template <class Ask>
  [[nodiscard]] bool attempt(Ask&& ask);
  /// Ends what begin() began: `ask` returns the claim's answer.
  template <class Ask>
  [[nodiscard]] bool finish(Ask&& ask);
  [[nodiscard]] bool is_mine() const noexcept;
  [[nodiscard]] bool is_live(Epoch epoch) const;
  [[nodiscard]] bool take_locked(ClaimOutcome&& outcome);
  [[nodiscard]] bool refuse(ErrorCode code, std::string why);
  bool release(Epoch epoch) noexcept;

  mutable Claims claims_;
  const std::string key_;
  const std::string owner_;
  const LockOptions options_;
  mutable std::mutex mutex_;  // guards the members below; not held while others' callbacks may run
  ClaimOutcome outcome_;
  Error error_;
  Watchdog::Guard kept_;
  Epoch epoch_ = 0;
  unsigned holds_ = 0;
  std::thread::id holder_{};  // of the hold, or of the attempt under way
  bool asking_ = false;
};

/// Guards the state behind a lock: remembers the largest token, and refuses smaller ones. Keep a
/// fence with the protected state; this one is for state in memory. Not thread-safe.
class Fence {
 public:
  /// False: a later holder's token was admitted before; or the token is 0, of a refused lock or of
  /// an unguarded run. Of a ReadWriteLock: for its writers.
  [[nodiscard]] bool admit(Epoch token) noexcept {
    if (token == 0 || token < highest_ || token <= read_) return false;
    highest_ = token;
    return true;
  }
  /// For the readers of a ReadWriteLock, in any order among each other. False: a later writer has
  /// been here; or the token is 0. True: writers before this reader are admitted no longer.
  [[nodiscard]] bool admit_reader(Epoch token) noexcept {
    if (token == 0 || token < highest_) return false;
    if (token > read_) read_ = token;
    return true;
  }
  /// Of the writers.
  [[nodiscard]] Epoch highest() const noexcept { return highest_; }

 private:
  Epoch highest_ = 0;
  Epoch read_ = 0;
};

}  // namespace semel

namespace semel::detail {

/// The answer to an attempt.
struct Attempted {
  ClaimOutcome claim;
  std::string key;         ///< of the claim
  std::uint32_t kind = 0;  ///< what the holder has of it: a slot, an access
  Epoch token = 0;         ///< for a fence
};

/// Semaphore and ReadWriteLock have it in common: an object with one hold at most, of a claim that
/// the attempt names. Safe from any thread; an attempt while it holds, or while another thread
/// asks, is refused (object_in_use). `name` begins the details of errors.
class OneHold {
 public:
  OneHold(const Claims& claims, Bytes key, const LockOptions& options, std::string name);
  /// Gives it back.
  ~OneHold();
  OneHold(const OneHold&) = delete;
  OneHold& operator=(const OneHold&) = delete;

  using Ask = Function<Attempted(Claims&, const ClaimRequest&)>;
  /// True: held now. A grant whose caller gets an exception is given back.
  [[nodiscard]] bool attempt(const Ask& ask);
  /// Throws std::system_error of error_category() with the code of why_not().
  [[noreturn]] void throw_why() const;
  bool release() noexcept;
  [[nodiscard]] bool is_held() const;
  [[nodiscard]] Epoch token() const noexcept;
  [[nodiscard]] std::uint32_t kind() const noexcept;
  [[nodiscard]] bool renew();
  [[nodiscard]] Error why_not() const;
  /// `wait` from now on.
  [[nodiscard]] Timestamp end_of(Duration wait) const;

 private:
  [[nodiscard]] bool begin();
  [[nodiscard]] bool finish(Attempted& found);
  void abandon(const Attempted& found) noexcept;
  [[nodiscard]] bool take(Attempted& found, Watchdog::Guard&& kept);
  bool give_back() noexcept;
  [[nodiscard]] bool refuse(ErrorCode code, std::string why);
  [[nodiscard]] ClaimRequest request() const noexcept;

  mutable Claims claims_;
  const std::string key_;
  const std::string owner_;
  const std::string name_;
  const LockOptions options_;
  mutable std::mutex mutex_;  // guards the members below; not held while an attempt or a release
                              // is under way, which may run callbacks of others
  Watchdog::Guard kept_;
  std::string held_key_;
  Epoch epoch_ = 0;  // 0: holds nothing
  std::uint32_t kind_ = 0;
  Epoch token_ = 0;
  Error error_;
  bool asking_ = false;
};

}  // namespace semel::detail
