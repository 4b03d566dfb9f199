#include "replication/core/member_changes.hpp"

#include <algorithm>
#include <utility>

#include "replication/core/raft_shim.h"

namespace semel::replication {
namespace {

Error no_member(NodeId id) {
  return {ErrorCode::bad_option, "node " + std::to_string(id) + " is not a member"};
}

Member* find_member(Configuration& members, NodeId id) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& each) { return each.id == id; });
  return found == members.end() ? nullptr : &*found;
}

}  // namespace

Result<MemberChanges::Plan> MemberChanges::plan(const MemberChange& change) const {
  SEMEL_CHECK(check_begin());
  return std::visit([this](const auto& each) { return plan_of(each); }, change);
}

Status MemberChanges::check_begin() const {
  if (!raft_.is_leader() || raft_.is_handing_over()) return Error{ErrorCode::not_leader, {}};
  if (raft_.is_changing_members()) {
    return Error{ErrorCode::refused, "another change of members is under way"};
  }
  // Before that, a change of the leader before may be undone by one of ours.
  if (log_.term_of(log_.commit()) != raft_.term()) {
    return Error{ErrorCode::refused, "the leader has not begun its term yet"};
  }
  return Done{};
}

/// A member that lacks the newest configuration would vote, or not, by an older one.
bool MemberChanges::knows_its_role(NodeId id) const {
  return id == options_.id || raft_.match(id) >= raft_.members_index();
}

/// The remaining voters must know that they are voters. A member that does not know it of itself
/// does not vote and may be removed in any case: of five members two may have lost their disks.
Status MemberChanges::check_voters_without(NodeId id) const {
  if (!options_.guards.waits_for_catch_up || !knows_its_role(id)) return Done{};
  for (const Member& each : raft_.members()) {
    if (each.id == id || each.role != MemberRole::voter || knows_its_role(each.id)) continue;
    return Error{ErrorCode::refused,
                 "node " + std::to_string(each.id) + " lacks entries that it needs to vote"};
  }
  return Done{};
}

Result<MemberChanges::Plan> MemberChanges::plan_of(const AddMember& add) const {
  Configuration to = raft_.members();
  for (const Member& each : to) {
    if (each.id != add.id && each.address != add.address) continue;
    return Error{ErrorCode::bad_option, "node " + std::to_string(each.id) + " at " + each.address +
                                            " is a member already"};
  }
  to.push_back({add.id, add.address, MemberRole::standby});
  return Plan{.members = std::move(to)};
}

Result<MemberChanges::Plan> MemberChanges::plan_of(const PromoteMember& promote) const {
  const NodeId id = promote.id;
  Configuration to = raft_.members();
  Member* const found = find_member(to, id);
  if (found == nullptr) return no_member(id);
  if (found->role == MemberRole::voter) return Plan{};
  // It could lose its disk, and vote again with another one.
  const auto has_log = [](const Member& each) { return each.log.is_known(); };
  if (!found->log.is_known() && std::any_of(to.begin(), to.end(), has_log)) {
    return Error{ErrorCode::refused, "the log of node " + std::to_string(id) + " is not known yet"};
  }
  if (options_.guards.waits_for_catch_up) {
    const int state = raft_.catch_up_state(id);
    if (state == raft_shim_catch_up_runs) {
      return Error{ErrorCode::refused, "node " + std::to_string(id) + " still catches up"};
    }
    // A voter by our configuration that does not know it would not vote.
    if (state != raft_shim_catch_up_finished || raft_.match(id) < raft_.members_index()) {
      return Plan{.catches_up = id};
    }
  }
  found->role = MemberRole::voter;
  return Plan{.members = std::move(to)};
}

Result<MemberChanges::Plan> MemberChanges::plan_of(const DemoteMember& demote) const {
  SEMEL_CHECK(check_voters_without(demote.id));
  Configuration to = raft_.members();
  Member* const found = find_member(to, demote.id);
  if (found == nullptr) return no_member(demote.id);
  if (found->role == MemberRole::standby) return Plan{};
  found->role = MemberRole::standby;
  return Plan{.members = std::move(to)};
}

Result<MemberChanges::Plan> MemberChanges::plan_of(const RemoveMember& remove) const {
  SEMEL_CHECK(check_voters_without(remove.id));
  Configuration to = raft_.members();
  if (std::erase_if(to, [&](const Member& each) { return each.id == remove.id; }) == 0) {
    return no_member(remove.id);
  }
  return Plan{.members = std::move(to)};
}

Result<MemberChanges::Plan> MemberChanges::plan_of(const LearnLogs& learn) const {
  Configuration to = raft_.members();
  bool any = false;
  for (Member& each : to) {
    const auto found = learn.logs.find(each.id);
    if (each.log.is_known() || found == learn.logs.end()) continue;
    each.log = found->second;
    any = true;
  }
  if (!any) return Plan{};
  return Plan{.members = std::move(to)};
}

}  // namespace semel::replication
