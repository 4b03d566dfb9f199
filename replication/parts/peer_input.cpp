#include "replication/parts/peer_input.hpp"

#include <algorithm>
#include <utility>

#include "replication/core/consensus_core.hpp"
#include "replication/parts/forwarder.hpp"
#include "replication/parts/group_reads.hpp"
#include "replication/parts/loop_calls.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/members.hpp"
#include "replication/parts/replica_time.hpp"
#include "replication/parts/replica_view.hpp"
#include "replication/parts/snapshots.hpp"
#include "replication/proposals/forward_codec.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

template <class Part>
void PeerInput::run(Part&& part) {
  if (!parts_.host.is_ended()) parts_.thread.run_part(std::forward<Part>(part));
}

// --- messages -----------------------------------------------------------------------------------

void PeerInput::on_message(RaftMessage message) {
  run([&] { take_message(std::move(message)); });
}

void PeerInput::take_message(RaftMessage message) {
  Members& members = *parts_.members;
  ConsensusCore& core = *parts_.core;
  if (std::holds_alternative<VoteReply>(message.what) && members.has_lost_log(message.from)) return;
  const auto* const append = std::get_if<AppendRequest>(&message.what);
  if (append != nullptr && message.term >= core.raft().term()) {
    members.note_commit(append->commit);
  }
  parts_.time->hear(message);
  const bool is_fetched =
      std::holds_alternative<SnapshotOffer>(message.what) && parts_.snapshots->fetch(message);
  if (!is_fetched) {
    const ReplicaTime::MarkNote note = ReplicaTime::mark_in(message);
    core.receive(millis_of(parts_.wall), std::move(message));
    if (!parts_.host.is_ended()) {
      if (note.is_reply) members.note_reply(note.from, note.term);
      parts_.time->take_mark(note);
    }
  }
  if (!parts_.host.is_ended()) parts_.host.turn();
}

// --- forwards -----------------------------------------------------------------------------------

void PeerInput::on_forward(NodeId from, Forward forward) {
  run([&] { take_forward(from, std::move(forward)); });
}

void PeerInput::take_forward(NodeId from, Forward forward) {
  // It is called when the entry is applied here, or the read confirmed.
  const auto reply = [this, from, id = forward.id](const Result<Answer>& answer) {
    if (parts_.host.is_ended()) return;
    // It is this node that ends, not the one that asks, which goes on to the next leader.
    const bool is_closing = !answer.ok() && answer.error().code == ErrorCode::closing;
    parts_.core->tell_commit(from);
    const LogIndex applied = parts_.state.applied();
    std::string bytes = is_closing ? forward_reply_bytes(Error{ErrorCode::not_leader, {}}, applied)
                                   : forward_reply_bytes(answer, applied);
    static_cast<void>(parts_.transport->send(from, ForwardReply{id, std::move(bytes)}));
  };
  if (forward.bytes.empty()) {
    if (!parts_.core->raft().is_leader()) return reply(Error{ErrorCode::not_leader, {}});
    return parts_.calls.read(reply, {});
  }
  Result<Proposal> proposal = read_proposal(from, std::move(forward.bytes));
  if (!proposal.ok()) return reply(proposal.error());
  proposal->done = {reply, ErrorCode::outcome_unknown};
  parts_.calls.submit(*std::move(proposal));
}

bool PeerInput::is_known(const Command& command) const {
  if (const auto* const request = std::get_if<RequestCommand>(&command.what)) {
    return runner_ != nullptr && runner_->knows(*request);
  }
  const auto* const section = std::get_if<SectionCommand>(&command.what);
  return section == nullptr || std::all_of(section->commands.begin(), section->commands.end(),
                                           [this](const Command& each) { return is_known(each); });
}

/// Of a member, and yet read as if it were hostile: an entry that no replica can read stops all.
Result<Proposal> PeerInput::read_proposal(NodeId from, std::string bytes) const {
  SEMEL_TRY(content, read_forward(from, bytes));
  if (!is_known(content.command)) return Error{ErrorCode::bad_encoding, {}};
  // Only who leads has looked whether all members know it.
  const bool raises = std::holds_alternative<FeatureLevelCommand>(content.command.what);
  if (raises || !parts_.core->raft().is_leader()) return Error{ErrorCode::not_leader, {}};
  // Below it a node of an earlier release would stop at it. What this leader has not applied yet
  // may raise the level: it is asked again.
  if (const FeatureLevel needed = level_of(content.command);
      needed > feature_level_first && parts_.state.level() < needed) {
    return Error{ErrorCode::not_leader, {}};
  }
  bytes.erase(0, content.begin);  // the command is not read any more, but for its size
  SEMEL_TRY(prepared, prepare(content.command, std::move(bytes)));
  if (prepared.bytes.size() > command_bytes_max(parts_.options)) {
    return Error{ErrorCode::value_too_long, {}};
  }
  return Proposal{
      .command = std::move(prepared), .numbering = Numbering::by_peer, .origin = content.origin};
}

void PeerInput::on_forward_reply(NodeId from, ForwardReply reply) {
  run([&] {
    if (parts_.forwarder->take_reply(from, reply)) parts_.group_reads->ask_waiting();
  });
}

// --- connections --------------------------------------------------------------------------------

void PeerInput::on_peer(NodeId id, const std::string& address) {
  run([&] {
    if (parts_.members->meet(id, address)) parts_.host.turn();
  });
}

void PeerInput::on_event(Event event, const std::string& what) {
  parts_.view->say(event == Event::refused ? ReplicaEvent::What::peer_refused
                                           : ReplicaEvent::What::peer_unreachable,
                   what);
}

void PeerInput::on_starved() noexcept {
  parts_.thread.starve();
}

bool PeerInput::is_joining() const {
  return parts_.members->is_joining();
}
bool PeerInput::knows(NodeId id) const {
  return parts_.members->knows(id);
}
FeatureLevel PeerInput::level() const {
  return std::max(parts_.state.level(), feature_level_first);
}
std::optional<std::string> PeerInput::snapshot_path(LogIndex index, Term term) {
  return parts_.snapshots->path_of(index, term);
}

}  // namespace semel::replication
