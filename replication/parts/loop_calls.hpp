// How other threads reach the loop: with proposals, with reads, and with functions to run on it.
#pragma once

#include <functional>

#include "replication/parts/loop_thread.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/proposals/call_queue.hpp"
#include "replication/proposals/proposals.hpp"
#include "replication/proposals/reads.hpp"
#include "replication/state/entry.hpp"
#include "semel/clock.hpp"

namespace semel::replication {

/// Thread-safe, but for take_to() and the functions of queue() that belong to the loop's thread.
class LoopCalls {
 public:
  /// `turn`: of the loop, on its thread. Closed until open().
  LoopCalls(const ReplicaOptions& options, const Clock& wall, LoopThread& thread,
            std::function<void()> turn)
      : options_(options),
        wall_(wall),
        thread_(thread),
        turn_(std::move(turn)),
        queue_(options.proposals_bytes_max) {}
  LoopCalls(const LoopCalls&) = delete;
  LoopCalls& operator=(const LoopCalls&) = delete;

  /// See Replica::propose().
  void propose(PreparedCommand command, ProposalDone done, const ProposalTerms& terms);
  void submit(Proposal proposal);
  /// See Replica::read().
  void read(ProposalDone done, const ProposalTerms& terms);
  /// Runs `what` on the loop and waits. Errors: closing, what it returns.
  [[nodiscard]] Status run(const std::function<Status()>& what);
  /// A turn is due.
  void wake_soon();
  /// After close(): no thread is waking the loop when this returns.
  void await_wakers() const;
  /// Loop: all calls, to their owners; held proposals get the numbers that are free.
  void take_to(Proposals& proposals, Reads& reads);
  [[nodiscard]] CallQueue& queue() noexcept { return queue_; }

 private:
  /// Behind CallQueue::begin_wake(). Until it returns stop() does not.
  void post_turn();

  const ReplicaOptions& options_;
  const Clock& wall_;
  LoopThread& thread_;
  const std::function<void()> turn_;
  CallQueue queue_;
};

}  // namespace semel::replication
