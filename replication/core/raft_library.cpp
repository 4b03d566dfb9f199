#include "replication/core/raft_library.hpp"

#include <algorithm>
#include <string>

#include "replication/core/raft_shim.h"
#include "replication/core/shim_convert.hpp"

namespace semel::replication {

void RaftLibrary::Deleter::operator()(raft_shim* shim) const noexcept {
  raft_shim_delete(shim);
}

Result<RaftLibrary> RaftLibrary::make(const ConsensusOptions& options) {
  const int version = raft_shim_version();
  if (version < raft_shim_version_min || version >= raft_shim_version_end) {
    return Error{ErrorCode::bad_option, "libraft " + std::to_string(version) + ", needed is " +
                                            std::to_string(raft_shim_version_min) + " to " +
                                            std::to_string(raft_shim_version_end - 1)};
  }
  if (options.id == 0 || options.election < 2 * options.heartbeat ||
      options.heartbeat <= Millis{0} || options.uncommitted_max == 0 ||
      options.apply_entries_max == 0 || options.apply_bytes_max == 0) {
    return Error{ErrorCode::bad_option,
                 "node id " + std::to_string(options.id) + ", election " +
                     std::to_string(options.election.count()) + " ms, heartbeat " +
                     std::to_string(options.heartbeat.count()) +
                     " ms: the id is from 1, an election takes two heartbeats at least"};
  }
  constexpr unsigned no_bound = 1'000'000;
  raft_shim* const shim = raft_shim_new(options.id, options.address.c_str(), options.seed,
                                        static_cast<unsigned>(options.election.count()),
                                        static_cast<unsigned>(options.heartbeat.count()),
                                        options.guards.bounds_uncommitted
                                            ? static_cast<unsigned>(options.uncommitted_max)
                                            : no_bound);
  if (shim == nullptr) return Error{ErrorCode::memory_full, "libraft"};
  return RaftLibrary{shim};
}

Role RaftLibrary::role() const noexcept {
  switch (raft_shim_state(shim_.get())) {
    case raft_shim_leader:
      return Role::leader;
    case raft_shim_candidate:
      return Role::candidate;
    default:
      return Role::follower;
  }
}
Term RaftLibrary::term() const noexcept {
  return raft_shim_term(shim_.get());
}
NodeId RaftLibrary::voted_for() const noexcept {
  return raft_shim_voted_for(shim_.get());
}
NodeId RaftLibrary::leader() const noexcept {
  return raft_shim_leader_id(shim_.get());
}
bool RaftLibrary::is_handing_over() const noexcept {
  return raft_shim_transferee(shim_.get()) != 0;
}
std::uint64_t RaftLibrary::next_timeout() const noexcept {
  return raft_shim_timeout(shim_.get());
}

// --- the log ------------------------------------------------------------------------------------

LogIndex RaftLibrary::stored() const noexcept {
  return raft_shim_stored(shim_.get());
}
LogIndex RaftLibrary::commit() const noexcept {
  return raft_shim_commit(shim_.get());
}
LogIndex RaftLibrary::match(NodeId id) const noexcept {
  return raft_shim_match(shim_.get(), id);
}
int RaftLibrary::catch_up_state(NodeId id) const noexcept {
  return raft_shim_catch_up_state(shim_.get(), id);
}

// --- members ------------------------------------------------------------------------------------

Configuration RaftLibrary::members() const {
  Configuration found;
  for (std::size_t i = 0; i < raft_shim_member_count(shim_.get()); ++i) {
    raft_shim_member member;
    raft_shim_member_at(shim_.get(), i, &member);
    found.push_back(to_member(member));
  }
  return found;
}

std::optional<Member> RaftLibrary::member(NodeId id) const {
  for (std::size_t i = 0; i < raft_shim_member_count(shim_.get()); ++i) {
    raft_shim_member member;
    raft_shim_member_at(shim_.get(), i, &member);
    if (member.id == id) return to_member(member);
  }
  return std::nullopt;
}

LogIndex RaftLibrary::changing_index() const noexcept {
  return raft_shim_uncommitted_configuration(shim_.get());
}

LogIndex RaftLibrary::members_index() const noexcept {
  return std::max(raft_shim_committed_configuration(shim_.get()), changing_index());
}

}  // namespace semel::replication
