// What stands behind semel_wait: one waiter for a claim, and the answer that ends the wait.
#pragma once

#include <string>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "bindings/c/requests.hpp"

/// Concurrency
///   outcome, answered   written by the thread that ends the wait.
///   all other members   written before the wait is entered, or by the caller's one thread.
struct semel_wait {
  semel_wait(semel_claims& space, const semel_request& asked, int fd);
  /// Ends the wait, and gives back a grant that was not taken.
  ~semel_wait();
  semel_wait(const semel_wait&) = delete;
  semel_wait& operator=(const semel_wait&) = delete;

  /// Begins to wait, if `asked` is not answered at once.
  void enter(const semel::ClaimRequest& asked, semel::Millis longest);
  /// Ends the wait: from now on no other thread uses `outcome`.
  void leave() noexcept;
  /// The outcome of a wait that was left. No lock is needed: see leave().
  [[nodiscard]] semel::ClaimOutcome& final_outcome() noexcept SEMEL_NO_THREAD_SAFETY_ANALYSIS {
    SEMEL_ASSERT(is_left);
    return outcome;
  }
  /// Waits for at most `longest`; true: answered. While they wait, one of the waiting threads
  /// advances the engine for all, as blocked waiters of C++ do.
  [[nodiscard]] bool wait_for(semel::Millis longest);
  void answer(semel::ClaimOutcome&& end) noexcept;
  /// There is no wait: the outcome is known from the start.
  void answer_at_once(semel::ClaimOutcome&& known) noexcept;

  semel_claims& claims;
  semel_request given;  // points to the members below
  std::string key;
  std::string owner;
  semel::ClaimId claim_id{};
  int notify_fd;
  semel_lock* lock = nullptr;  // that is waited for, or
  bool asked_lock = false;     // which has answered by itself, and
  bool holds = false;          // is held
  bool taken = false;          // the caller has the granted claim
  semel::Timestamp deadline = semel::no_end;
  semel::WaitTicket ticket = 0;
  bool is_left = false;

  semel::base::Mutex mutex;
  semel::base::Condition ended;
  bool answered SEMEL_GUARDED_BY(mutex) = false;
  semel::ClaimOutcome outcome SEMEL_GUARDED_BY(mutex);
};
