// What a replica is opened with, and what it says of itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replication/core/consensus_core.hpp"
#include "replication/proposals/proposal_terms.hpp"
#include "replication/transport/transport_options.hpp"
#include "semel/clock.hpp"
#include "semel/options.hpp"
#include "storage/log/disk.hpp"

namespace semel::replication {

/// An event for the operator log.
struct ReplicaEvent {
  enum class What : std::uint8_t {
    role,              ///< it leads, or follows, or knows no leader
    members,           ///< the group has others than before
    snapshot,          ///< one was written, or begins to come from another node
    snapshot_failed,   ///< to be written, sent or taken
    peer_refused,      ///< a peer that connected was refused
    peer_unreachable,  ///< once for each reason, until it is reached
    disk_full,         ///< nothing is acknowledged until there is space
    disk_has_space,
    disk_slow,     ///< a write or sync takes longer than a second
    disk_in_time,  ///< it has ended
    stalled,       ///< commands wait, and nothing is applied
    goes_on,       ///< something is again
    clock_off,     ///< the wall clock is far from the group's time
    clock_right,
    stopped,  ///< this node takes part no longer
  };
  What what;
  Term term;
  std::string text;
};

struct ReplicaOptions {
  std::uint64_t cluster_id = 0;  ///< not 0; nodes of other clusters are refused
  NodeId node_id = 0;            ///< from 1
  std::string directory;         ///< of this node alone
  std::string listen;            ///< host:port for the other nodes
  std::string address{};         ///< by which they reach it; empty: `listen`
  bool forwards = false;         ///< a follower forwards proposals to the leader
  /// The leader answers reads while it holds its lease (Leadership::lease_until), without a
  /// round.
  bool reads_by_lease = false;
  /// First members of the group, this node among them, the same on each. Looked at only when the
  /// directory is empty. None: this node waits until a leader adds it.
  std::map<NodeId, std::string> founders{};
  /// An empty directory becomes that of a first member of a new group. Only once: a node that has
  /// lost its disk and founds its group again would vote without what it had acknowledged.
  bool founds = false;
  std::optional<PeerTls> tls{};  ///< none: plain bytes, for private networks
  Millis election{500};
  Millis heartbeat{50};
  /// Sent to a node that joins, and of entries that one takes.
  std::uint64_t snapshot_bytes_per_s = std::uint64_t{64} << 20;
  /// A snapshot is taken when the replicated log has grown by so much, and by as much as the last
  /// snapshot.
  std::uint64_t snapshot_every_bytes = std::uint64_t{64} << 20;
  /// Of the replicated log, kept behind a snapshot for nodes that were away for a short time.
  std::uint64_t trailing_bytes = std::uint64_t{64} << 20;
  std::size_t segment_bytes = std::size_t{16} << 20;
  std::size_t proposals_bytes_max = std::size_t{64} << 20;     ///< that wait to be proposed
  Millis clock_ahead_max{std::int64_t{7} * 24 * 3600 * 1000};  ///< of a wall clock after a start
  Options engine{};                                            ///< without journal and cold store
  storage::Disk* disk = nullptr;                               ///< null: the file system
  const Clock* clock = nullptr;               ///< null: the system\'s; it must outlive the replica
  FeatureLevel level = feature_level_newest;  ///< that this node knows; tests play other releases
  bool accepts_copy = false;                  ///< of a directory that was copied (EntryLogOptions)
  /// From any thread; must not call the replica.
  std::function<void(const ReplicaEvent& event)> report{};
};

/// Bytes of one command: an entry must fit into a segment of the log, and a frame.
[[nodiscard]] inline std::size_t command_bytes_max(const ReplicaOptions& options) noexcept {
  return std::min(options.segment_bytes / 2, std::size_t{8} << 20);
}

struct ReplicaStatus {
  Role role = Role::follower;
  Term term = 0;
  NodeId leader = 0;  ///< 0: not known
  std::string leader_address{};
  LogIndex commit = 0;
  LogIndex applied = 0;
  LogIndex first = 1;
  LogIndex last = 0;
  LogIndex snapshot = 0;
  Configuration members{};
  std::map<NodeId, LogIndex> matches{};  ///< of the leader
  std::map<NodeId, PeerStats> peers{};
  std::uint64_t elections = 0;  ///< won by this node since it began
  std::uint64_t syncs = 0;
  FeatureLevel level = 0;                            ///< that the group has decided; 0: none yet
  FeatureLevel level_newest = feature_level_newest;  ///< that this node knows
  std::int64_t clock_off_ms = 0;                     ///< the wall clock minus the group's time
  LogIndex leader_commit = 0;  ///< the newest that a leader has said is committed
  bool is_changing_members = false;
  bool is_fetching = false;     ///< a snapshot comes
  std::uint64_t log_bytes = 0;  ///< of the log on the disk
  TransportTotals totals{};
  bool disk_is_full = false;
  std::uint64_t stalled_ms = 0;  ///< commands wait, and nothing was applied; 0: no stall
  std::string failed{};          ///< why it has stopped; empty: it runs
  bool needs_reopen = false;     ///< a snapshot has come that only open() can take
};

}  // namespace semel::replication
