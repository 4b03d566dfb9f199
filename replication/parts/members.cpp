// From feature_level_identities on the configuration says which replicated log each member has: one
// that comes with another one has lost its disk. No leader lets it in, and no candidate counts its
// vote.
//
// An operator raises the level of features when the last node has been upgraded: until then each of
// them may go back to the release before. A group that is new has nothing to go back to: its first
// entries say what all of its members know.
#include "replication/parts/members.hpp"

#include <utility>

namespace semel::replication {

// --- connections --------------------------------------------------------------------------------

void Members::connect() {
  if (!std::exchange(has_changed_, false)) return;
  std::map<NodeId, std::string> peers = met_;
  for (const Member& each : parts_.core.raft().members()) peers[each.id] = peer_part(each.address);
  parts_.transport.set_peers(peers);
  judge_logs();
}

bool Members::meet(NodeId id, const std::string& address) {
  std::string peer = peer_part(address);
  if (!split_address(peer)) return false;
  for (const Member& each : parts_.core.raft().members()) {
    if (each.id == id) return false;
  }
  // A leader that this node does not know yet: it can be answered only over a connection to it.
  if (met_.size() >= members_max && met_.count(id) == 0) met_.clear();  // the leader comes again
  std::string& known = met_[id];
  if (known != peer) note_change();
  known = std::move(peer);
  return true;
}

bool Members::knows(NodeId id) const {
  const Configuration members = parts_.core.raft().members();
  const NodeId leader = parts_.core.raft().leader();
  const bool may_lead = !parts_.core.raft().is_leader() && (leader == 0 || leader == id);
  if (members.empty() || may_lead) return true;
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& each) { return each.id == id; });
}

bool Members::is_joining() const {
  constexpr LogIndex far = 1'000;
  if (leader_commit_ < parts_.core.log().last() + far) return false;
  const Configuration members = parts_.core.raft().members();
  return std::none_of(members.begin(), members.end(), [this](const Member& each) {
    return each.id == parts_.options.node_id && each.role == MemberRole::voter;
  });
}

// --- logs ---------------------------------------------------------------------------------------

bool Members::has_lost_log(NodeId id) const {
  return has_other_log(parts_.core.raft().members(), id, parts_.transport.log_of(id));
}

void Members::note_reply(NodeId from, Term term) {
  const ConsensusCore& core = parts_.core;
  if (term != core.raft().term() || !core.raft().is_leader() || core.raft().match(from) == 0)
    return;
  logs_.replied(term, from, parts_.transport.log_of(from));
}

void Members::judge_logs() {
  const ConsensusCore& core = parts_.core;
  parts_.transport.expect_logs(core.raft().is_leader()
                                   ? logs_.expected(core.raft().term(), core.raft().members())
                                   : std::map<NodeId, LogIdentity>{});
}

void Members::learn_logs(std::uint64_t now) {
  ConsensusCore& core = parts_.core;
  if (!core.raft().is_leader() || parts_.options.level < feature_level_identities) return;
  judge_logs();
  if (parts_.state.level() < feature_level_identities || core.raft().is_changing_members()) return;
  const auto logs =
      logs_.to_learn(core.raft().term(), core.raft().members(), parts_.options.node_id, parts_.log);
  // Where it is too early, or leadership is handed over, a later tick does it.
  if (!logs.empty()) static_cast<void>(core.change(now, LearnLogs{logs}));
}

Status Members::check_promotion(NodeId id) const {
  const Configuration members = parts_.core.raft().members();
  const bool is_unknown = std::any_of(members.begin(), members.end(), [&](const Member& each) {
    return each.id == id && each.role == MemberRole::standby && !each.log.is_known();
  });
  // The core asks for it as soon as any is known. In a new group none may be yet.
  if (is_unknown && parts_.core.raft().is_leader() &&
      parts_.state.level() >= feature_level_identities) {
    return Error{ErrorCode::refused, "the log of node " + std::to_string(id) + " is not known yet"};
  }
  return Done{};
}

// --- the level of features ----------------------------------------------------------------------

Result<FeatureLevel> Members::common_level() const {
  if (!parts_.core.raft().is_leader()) return Error{ErrorCode::not_leader, {}};
  const std::map<NodeId, PeerStats> peers = parts_.transport.stats();
  FeatureLevel common = parts_.options.level;
  for (const Member& each : parts_.core.raft().members()) {
    if (each.id == parts_.options.node_id) continue;
    const auto peer = peers.find(each.id);
    if (peer == peers.end() || !peer->second.is_connected || peer->second.level == 0) {
      return Error{ErrorCode::refused, "node " + std::to_string(each.id) +
                                           " is not connected: what it knows is not known"};
    }
    common = std::min(common, peer->second.level);
  }
  return common;
}

std::optional<FeatureLevel> Members::level_to_begin(std::uint64_t now) {
  constexpr std::uint64_t pause_ms = 1'000;  // for the entry to be decided
  const ConsensusCore& core = parts_.core;
  if (parts_.state.level() != 0 || !core.raft().is_leader() || core.raft().is_handing_over())
    return std::nullopt;
  if (now < level_asked_ + pause_ms) return std::nullopt;
  // A leader that has begun anew has not applied yet which level the group has decided.
  if (!core.leadership().knows_decided() || core.must_apply_more()) return std::nullopt;
  const Result<FeatureLevel> common = common_level();
  if (!common.ok()) return std::nullopt;
  level_asked_ = now;
  return *common;
}

}  // namespace semel::replication
