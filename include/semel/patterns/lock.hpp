// A lock with a lease: an owner that goes silent loses it, and the fencing token lets what it
// writes to refuse it.
//
//   auto locks = engine->claims("locks", policies::fair_lock).value();
//   Lock lock{locks, "invoice-run"};
//   if (lock.try_lock_for(Millis{5'000})) {
//     file.write(lock.fencing_token(), ..);    // the file refuses a smaller one than it has seen
//   }                                          // given back here
//
// The token grows with each holder. It is what makes the lock safe: a holder that was paused for
// longer than its lease does not know it, and only what it writes to can refuse it.
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
#include "semel/patterns/watchdog.hpp"

namespace semel {

/// Of the exceptions of Lock: a value is an ErrorCode.
[[nodiscard]] const std::error_category& error_category() noexcept;

struct LockOptions {
  std::optional<Duration> lease{};     ///< none: the policy's
  Bytes owner{};                       ///< label for people, copied
  std::optional<SessionId> session{};  ///< none: the engine's own; the lock ends with it
  Watchdog* watchdog = nullptr;  ///< keeps the lease; must outlive the lock. A lease that it cannot
                                 ///< keep (Watchdog::can_keep) is refused
  /// The holder moves between threads, as a coroutine does or a handle of C: unlock(), renew(),
  /// is_held() and fencing_token() are about the hold whichever thread calls.
  bool moves = false;
};

/// One owner of a lock. The hold belongs to the thread that has acquired it: that thread may lock
/// again what it holds, and unlocks as often. Another thread has a Lock of its own. If it uses this
/// one all the same, its attempts are refused while another thread holds it or waits for it
/// (object_in_use), it holds nothing (fencing_token() is 0), and its unlock() gives nothing back.
/// So all calls but destruction are safe from any thread. Neither copied nor moved.
/// std::lock_guard<Lock> and std::unique_lock<Lock> work: it is held, or lock() throws.
///
/// Errors of all attempts, in why_not(): in_flight's timed_out; object_in_use; key_empty,
/// key_too_long, wrong_kind, bad_option (lease, label), waiters_full, memory_full, refused,
/// outcome_unknown, closing; not_owner (a hold of this owner was lost, and is given up by this
/// attempt; or the key is not free and no lock: done, failed finally, in doubt).
class Lock {
 public:
  /// The key is copied.
  Lock(const Claims& claims, Bytes key, const LockOptions& options = {});
  /// Gives the lock back.
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  /// True: held now. False: why() says in_flight, or what stood in the way, and why_not() as well.
  [[nodiscard]] bool try_lock();
  /// Waits in the order of arrival, at most this long; Millis::max() is unlimited.
  [[nodiscard]] bool try_lock_for(Duration wait);
  /// Waits for as long as it takes. Returns with the lock held, or throws std::system_error of
  /// error_category() with the code of why_not().
  void lock();
  /// False: it was not held any more, or by another thread, or whether it was given back is unknown
  /// (the journal failed): then it ends with its lease at the latest. Only the last unlock() of a
  /// holder gives it back.
  bool unlock() noexcept;

  /// This thread has it, and its lease runs. Asks the engine.
  [[nodiscard]] bool is_held() const;
  /// Of this thread's hold; 0: none, which no Fence admits. Larger than that of every holder
  /// before.
  [[nodiscard]] Epoch fencing_token() const noexcept;
  /// The lease begins anew. False: it was lost.
  [[nodiscard]] bool renew();
  /// Why the last attempt has not got the lock; ok: it has. timed_out: another has it.
  [[nodiscard]] Error why_not() const;
  /// What the last attempt was answered.
  [[nodiscard]] ClaimOutcome why() const;

  /// For a wait that blocks no thread (Claims::begin_wait), after try_lock() has found the lock
  /// held: the request, valid as long as this lock, and the end of the wait. True: held now.
  [[nodiscard]] ClaimRequest request() const noexcept;
  [[nodiscard]] bool take(ClaimOutcome&& outcome);

 private:
  enum class Begun : std::uint8_t { held, refused, asks };

  /// Begins an attempt. asks: no thread holds it through this object, and no other thread asks
  /// until take().
  [[nodiscard]] Begun begin();
  template <class Ask>
  [[nodiscard]] bool attempt(Ask&& ask);
  [[nodiscard]] bool is_mine() const noexcept;
  [[nodiscard]] bool is_live(Epoch epoch) const;
  [[nodiscard]] bool take_locked(ClaimOutcome&& outcome);
  [[nodiscard]] bool refuse(ErrorCode code, std::string why);
  bool give_back() noexcept;

  mutable Claims claims_;
  const std::string key_;
  const std::string owner_;
  const LockOptions options_;
  mutable std::mutex
      mutex_;  // guards the members below; not held while the engine is asked for the lock
  ClaimOutcome outcome_;
  Error error_;
  Watchdog::Guard kept_;
  Epoch epoch_ = 0;
  unsigned holds_ = 0;
  std::thread::id holder_{};  // of the hold, or of the attempt under way
  bool asking_ = false;
};

/// For what a lock protects: remembers the largest token it has seen, and refuses a smaller one.
/// Keep it where the protected state is; this one is for state in memory. Not for several threads.
class Fence {
 public:
  /// False: a later holder has been here; or the token is 0: of a lock that was refused, or of a
  /// run without a guard.
  [[nodiscard]] bool admit(Epoch token) noexcept {
    if (token == 0 || token < highest_) return false;
    highest_ = token;
    return true;
  }
  [[nodiscard]] Epoch highest() const noexcept { return highest_; }

 private:
  Epoch highest_ = 0;
};

}  // namespace semel
