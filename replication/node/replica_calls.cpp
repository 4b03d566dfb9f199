// Proposals: from callers to entries or to the leader, and from applied entries back to callers.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/node/replica_loop.hpp"

namespace semel::replication {

void ReplicaLoop::propose(PreparedCommand command, ProposalDone done, const ProposalTerms& terms) {
  // A longer one would end every node that has to write it.
  if (command.bytes.size() > command_bytes_max(options_)) {
    return done(Error{ErrorCode::value_too_long, "a command of " +
                                                     std::to_string(command.bytes.size()) +
                                                     " bytes, in a group at most " +
                                                     std::to_string(command_bytes_max(options_))});
  }
  submit(Proposal::made(std::move(command), std::move(done), terms, now()));
}

void ReplicaLoop::submit(Proposal proposal) {
  const CallQueue::Pushed pushed = calls_.push(proposal);
  if (pushed == CallQueue::Pushed::queued) return;
  if (pushed == CallQueue::Pushed::wakes) return post_turn();
  const bool is_full = pushed == CallQueue::Pushed::full;
  if (proposal.done) proposal.done(Error{is_full ? ErrorCode::log_busy : ErrorCode::closing, {}});
}

void ReplicaLoop::read(ProposalDone done, const ProposalTerms& terms) {
  Reader reader{{std::move(done), ErrorCode::closing},
                now() + static_cast<std::uint64_t>(terms.patience.count())};
  if (calls_.push(reader) == CallQueue::Pushed::wakes) post_turn();
}

void ReplicaLoop::take_calls() {
  CallQueue::Calls calls = calls_.take(proposals_.take_change(), proposals_.is_full());
  for (Proposal& each : calls.proposals) proposals_.add(std::move(each));
  proposals_.number_held();
  for (Reader& each : calls.reads) reads_.add(std::move(each));
}

void ReplicaLoop::propose_waiting() {
  const Proposals::Figures proposals = proposals_.figures();
  if ((proposals.ready == 0 && proposals.held == 0) || is_ended_) return;
  if (!core_->raft().is_leader() || core_->raft().is_handing_over()) {
    forward_waiting();
    return proposals_.refuse_waiting(ErrorCode::not_leader, now());
  }
  // What former leaders have left is applied first: its time is not known before, and an entry with
  // an earlier one stops every replica, each time that it is opened.
  if (proposals.entries == 0 && core_->log().applied() < core_->log().last()) return;
  while (proposals_.figures().ready != 0 && !proposals_.is_full()) {
    const std::uint64_t here = now();
    const std::int64_t unix_ms = next_time();
    const LogIndex index = core_->log().last() + 1;
    auto bytes = std::make_shared<const std::string>(
        proposals_.begin_entry(index, core_->raft().term(), unix_ms, here));
    const Result<LogIndex> taken = core_->propose(here, std::move(bytes));
    SEMEL_ASSERT(!taken.ok() || *taken == index);
    const Status status = taken.ok() ? Status{semel::Done{}} : Status{taken.error()};
    if (!proposals_.end_entry(index, status, here)) return;
  }
}

/// Time is what entries say it is: an idle group's records end by this one.
void ReplicaLoop::propose_time() {
  constexpr std::uint64_t every_ms = 1'000;
  const Proposals::Figures proposals = proposals_.figures();
  if (!core_->raft().is_leader() || core_->raft().is_handing_over() || proposals.entries != 0 ||
      proposals.ready != 0 || now() < proposals.entry_at + every_ms ||
      state_->engine().stats().records_with_ttl == 0) {
    return;
  }
  queue_time();
}

/// The first entry of a new group.
void ReplicaLoop::begin_level() {
  const std::optional<FeatureLevel> level = members_->level_to_begin(now());
  if (!level) return;
  proposals_.add_own({FeatureLevelCommand{*level}}, nullptr,
                     {.repeats = true, .is_numbered = false}, now());
}

void ReplicaLoop::queue_time() {
  proposals_.add_own({TimeCommand{}}, nullptr, {.is_numbered = false}, now());
}

}  // namespace semel::replication
