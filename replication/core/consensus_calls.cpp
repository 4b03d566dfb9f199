// Membership, transfer and reads.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/core/raft_shim.h"
#include "replication/core/shim_convert.hpp"

namespace semel::replication {
namespace {

Error no_member(NodeId id) {
  return {ErrorCode::bad_option, "node " + std::to_string(id) + " is not a member"};
}

}  // namespace

// --- membership -----------------------------------------------------------------------------

bool ConsensusCore::is_changing_members() const noexcept {
  return raft_shim_uncommitted_configuration(shim_.get()) != 0;
}

Status ConsensusCore::check_change() const {
  if (failed_ || !is_leader() || is_handing_over()) return Error{ErrorCode::not_leader, {}};
  if (is_changing_members()) {
    return Error{ErrorCode::refused, "another change of members is under way"};
  }
  // Before that, a change of the leader before may be undone by one of ours.
  if (log_.term_of(commit()) != term()) {
    return Error{ErrorCode::refused, "the leader has not begun its term yet"};
  }
  return Done{};
}

Status ConsensusCore::change(std::uint64_t now, const Configuration& to) {
  SEMEL_TRY(data, encode(to));
  begin(now);
  int error = 0;
  const bool is_done = submit(now, EntryType::configuration, data, error);
  after(now);
  if (is_done) return Done{};
  return Error{ErrorCode::refused,
               std::string{"members are as they were: "} + raft_shim_error_text(error)};
}

Status ConsensusCore::add(std::uint64_t now, NodeId id, const std::string& address) {
  SEMEL_CHECK(check_change());
  Configuration to = members();
  for (const Member& each : to) {
    if (each.id != id && each.address != address) continue;
    return Error{ErrorCode::bad_option, "node " + std::to_string(each.id) + " at " + each.address +
                                            " is a member already"};
  }
  to.push_back({id, address, MemberRole::standby});
  SEMEL_CHECK(change(now, to));
  return Done{};
}

Status ConsensusCore::promote(std::uint64_t now, NodeId id) {
  SEMEL_CHECK(check_change());
  Configuration to = members();
  const auto found =
      std::find_if(to.begin(), to.end(), [&](const Member& each) { return each.id == id; });
  if (found == to.end()) return no_member(id);
  if (found->role == MemberRole::voter) return Done{};
  // It could lose its disk, and vote again with another one.
  const auto has_log = [](const Member& each) { return each.log.is_known(); };
  if (!found->log.is_known() && std::any_of(to.begin(), to.end(), has_log)) {
    return Error{ErrorCode::refused, "the log of node " + std::to_string(id) + " is not known yet"};
  }
  if (options_.guards.waits_for_catch_up) {
    const int state = raft_shim_catch_up_state(shim_.get(), id);
    if (state == raft_shim_catch_up_runs) {
      return Error{ErrorCode::refused, "node " + std::to_string(id) + " still catches up"};
    }
    // A voter by our configuration that does not know it would not vote.
    if (state != raft_shim_catch_up_finished || match(id) < raft_configuration_index()) {
      begin(now);
      raft_shim_update update;
      int error = raft_shim_catch_up(shim_.get(), now, id, &update);
      // It is seen to have caught up when it takes an entry more; without one it never is.
      if (carry_out(error, update, {})) submit(now, EntryType::barrier, empty_entry(), error);
      after(now);
      return Error{ErrorCode::refused, "node " + std::to_string(id) + " begins to catch up"};
    }
  }
  found->role = MemberRole::voter;
  return change(now, to);
}

LogIndex ConsensusCore::raft_configuration_index() const {
  return std::max(raft_shim_committed_configuration(shim_.get()),
                  raft_shim_uncommitted_configuration(shim_.get()));
}

/// The remaining voters must know that they are voters. A member that does not know it of itself
/// does not vote and may be removed in any case: of five members two may have lost their disks.
Status ConsensusCore::check_voters_without(NodeId id) const {
  if (!options_.guards.waits_for_catch_up) return Done{};
  if (id != options_.id && match(id) < raft_configuration_index()) return Done{};
  for (const Member& each : members()) {
    if (each.id == id || each.id == options_.id || each.role != MemberRole::voter) continue;
    if (match(each.id) >= raft_configuration_index()) continue;
    return Error{ErrorCode::refused,
                 "node " + std::to_string(each.id) + " lacks entries that it needs to vote"};
  }
  return Done{};
}

Status ConsensusCore::demote(std::uint64_t now, NodeId id) {
  SEMEL_CHECK(check_change());
  SEMEL_CHECK(check_voters_without(id));
  Configuration to = members();
  const auto found =
      std::find_if(to.begin(), to.end(), [&](const Member& each) { return each.id == id; });
  if (found == to.end()) return no_member(id);
  if (found->role == MemberRole::standby) return Done{};
  found->role = MemberRole::standby;
  return change(now, to);
}

Status ConsensusCore::remove(std::uint64_t now, NodeId id) {
  SEMEL_CHECK(check_change());
  SEMEL_CHECK(check_voters_without(id));
  Configuration to = members();
  if (std::erase_if(to, [&](const Member& each) { return each.id == id; }) == 0) {
    return no_member(id);
  }
  return change(now, to);
}

Status ConsensusCore::learn(std::uint64_t now, const std::map<NodeId, LogIdentity>& logs) {
  SEMEL_CHECK(check_change());
  Configuration to = members();
  bool any = false;
  for (Member& each : to) {
    const auto found = logs.find(each.id);
    if (each.log.is_known() || found == logs.end()) continue;
    each.log = found->second;
    any = true;
  }
  return any ? change(now, to) : Status{Done{}};
}

Status ConsensusCore::transfer(std::uint64_t now, NodeId id) {
  if (failed_ || !is_leader() || is_handing_over()) return Error{ErrorCode::not_leader, {}};
  begin(now);
  raft_shim_update update;
  const int error = raft_shim_transfer(shim_.get(), now, id, &update);
  if (error == 0) carry_out(0, update, {});
  after(now);
  if (error == 0) return Done{};
  return Error{ErrorCode::bad_option, "leadership cannot go to node " + std::to_string(id) + ": " +
                                          raft_shim_error_text(error)};
}

// --- reads ----------------------------------------------------------------------------------

bool ConsensusCore::knows_decided() const {
  return !failed_ && is_leader() && log_.term_of(commit()) == term();
}

Result<std::uint64_t> ConsensusCore::read(std::uint64_t now) {
  if (!knows_decided()) {
    return Error{ErrorCode::not_leader, {}};
  }
  begin(now);
  const std::uint64_t round = answers_.begin_round(commit());
  send_probes();
  answers_.count_rounds(members());
  busy_ = false;
  return round;
}

/// To voters that have not confirmed the newest round. A probe may be lost, or come to a node that
/// is not in this term yet and does not answer.
void ConsensusCore::send_probes() {
  for (const Member& each : members()) {
    if (each.id == options_.id || each.role != MemberRole::voter) continue;
    if (answers_.has_confirmed(each.id)) continue;
    effects_.send({.from = options_.id,
                   .to = each.id,
                   .term = term(),
                   .what = ReadProbe{.round = answers_.round()}});
  }
}

/// It is in the asker's term, so it has voted for no later leader.
void ConsensusCore::answer_probe(const RaftMessage& message) {
  if (is_leader() || message.term != term()) return;
  effects_.send({.from = options_.id,
                 .to = message.from,
                 .term = term(),
                 .what = ReadReply{.round = std::get<ReadProbe>(message.what).round}});
}

void ConsensusCore::count_probe(const RaftMessage& message) {
  const std::uint64_t round = std::get<ReadReply>(message.what).round;
  if (!is_leader() || message.term != term() || round > answers_.round()) return;
  answers_.note_round(message.from, round);
  answers_.count_rounds(members());
}

void ConsensusCore::tell_commit(NodeId id) {
  if (!knows_decided() || member(id) == nullptr) return;
  if (!answers_.note_told(id, commit())) return;
  effects_.send({.from = options_.id,
                 .to = id,
                 .term = term(),
                 .what = CommitNotice{.index = commit(), .index_term = term()}});
}

/// For the library it is a heartbeat that has this entry as its previous one. Its reply stays here:
/// the leader has sent no append that it would be for.
void ConsensusCore::take_notice(std::uint64_t now, const RaftMessage& message) {
  const CommitNotice& notice = std::get<CommitNotice>(message.what);
  if (is_leader() || message.term != term() || leader() != message.from || installing_) return;
  // An equal term at an index means an equal log up to it.
  if (notice.index <= commit() || log_.term_of(notice.index) != notice.index_term) return;
  RaftMessage heartbeat = message;
  heartbeat.what = AppendRequest{.previous_index = notice.index,
                                 .previous_term = notice.index_term,
                                 .commit = notice.index,
                                 .echo = 0,
                                 .entries = {}};
  is_muted_ = true;
  give(now, heartbeat);
  is_muted_ = false;
}

// --- lease ----------------------------------------------------------------------------------

void ConsensusCore::note_echo(const RaftMessage& message) {
  if (failed_ || message.term != term()) return;
  if (const auto* append = std::get_if<AppendRequest>(&message.what)) {
    if (is_leader() || leader() != message.from) return;
    if (std::exchange(echo_term_, term()) != term()) echo_ = 0;
    echo_ = std::max(echo_, append->echo);
  } else if (const auto* reply = std::get_if<AppendReply>(&message.what)) {
    if (!is_leader()) return;
    answers_.note_echo(message.from, reply->echo);
  }
}

std::uint64_t ConsensusCore::heard_at(std::uint64_t now) const {
  return knows_decided() ? answers_.heard_at(members(), now) : 0;
}

std::uint64_t ConsensusCore::lease_until(std::uint64_t now) const {
  if (is_handing_over()) return 0;
  if (options_.guards.gives_lease_up && no_lease_term_ == term()) return 0;
  const std::uint64_t heard = heard_at(now);
  return heard == 0 ? 0 : heard + static_cast<std::uint64_t>(options_.election.count()) * 9 / 10;
}

}  // namespace semel::replication
