// How an entry of a replicated log changes a replica: while a DecisionScope exists, the engine
// decides its thread's calls by the entry's time, versions and secret
// (engine/memory/decision_context.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.hpp"
#include "engine/api/sessions.hpp"
#include "engine/logged/call_log.hpp"
#include "engine/memory/decision_context.hpp"
#include "semel/engine.hpp"

namespace semel::engine {

/// Of one thread of an engine with Options::replicated, outside of sections. Blocks for another
/// scope, and for a snapshot that begins. Its versions are larger than all that came before.
class DecisionScope {
 public:
  DecisionScope(Engine& engine, const DecisionContext& decision);
  ~DecisionScope();
  /// Whether an operation of the entry was refused for memory: this replica's affair, and its state
  /// is that of no index then.
  [[nodiscard]] bool lacked_memory() const noexcept;

  DecisionScope(const DecisionScope&) = delete;
  DecisionScope& operator=(const DecisionScope&) = delete;

 private:
  Engine& engine_;
  const DecisionContext decision_;
  std::uint64_t refused_before_ = 0;
  const base::MutexLock applying_;
};

/// Larger than all versions that its entries have had: the index of the next one, if there is one.
[[nodiscard]] Version next_version(Engine& engine) noexcept;
/// Whether an entry whose versions begin with `first` may follow what the replica holds.
[[nodiscard]] bool may_follow(Engine& engine, Version first) noexcept;
/// The sessions that are open on a replica, ascending: a part of its state.
[[nodiscard]] std::vector<OpenSession> open_sessions(Engine& engine);
/// Puts one back, as a snapshot has it.
void restore_session(Engine& engine, const OpenSession& session);
/// Within an entry. 0: there are limits::sessions_max.
[[nodiscard]] SessionId open_session(Engine& engine, const SessionOwner& owner);
/// Within an entry: closes those that were opened by other lives of the owner's node. Returns how
/// many.
std::size_t close_former_sessions(Engine& engine, const SessionOwner& owner);

/// From now on, calls of a replica outside of entries go to `log`. Null: ends this permanently, and
/// all waits. Not beside other calls of the engine.
void set_call_log(Engine& engine, CallLog* log);
/// Ends all waits of an engine with a CallLog permanently, those of set_call_log(nullptr): closing.
/// Its other calls still go to the CallLog. Beside other calls; again: without effect.
void end_waits(Engine& engine) noexcept;
/// The group's time, which goes on between entries: for waits. Before calls of the engine; it must
/// outlive them.
void set_group_clock(Engine& engine, const GroupTime* clock) noexcept;
/// Ends waits that are due by `now`: the replica's own clock stands still between entries. Returns
/// whether anyone waits.
bool poll_waits(Engine& engine, Timestamp now) noexcept;

/// Calls `done` once, when a claim of a replica may be free or otherwise answered (its error is ok:
/// ask the replicated log again), or at `deadline` of the group's time (timed_out). Perhaps on the
/// thread that applies entries: it must not block, nor call the engine. `ticket` is written before.
/// False: `outcome` is the answer, and `done` is not called. `name`: of a namespace.
[[nodiscard]] bool wait_for_change(Engine& engine, Bytes name, Bytes key, Timestamp deadline,
                                   ClaimCallback done, WaitTicket& ticket, ClaimOutcome& outcome);
/// Answers a claim whose work is done from what this replica has. False: the replicated log
/// decides.
[[nodiscard]] bool repeat_claim(Engine& engine, const Claims& claims, const ClaimRequest& request,
                                Ends ends, ClaimOutcome& outcome);
/// See Claims::cancel_wait().
bool stop_waiting(Engine& engine, WaitTicket ticket) noexcept;

}  // namespace semel::engine
