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

#include <optional>
#include <string>
#include <system_error>

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
};

/// One owner of a lock. It may lock again what it holds, and unlocks as often. Not for several
/// threads at once: each has a Lock of its own. std::lock_guard<Lock> and std::unique_lock<Lock>
/// work: it is held, or lock() throws.
///
/// Errors of all attempts, in why_not(): in_flight's timed_out; key_empty, key_too_long,
/// wrong_kind, bad_option (lease, label), waiters_full, memory_full, refused, outcome_unknown,
/// closing; not_owner (a hold of this owner was lost, and is given up by this attempt; or the key
/// is not free and no lock: done, failed for good, in doubt).
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
  /// False: it was not held any more, or whether it was given back is unknown (the journal failed):
  /// then it ends with its lease at the latest. Only the last unlock() of a holder gives it back.
  bool unlock() noexcept;

  /// This owner has it, and its lease runs. Asks the engine.
  [[nodiscard]] bool is_held() const;
  /// Of the current hold; 0: none. Larger than that of every holder before.
  [[nodiscard]] Epoch fencing_token() const noexcept { return holds_ == 0 ? 0 : epoch_; }
  /// The lease begins anew. False: it was lost.
  [[nodiscard]] bool renew();
  /// Why the last attempt has not got the lock; ok: it has. timed_out: another has it.
  [[nodiscard]] const Error& why_not() const noexcept { return error_; }
  /// What the last attempt was answered.
  [[nodiscard]] const ClaimOutcome& why() const noexcept { return outcome_; }

  /// For a wait that blocks no thread (Claims::begin_wait) after try_lock() has met another's: what
  /// is asked, valid as long as this lock, and the end of the wait. True: held now.
  [[nodiscard]] ClaimRequest request() const noexcept;
  [[nodiscard]] bool take(ClaimOutcome&& outcome);

 private:
  [[nodiscard]] bool again();
  [[nodiscard]] bool begin();
  [[nodiscard]] bool refuse(ErrorCode code, std::string why);

  mutable Claims claims_;
  std::string key_;
  std::string owner_;
  LockOptions options_;
  ClaimOutcome outcome_;
  Error error_;
  Watchdog::Guard kept_;
  Epoch epoch_ = 0;
  unsigned holds_ = 0;
};

/// For what a lock protects: remembers the largest token it has seen, and refuses a smaller one.
/// Keep it where the protected state is; this one is for state in memory. Not for several threads.
class Fence {
 public:
  /// False: a later holder has been here.
  [[nodiscard]] bool admit(Epoch token) noexcept {
    if (token < highest_) return false;
    highest_ = token;
    return true;
  }
  [[nodiscard]] Epoch highest() const noexcept { return highest_; }

 private:
  Epoch highest_ = 0;
};

}  // namespace semel
