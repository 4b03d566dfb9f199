#include "replication/core/shim_convert.hpp"

#include <utility>

#include "base/assert.hpp"
#include "replication/core/log_identity.hpp"

namespace semel::replication {

Member to_member(const raft_shim_member& member) {
  Member made{
      member.id, {}, member.role == raft_shim_voter ? MemberRole::voter : MemberRole::standby};
  set_full_address(made, member.address);
  return made;
}

ShimMembers to_shim(const Configuration& configuration) {
  ShimMembers made;
  made.members.reserve(configuration.size());
  for (const Member& each : configuration) {
    made.addresses.push_back(full_address(each));
    made.members.push_back({each.id, made.addresses.back().c_str(),
                            each.role == MemberRole::voter ? raft_shim_voter : raft_shim_standby});
  }
  return made;
}

std::vector<raft_shim_entry> to_shim(const std::vector<RaftEntry>& entries) {
  std::vector<raft_shim_entry> made;
  made.reserve(entries.size());
  for (const RaftEntry& each : entries) {
    made.push_back({each.term, static_cast<int>(each.type), each.data->data(), each.data->size()});
  }
  return made;
}

raft_shim_snapshot to_shim(const SnapshotId& snapshot, ShimMembers& members) {
  members = to_shim(snapshot.configuration);
  return {snapshot.index, snapshot.term, snapshot.configuration_index, members.members.data(),
          members.members.size()};
}

ShimMessage::ShimMessage(const RaftMessage& from, std::string address)
    : address_(std::move(address)) {
  message_.peer = from.from;
  message_.address = address_.c_str();
  message_.term = from.term;
  std::visit([this](const auto& what) { set(what); }, from.what);
  SEMEL_ASSERT(message_.type != 0);
}

void ShimMessage::set(const VoteRequest& vote) {
  message_.type = raft_shim_type_vote;
  message_.index = vote.last_index;
  message_.index_term = vote.last_term;
  message_.yes = vote.disrupts_leader;
  message_.pre_vote = vote.is_pre_vote;
}
void ShimMessage::set(const VoteReply& voted) {
  message_.type = raft_shim_type_vote_reply;
  message_.yes = voted.is_granted;
  message_.pre_vote = voted.is_pre_vote;
}
void ShimMessage::set(const AppendRequest& append) {
  message_.type = raft_shim_type_append;
  message_.index = append.previous_index;
  message_.index_term = append.previous_term;
  message_.second = append.commit;
  entries_ = to_shim(append.entries);
  message_.entries = entries_.data();
  message_.count = entries_.size();
}
void ShimMessage::set(const AppendReply& reply) {
  message_.type = raft_shim_type_append_reply;
  message_.index = reply.rejected;
  message_.second = reply.last_index;
}
void ShimMessage::set(const SnapshotOffer& offer) {
  message_.type = raft_shim_type_snapshot;
  message_.snapshot = to_shim(offer.snapshot, members_);
}
void ShimMessage::set(const TimeoutNow& timeout) {
  message_.type = raft_shim_type_timeout_now;
  message_.index = timeout.last_index;
  message_.index_term = timeout.last_term;
}

}  // namespace semel::replication
