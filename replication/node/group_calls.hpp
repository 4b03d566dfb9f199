// The calls of a replica's engine, carried out by its group (engine/logged/call_log.hpp): commands
// are proposed, and where this node does not lead, handed over to the leader.
//
// A thread of its own runs callbacks of waiters and the timers of waits, so that they do not hold
// up the thread that applies entries.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/mutex.hpp"
#include "engine/logged/call_log.hpp"
#include "replication/node/memory_gate.hpp"
#include "replication/node/replica.hpp"

namespace semel::replication {

class GroupCalls final : public engine::CallLog {
 public:
  /// `patience`: how long a call waits for a leader.
  GroupCalls(Replica& replica, Millis patience)
      : replica_(replica), patience_(patience), gate_(replica.engine()) {}
  ~GroupCalls() override { stop(); }
  GroupCalls(const GroupCalls&) = delete;
  GroupCalls& operator=(const GroupCalls&) = delete;

  /// Errors: no_thread.
  [[nodiscard]] Status start();
  /// All tasks given to run() have run when this returns. Call after the replica's stop.
  void stop();

  [[nodiscard]] Result<Answer> decide(const Command& command, engine::Repeat repeat) override;
  void decide(const Command& command, engine::Repeat repeat, Done done) override;
  /// By the level of features; waits for it as long as the group has none yet.
  [[nodiscard]] Status knows(const Command& command) override;
  [[nodiscard]] Status read() override;
  void read(std::function<void(Status)> done) override;
  void run(std::function<void()> what) override;
  [[nodiscard]] const engine::GroupTime& clock() const noexcept override {
    return replica_.clock();
  }

 private:
  /// A call for the own thread. Its place in the list is allocated before the wait begins, so that
  /// a later lack of memory cannot lose the call.
  struct Task {
    std::function<void(Result<Answer>)> then;
    Result<Answer> answer = Error{ErrorCode::outcome_unknown, {}};
  };
  using Place = std::shared_ptr<std::list<Task>>;
  [[nodiscard]] static Place place_for(std::function<void(Result<Answer>)> then);
  /// Takes no memory.
  void give(std::list<Task>& task, Result<Answer> answer) noexcept;

  /// Why it is not even proposed; ok: it may be.
  [[nodiscard]] Status admit(const Command& command);
  [[nodiscard]] ProposalTerms terms(engine::Repeat repeat) const noexcept {
    return {.repeats = repeat == engine::Repeat::safe, .patience = patience_};
  }
  void run_all();

  Replica& replica_;
  const Millis patience_;
  MemoryGate gate_;
  base::Mutex mutex_;
  base::Condition wake_;
  std::list<Task> tasks_ SEMEL_GUARDED_BY(mutex_);
  bool is_stopping_ SEMEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace semel::replication
