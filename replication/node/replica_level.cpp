// Which level of features the group uses.
//
// An operator raises it when the last node has been upgraded: until then each of them may go back
// to the release before. A group that is new has nothing to go back to: its first entries say what
// all of its members know.
//
// From feature_level_identities on the configuration says which log each member has: one that comes
// with another one has lost its disk. No leader lets it in, and no candidate counts its vote.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/node/replica_loop.hpp"

namespace semel::replication {

/// A member that is not connected may be of an earlier release, and would stop at the entry.
Result<FeatureLevel> ReplicaLoop::known_to_all() const {
  if (!core_->is_leader()) return Error{ErrorCode::not_leader, {}};
  const std::map<NodeId, PeerStats> peers = transport_->stats();
  FeatureLevel common = options_.level;
  for (const Member& each : core_->members()) {
    if (each.id == options_.node_id) continue;
    const auto peer = peers.find(each.id);
    if (peer == peers.end() || !peer->second.is_connected || peer->second.level == 0) {
      return Error{ErrorCode::refused, "node " + std::to_string(each.id) +
                                           " is not connected: what it knows is not known"};
    }
    common = std::min(common, peer->second.level);
  }
  return common;
}

Result<FeatureLevel> ReplicaLoop::common_level() {
  Result<FeatureLevel> common = Error{ErrorCode::closing, {}};
  SEMEL_CHECK(call([&](ConsensusCore&, std::uint64_t) {
    common = known_to_all();
    return common.ok() ? Status{semel::Done{}} : Status{common.error()};
  }));
  return common;
}

Status ReplicaLoop::promote(NodeId id) {
  return call([&](ConsensusCore& core, std::uint64_t now) -> Status {
    const Configuration members = core.members();
    const bool is_unknown = std::any_of(members.begin(), members.end(), [&](const Member& each) {
      return each.id == id && each.role == MemberRole::standby && !each.log.is_known();
    });
    // The core asks for it as soon as any is known. In a new group none may be yet.
    if (is_unknown && core.is_leader() && state_->level() >= feature_level_identities) {
      return Error{ErrorCode::refused,
                   "the log of node " + std::to_string(id) + " is not known yet"};
    }
    return core.promote(now, id);
  });
}

void ReplicaLoop::judge_logs() {
  transport_->expect_logs(core_->is_leader()
                              ? member_logs_.expected(core_->term(), core_->members())
                              : std::map<NodeId, LogIdentity>{});
}

void ReplicaLoop::learn_logs() {
  if (!core_->is_leader() || options_.level < feature_level_identities) return;
  judge_logs();
  const Configuration members = core_->members();
  if (state_->level() < feature_level_identities || core_->is_changing_members()) return;
  const auto logs = member_logs_.to_learn(core_->term(), members, options_.node_id, log_identity_);
  // Where it is too early, or leadership is handed over, a later tick does it.
  if (!logs.empty()) static_cast<void>(core_->learn(now(), logs));
}

void ReplicaLoop::begin_level() {
  constexpr std::uint64_t pause_ms = 1'000;  // for the entry to be decided
  if (state_->level() != 0 || !core_->is_leader() || core_->is_handing_over() ||
      now() < level_asked_ + pause_ms) {
    return;
  }
  const Result<FeatureLevel> common = known_to_all();
  if (!common.ok()) return;
  level_asked_ = now();
  auto prepared = prepare({FeatureLevelCommand{*common}});
  SEMEL_ASSERT(prepared.ok());
  propose(*std::move(prepared), [](const Result<Answer>&) {},
          {.repeats = true, .is_numbered = false});
}

}  // namespace semel::replication
