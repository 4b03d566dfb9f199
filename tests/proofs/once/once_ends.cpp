// Where things end in the once proof: memory, engines, tokens, turns.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "semel/patterns/debounce.hpp"
#include "semel/patterns/token_service.hpp"
#include "tests/proofs/once/once_program.hpp"

namespace semel::proofs {

void OnceProgram::fill_or_empty() {
  if (!is_small_) return close_under_owner();
  process_.is_filled() ? process_.empty() : process_.fill();
}

/// The engine closes, and the next one has what its journal has.
void OnceProgram::close_between() {
  switch (random_.below(4)) {
    case 0:
      close_under_waiters();
      break;
    case 1:
      if (random_.chance(1, 4)) close_under_blocked();
      break;
    default:
      break;
  }
  if (!process_.alive()) return;  // a crash, and no close
  process_.empty();
  oracle_.settle();
  oracle_.close();
  next_process(steps());
}

/// Callbacks that wait are called once, and say that the engine closes.
void OnceProgram::close_under_waiters() {
  process_.empty();
  Claims claims = process_.claims("n", policy_);
  if (claims.claim({.key = "waited"}).answer != ClaimAnswer::granted || !process_.alive()) return;
  std::vector<int> called(random_.between(1, 4));
  int granted = 0;
  for (int& calls : called) {
    const WaitTicket ticket =
        claims.claim_or_wait({.key = "waited"}, no_end, [&](ClaimOutcome&& outcome) {
          ++calls;
          if (outcome.error != ErrorCode::closing) ++granted;
        });
    if (ticket == 0 && calls == 0) complain("a wait without a ticket or an answer");
  }
  next_process(tests::Process::never);
  oracle_.close();
  for (const int calls : called) {
    if (calls != 1) complain("a waiter was not called once when its engine closed");
  }
  if (granted != 0) complain("a waiter was granted by an engine that closed");
  static_cast<void>(process_.claims("n", policy_).forget("waited"));
}

/// A thread that waits for its turn gets the same error, and runs nothing.
void OnceProgram::close_under_blocked() {
  process_.empty();
  Claims claims = process_.claims("n", policy_);
  if (claims.claim({.key = "waited"}).answer != ClaimAnswer::granted || !process_.alive()) return;
  std::atomic<bool> ran{false};
  std::atomic<bool> refused{false};
  std::thread blocked{[&] {
    Claims mine = claims;
    const auto outcome = once(mine, {.key = "waited", .wait = Millis::max()}, [&] { ran = true; });
    refused = outcome.answer == OnceAnswer::in_flight && outcome.error.code == ErrorCode::closing;
  }};
  while (process_.engine().stats().waiters == 0) std::this_thread::yield();
  next_process(tests::Process::never);
  oracle_.close();
  blocked.join();
  if (ran) complain("work ran when its engine closed");
  if (!refused) complain("a waiter did not get the error that the engine closes");
  static_cast<void>(process_.claims("n", policy_).forget("waited"));
}

/// An owner goes on after its engine was closed and opened again: a claim that was granted
/// meanwhile has the work.
void OnceProgram::close_under_owner() {
  const std::string which = "carried";
  const ClaimOutcome first = process_.claims("n", policy_).claim({.key = which});
  if (!process_.alive() || first.answer != ClaimAnswer::granted) return;
  oracle_.settle();
  oracle_.close();
  next_process(steps());
  Claims claims = process_.claims("n", policy_);
  const ClaimOutcome second = random_.chance(1, 2) ? claims.claim({.key = which}) : ClaimOutcome{};
  const OwnerOutcome late = claims.complete({.key = which, .epoch = first.epoch, .payload = "1"});
  const ClaimOutcome third = claims.claim({.key = which});
  if (!process_.alive()) return;
  const bool taken = second.answer == ClaimAnswer::granted;
  const bool completed = late.error == ErrorCode::ok && late.answer == OwnerAnswer::ok;
  if (taken && second.epoch <= first.epoch) complain("an epoch came again in the next process");
  if (taken && !second.takeover) complain("a takeover from an earlier process was not reported");
  if (taken && completed) complain("an owner of an earlier process completed another's work");
  if (completed != (third.answer == ClaimAnswer::replay)) {
    complain("what was completed over a close is not what is replayed");
  }
  if (taken && third.answer == ClaimAnswer::granted) complain("granted twice after a close");
  static_cast<void>(claims.forget(which));
}

/// A token: used once at most, and usable for all of its time whatever fails.
void OnceProgram::token() {
  TokenService tokens = TokenService::open(process_.claims("t", policies::token)).value();
  const Millis ttl{static_cast<std::int64_t>(random_.between(10'000, 1'000'000))};
  const Timestamp end = now() + ttl;
  const auto issued = tokens.issue(ttl);
  if (!issued.ok()) return;
  int uses = 0;
  for (unsigned i = 1; i <= 3 && now() < end; ++i) {
    const bool fails = random_.chance(1, 2);
    const auto used = tokens.redeem(*issued, [&]() -> Result<int> {
      if (fails) return Error{ErrorCode::timed_out, "no"};
      return ++uses;
    });
    if (!process_.alive()) return;
    if (uses == 0 && used.answer == OnceAnswer::unknown) complain("a token ended too early");
    process_.clock().advance(ttl / 5);
  }
  // What could not be written down may be used again when its lease is over.
  if (uses > 1 && !was_filled_) complain("a token was used twice");
}

/// A caller that is promised another run sees a run that begins after that.
void OnceProgram::debounce() {
  Debounce rebuilds{process_.engine(),
                    process_.claims("d", policies::debounce),
                    {.interval = Millis{1'000}, .run_once_more_after = true}};
  int begun = 0;
  int promised_at = 0;
  try {
    static_cast<void>(rebuilds.run("k", [&] {
      ++begun;
      if (begun < 4 && random_.chance(1, 2)) {
        if (rebuilds.run("k", [&] { ++begun; }) == DebounceAnswer::will_run_again) {
          promised_at = begun;
        }
      }
      if (random_.chance(1, 4)) process_.clock().advance(Millis{1'500});
      if (random_.chance(1, 3)) throw std::runtime_error{"gone"};
    }));
  } catch (const std::runtime_error&) {
  }
  if (process_.alive() && promised_at != 0 && begun <= promised_at) {
    complain("a run that was promised did not come");
  }
}

}  // namespace semel::proofs
