#include "replication/core/leadership.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {

bool Leadership::knows_decided() const {
  const MemoryLog& log = parts_.log;
  return !is_ended_ && parts_.raft.is_leader() && log.term_of(log.commit()) == parts_.raft.term();
}

void Leadership::send(NodeId to, decltype(RaftMessage::what) what) {
  parts_.effects.send(
      {.from = parts_.options.id, .to = to, .term = parts_.raft.term(), .what = std::move(what)});
}

// --- reads --------------------------------------------------------------------------------------

std::uint64_t Leadership::begin_round() {
  SEMEL_ASSERT(knows_decided());
  const std::uint64_t round = answers_.begin_round(parts_.log.commit());
  send_probes();
  answers_.count_rounds(parts_.raft.members());
  return round;
}

/// To voters that have not confirmed the newest round. A probe may be lost, or come to a node that
/// is not in this term yet and does not answer.
void Leadership::send_probes() {
  for (const Member& each : parts_.raft.members()) {
    if (each.id == parts_.options.id || each.role != MemberRole::voter) continue;
    if (answers_.has_confirmed(each.id)) continue;
    send(each.id, ReadProbe{.round = answers_.round()});
  }
}

void Leadership::probe_again() {
  if (parts_.raft.is_leader() && answers_.confirmed() < answers_.round()) send_probes();
}

/// It is in the asker's term, so it has voted for no later leader.
void Leadership::answer_probe(const RaftMessage& message) {
  if (parts_.raft.is_leader() || message.term != parts_.raft.term()) return;
  send(message.from, ReadReply{.round = std::get<ReadProbe>(message.what).round});
}

void Leadership::count_probe(const RaftMessage& message) {
  const std::uint64_t round = std::get<ReadReply>(message.what).round;
  if (!parts_.raft.is_leader() || message.term != parts_.raft.term() || round > answers_.round()) {
    return;
  }
  answers_.note_round(message.from, round);
  answers_.count_rounds(parts_.raft.members());
}

void Leadership::tell_commit(NodeId id) {
  if (!knows_decided() || !parts_.raft.member(id)) return;
  const LogIndex commit = parts_.log.commit();
  if (!answers_.note_told(id, commit)) return;
  send(id, CommitNotice{.index = commit, .index_term = parts_.raft.term()});
}

// --- lease --------------------------------------------------------------------------------------

void Leadership::note_echo(const RaftMessage& message) {
  const RaftLibrary& raft = parts_.raft;
  if (is_ended_ || message.term != raft.term()) return;
  if (const auto* append = std::get_if<AppendRequest>(&message.what)) {
    if (raft.is_leader() || raft.leader() != message.from) return;
    if (std::exchange(echo_term_, raft.term()) != raft.term()) echo_ = 0;
    echo_ = std::max(echo_, append->echo);
  } else if (const auto* reply = std::get_if<AppendReply>(&message.what)) {
    if (!raft.is_leader()) return;
    answers_.note_echo(message.from, reply->echo);
  }
}

std::uint64_t Leadership::echo_for(NodeId leader) const noexcept {
  return echo_term_ == parts_.raft.term() && parts_.raft.leader() == leader ? echo_ : 0;
}

std::uint64_t Leadership::heard_at(std::uint64_t now) const {
  return knows_decided() ? answers_.heard_at(parts_.raft.members(), now) : 0;
}

std::uint64_t Leadership::lease_until(std::uint64_t now) const {
  const ConsensusOptions& options = parts_.options;
  if (parts_.raft.is_handing_over()) return 0;
  if (options.guards.gives_lease_up && no_lease_term_ == parts_.raft.term()) return 0;
  const std::uint64_t heard = heard_at(now);
  return heard == 0 ? 0 : heard + static_cast<std::uint64_t>(options.election.count()) * 9 / 10;
}

}  // namespace semel::replication
