// What stands behind semel_wait: a place in the line for a claim, and the answer that ends it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "bindings/c/requests.hpp"

/// Concurrency
///   outcome, answered   under `mutex`: written by the thread that ends the wait.
///   everything else     written before the wait is entered, or by the caller's one thread.
struct semel_wait {
  semel_wait(semel_claims& space, const semel_request& given, int fd);
  /// Leaves the line, and gives back what nobody has taken.
  ~semel_wait();
  semel_wait(const semel_wait&) = delete;
  semel_wait& operator=(const semel_wait&) = delete;

  /// Enters the line, if `asked` is not answered at once.
  void enter(const semel::ClaimRequest& asked, semel::Millis longest);
  /// Out of the line: from now on nobody else touches `outcome`.
  void leave() noexcept;
  /// Sleeps for at most so long; true: answered. Does what a blocked waiter of C++ does meanwhile:
  /// one of them looks at the clock for all.
  [[nodiscard]] bool look(semel::Millis longest);
  void answer(semel::ClaimOutcome&& told) noexcept;

  semel_claims& claims;
  semel_request given;  // its pointers are to what follows
  std::string key;
  std::string owner;
  semel::ClaimId claim_id{};
  int notify_fd;
  semel_lock* lock = nullptr;  // that is waited for, or
  bool asked_lock = false;     // which has answered by itself, and
  bool holds = false;          // is held
  bool taken = false;          // what was granted is the caller's
  semel::Timestamp deadline = semel::no_end;
  semel::WaitTicket ticket = 0;
  bool is_left = false;

  std::mutex mutex;
  std::condition_variable told;
  bool answered = false;
  semel::ClaimOutcome outcome;
};

namespace semel::c {

[[nodiscard]] inline bool is_granted(const ClaimOutcome& outcome) noexcept {
  return outcome.answer == ClaimAnswer::granted || outcome.answer == ClaimAnswer::regranted;
}

}  // namespace semel::c
