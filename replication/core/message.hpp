// Messages of the nodes of a group about the replicated log (Raft). Plain values: the core makes
// and takes them, the transport carries them, neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "replication/core/types.hpp"

namespace semel::replication {

/// Data of an entry is shared: the replicated log, messages to several peers and the writer hold it
/// once.
using SharedData = std::shared_ptr<const std::string>;

enum class EntryType : std::uint8_t { command = 1, barrier = 2, configuration = 3 };

struct RaftEntry {
  Term term = 0;
  EntryType type = EntryType::command;
  SharedData data;  ///< never null
};

/// Of the log that a node has (log_identity.hpp); zeros: not known.
struct LogIdentity {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  [[nodiscard]] bool is_known() const noexcept { return high != 0 || low != 0; }
  [[nodiscard]] std::string text() const;  ///< 32 hexadecimal digits
  [[nodiscard]] bool operator==(const LogIdentity&) const = default;
};

enum class MemberRole : std::uint8_t { standby = 0, voter = 1 };
struct Member {
  NodeId id = 0;
  std::string address;  ///< host:port
  MemberRole role = MemberRole::voter;
  LogIdentity log{};
  [[nodiscard]] bool operator==(const Member&) const = default;
};
using Configuration = std::vector<Member>;
inline constexpr std::size_t members_max = 16;
inline constexpr std::size_t address_bytes_max = 256;
/// With the identity of a log (full_address()).
inline constexpr std::size_t full_address_bytes_max = address_bytes_max + 33;

struct SnapshotId {
  LogIndex index = 0;  ///< of the last entry in it
  Term term = 0;
  LogIndex configuration_index = 0;
  Configuration configuration;
};

struct VoteRequest {
  LogIndex last_index = 0;
  Term last_term = 0;
  bool disrupts_leader = false;  ///< of a transfer: the vote is wanted although a leader is known
  bool is_pre_vote = false;
};
struct VoteReply {
  bool is_granted = false;
  bool is_pre_vote = false;
  // What the voter thinks of the group's time: the node's affair, not the core's.
  std::int64_t unix_ms = 0;
  bool is_time_known = false;
  Term time_term = 0;  ///< of the leader that it is of; 0: it is not said
};
struct AppendRequest {
  LogIndex previous_index = 0;
  Term previous_term = 0;
  LogIndex commit = 0;
  std::uint64_t echo = 0;  ///< when it was sent, by the leader's clock: comes back, for leases
  std::vector<RaftEntry> entries;
  std::uint64_t mark = 0;    ///< of the receiver's newest reply (Freshness): the node's affair
  std::int64_t unix_ms = 0;  ///< the group's time for the leader (GroupClock); 0: it is not said
};
struct AppendReply {
  LogIndex rejected = 0;  ///< 0: accepted
  LogIndex last_index = 0;
  std::uint64_t echo = 0;
  std::uint64_t mark = 0;  ///< comes back in an append (Freshness): the node's affair
};
/// The state itself goes over a connection of its own before this reaches the core.
struct SnapshotOffer {
  SnapshotId snapshot;
  SharedData manifest;  ///< the transport's and the node's affair; the core hands it through
};
struct TimeoutNow {
  LogIndex last_index = 0;
  Term last_term = 0;
};

/// Asks whether its sender still is the leader: for reads. It is ours, not Raft's library's.
struct ReadProbe {
  std::uint64_t round = 0;
};
/// Yes, at the moment of the answer: the term is the same. Otherwise there is no answer.
struct ReadReply {
  std::uint64_t round = 0;
};

/// So far a majority has the entries: at once, to one that waits for it, instead of with the next
/// append. Ours as well; there is no answer.
struct CommitNotice {
  LogIndex index = 0;
  Term index_term = 0;
};

struct RaftMessage {
  NodeId from = 0;
  NodeId to = 0;
  Term term = 0;  ///< the sender's, or of a pre-vote the term that is asked for
  std::variant<VoteRequest, VoteReply, AppendRequest, AppendReply, SnapshotOffer, TimeoutNow,
               ReadProbe, ReadReply, CommitNotice>
      what;
};

}  // namespace semel::replication
