// What a node hands over to the leader, and reads.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/node/replica_loop.hpp"
#include "replication/proposals/forward_codec.hpp"

namespace semel::replication {

void ReplicaLoop::forward_waiting() {
  const NodeId leader = core_->raft().leader();
  if (leader == 0 || leader == options_.node_id) return;
  proposals_.hand_over(options_.forwards, [&](Proposal& each) {
    if (forwards_.is_full()) return false;
    const std::string bytes = forward_bytes(each.origin, each.command);
    if (!transport_->send(leader, Forward{forwards_.next_id(), bytes})) return false;
    proposals_.note_sent(each, now());
    forwards_.add(leader, now(), std::move(each));
    return true;
  });
}

/// It is not known what became of them.
void ReplicaLoop::lose_forwards(std::vector<Forwards::Pending> lost) {
  for (Forwards::Pending& each : lost) {
    if (Proposal* const proposal = each.proposal()) {
      proposals_.lose(std::move(*proposal), now());
    } else {
      reads_.refuse(std::get<Forwards::Readers>(std::move(each.what)), ErrorCode::not_leader,
                    now());
    }
  }
}

bool ReplicaLoop::is_known(const Command& command) const {
  if (const auto* const request = std::get_if<RequestCommand>(&command.what)) {
    return runner_ != nullptr && runner_->knows(*request);
  }
  const auto* const section = std::get_if<SectionCommand>(&command.what);
  return section == nullptr || std::all_of(section->commands.begin(), section->commands.end(),
                                           [this](const Command& each) { return is_known(each); });
}

/// Of a member, and yet read as if it were hostile: an entry that no replica can read stops all.
Result<Proposal> ReplicaLoop::read_proposal(NodeId from, std::string bytes) const {
  SEMEL_TRY(content, read_forward(from, bytes));
  if (!is_known(content.command)) return Error{ErrorCode::bad_encoding, {}};
  // Only who leads has looked whether all members know it.
  const bool raises = std::holds_alternative<FeatureLevelCommand>(content.command.what);
  if (raises || !core_->raft().is_leader()) return Error{ErrorCode::not_leader, {}};
  // Below it a node of an earlier release would stop at it. What this leader has not applied yet
  // may raise the level: it is asked again.
  if (const FeatureLevel needed = level_of(content.command);
      needed > feature_level_first && state_->level() < needed) {
    return Error{ErrorCode::not_leader, {}};
  }
  bytes.erase(0, content.begin);  // the command is not read any more, but for its size
  SEMEL_TRY(prepared, prepare(content.command, std::move(bytes)));
  if (prepared.bytes.size() > command_bytes_max(options_)) {
    return Error{ErrorCode::value_too_long, {}};
  }
  return Proposal{
      .command = std::move(prepared), .numbering = Numbering::by_peer, .origin = content.origin};
}

void ReplicaLoop::on_forward(NodeId from, Forward forward) {
  if (!is_ended_) thread_.run_part([&] { take_forward(from, std::move(forward)); });
}

void ReplicaLoop::take_forward(NodeId from, Forward forward) {
  // It is called when the entry is applied here, or the read confirmed.
  const auto reply = [this, from, id = forward.id](const Result<Answer>& answer) {
    if (is_ended_) return;
    // It is this node that ends, not the one that asks, which goes on to the next leader.
    const bool is_closing = !answer.ok() && answer.error().code == ErrorCode::closing;
    core_->tell_commit(from);
    std::string bytes =
        is_closing ? forward_reply_bytes(Error{ErrorCode::not_leader, {}}, state_->applied())
                   : forward_reply_bytes(answer, state_->applied());
    static_cast<void>(transport_->send(from, ForwardReply{id, std::move(bytes)}));
  };
  if (forward.bytes.empty()) {
    if (!core_->raft().is_leader()) return reply(Error{ErrorCode::not_leader, {}});
    return read(reply, {});
  }
  Result<Proposal> proposal = read_proposal(from, std::move(forward.bytes));
  if (!proposal.ok()) return reply(proposal.error());
  proposal->done = {reply, ErrorCode::outcome_unknown};
  submit(*std::move(proposal));
}

void ReplicaLoop::on_forward_reply(NodeId from, ForwardReply reply) {
  if (!is_ended_) thread_.run_part([&] { take_forward_reply(from, std::move(reply)); });
}

void ReplicaLoop::take_forward_reply(NodeId from, ForwardReply reply) {
  std::optional<Forwards::Pending> pending = forwards_.take(reply.id, from);
  if (!pending) return;
  ForwardAnswer content = read_forward_reply(reply.bytes);
  if (content.answer.ok()) {
    const Proposals::Figures proposals = proposals_.figures();
    if (proposals.ready != 0 || proposals.held != 0) wake_soon();  // there is room for the next one
  }
  if (Proposal* const proposal = pending->proposal()) {
    return take_proposal_reply(std::move(*proposal), std::move(content));
  }
  auto readers = std::get<Forwards::Readers>(std::move(pending->what));
  if (!content.answer.ok()) return reads_.refuse(std::move(readers), ErrorCode::not_leader, now());
  show_when_applied(content.index, {.readers = std::move(readers)});
  ask_waiting_reads();
}

void ReplicaLoop::take_proposal_reply(Proposal proposal, ForwardAnswer content) {
  if (!content.answer.ok()) {
    const ErrorCode why = content.answer.error().code;
    if (why == ErrorCode::not_leader || why == ErrorCode::log_busy) {
      return proposals_.put_back(std::move(proposal), why, now());
    }
    if (why == ErrorCode::outcome_unknown) return proposals_.lose(std::move(proposal), now());
    return proposals_.finish(proposal, content.answer.error());
  }
  const auto* const refused = std::get_if<NotApplied>(&content.answer->what);
  if (refused != nullptr && proposal.has_number()) {
    proposals_.not_applied(std::move(proposal), refused->why, now());
    if (!proposals_.figures().has_life || proposals_.figures().can_number) wake_soon();
    return;
  }
  Reply done = std::move(proposal.done);
  proposals_.finish(proposal, Answer{});  // its number: the rest needs no leader
  if (!done) return;
  show_when_applied(
      content.index,
      {.done = std::move(done), .answer = *std::move(content.answer), .until = proposal.until});
}

/// The entry comes with the next appends.
void ReplicaLoop::show_when_applied(LogIndex index, AppliedWaits::Wait wait) {
  wait.until = std::max(wait.until, now() + answer_patience());
  applied_waits_.add(index, state_->applied(), std::move(wait));
}

// --- reads --------------------------------------------------------------------------------------

void ReplicaLoop::ask_waiting_reads() {
  if (!reads_.must_ask() || is_ended_) return;
  if (!core_->raft().is_leader() && forward_reads()) return;
  const LogIndex time_index = renew_time();
  if (is_ended_) return;
  const std::uint64_t time_until = now() + static_cast<std::uint64_t>(options_.election.count());
  // No other node can have answered anything since: this commit index is the newest.
  if (options_.reads_by_lease && core_->raft().is_leader() &&
      core_->leadership().lease_until(now()) > now()) {
    reads_.begin({0, core_->log().commit(), time_index, time_until});
    return finish_reads();
  }
  const Result<std::uint64_t> round = core_->read(now());
  if (!round.ok()) return reads_.refuse(reads_.take_waiting(), round.error().code, now());
  reads_.begin({*round, core_->leadership().read_index(), time_index, time_until});
  finish_reads();
}

/// True: they are under way, or wait for those that are.
bool ReplicaLoop::forward_reads() {
  const NodeId leader = core_->raft().leader();
  if (!options_.forwards || leader == 0 || leader == options_.node_id) return false;
  if (forwards_.has_reads()) return true;
  if (!transport_->send(leader, Forward{forwards_.next_id(), {}})) return false;
  forwards_.add(leader, now(), reads_.take_waiting());
  return true;
}

/// Between entries the replicated log's time stands still, and records that ended since would still
/// be read. Without records that end, and right after an entry, nothing is written for a read. The
/// entry that brings the log's time up for a read; 0: none is needed.
LogIndex ReplicaLoop::renew_time() {
  if (!core_->raft().is_leader() || core_->raft().is_handing_over()) return 0;
  const std::int64_t behind = clock_.at(static_cast<std::int64_t>(now())) - state_->unix_ms();
  if (behind <= options_.heartbeat.count() || state_->engine().stats().records_with_ttl == 0) {
    return 0;
  }
  const Proposals::Figures proposals = proposals_.figures();
  if (proposals.entries == 0 && proposals.ready == 0) {
    queue_time();
    propose_waiting();
  }
  return proposals_.figures().newest_entry;
}

void ReplicaLoop::finish_reads() {
  reads_.finish(core_->leadership().confirmed(), core_->log().applied(), now());
}

}  // namespace semel::replication
