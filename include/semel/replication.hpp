// A group of processes that link Semel: what one of them is answered is on the disks of a majority,
// and the end of a minority of them takes nothing. No server is needed.
//
//   auto group = Replication::open({.cluster_id = 0xC0FFEE, .node_id = 1, .directory = "orders-1",
//                                   .peers = {{1, "10.0.0.1:7100"}, {2, "10.0.0.2:7100"},
//                                             {3, "10.0.0.3:7100"}}});
//   auto orders = group->engine().claims("orders", Policy{});
//   auto work = orders->claim({.key = "1001"});
//
// The engine is used as any other one, with the patterns on top. A call that changes something, or
// that must see what others have changed, waits for the leader and a majority.
//
// Source: docs/replication.md
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "semel/engine.hpp"
#include "semel/options.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

namespace replication {
struct ReplicationHost;  // the way in of GroupNode, whose replica runs requests of clients
}

/// PEM files. A certificate has the URI semel://CLUSTER/NODE in its subjectAltName: the cluster as
/// 16 hex digits, the node in decimals.
struct ReplicationTls {
  std::string certificate{};
  std::string key{};
  std::string authority{};
};

struct ReplicationOptions {
  std::uint64_t cluster_id = 0;  ///< not 0; nodes of other clusters are refused
  std::uint64_t node_id = 0;     ///< from 1; never used again when its directory is lost
  std::string directory{};       ///< of this node alone
  /// First members and their addresses, host:port, this node among them, the same on each. None:
  /// this node waits until the leader adds it (add()).
  std::map<std::uint64_t, std::string> peers{};
  std::string listen{};   ///< host:port; empty: the address of this node among `peers`
  std::string address{};  ///< by which others reach this node; empty: `listen`
  std::optional<ReplicationTls> tls{};  ///< none: plain bytes, for private networks
  Millis election{500};                 ///< without a leader for so long: another one. 50 ms..60 s
  Millis heartbeat{50};                 ///< at most a third of it
  /// How long a call waits for a leader, and is asked again when one ends. Then it ends with
  /// not_leader, or with outcome_unknown. 0..10 min.
  Millis patience{5'000};
  /// Limits are to be the same on each node. Neither journal nor cold store nor clock; durability
  /// is quorum, whatever it says. 256 MiB more than memory_bytes are used for calls under way.
  Options engine{};
  /// For the operator log. From any thread; must not call the engine. What it throws is dropped.
  std::function<void(const std::string& what)> report{};
};

struct ReplicationMember {
  std::uint64_t id = 0;
  std::string address{};
  bool is_voter = true;
  bool is_connected = false;
  std::uint64_t feature_level = 0;  ///< that its release knows; 0: it was not met
};

/// What one node knows of its group and of its own part in it.
struct ReplicationProgress {
  bool leads = false;
  std::uint64_t leader = 0;  ///< 0: not known
  std::uint64_t term = 0;
  std::uint64_t commit = 0;                ///< entries that a majority has, as far as is known here
  std::uint64_t applied = 0;               ///< of them, those that the engine shows
  std::uint64_t feature_level = 1;         ///< that the group uses
  std::uint64_t feature_level_newest = 1;  ///< that this node's release knows
  bool disk_is_full = false;               ///< this node acknowledges nothing until there is space
  /// A snapshot has come that takes the place of the state: end this object and open it again.
  bool needs_reopen = false;
  bool is_fetching = false;         ///< a snapshot comes from another node, or has come
  std::uint64_t leader_commit = 0;  ///< the newest commit index that a leader has reported
  std::int64_t clock_off_ms = 0;    ///< the wall clock minus the group's time
  std::uint64_t stalled_ms = 0;     ///< commands wait, and nothing was applied; 0: no stall
  /// Entries that are committed and not applied here.
  [[nodiscard]] std::uint64_t lag() const noexcept {
    return leader_commit < applied ? 0 : leader_commit - applied;
  }
};

struct ReplicationStatus : ReplicationProgress {
  std::string failed{};  ///< why this node takes part no longer; empty: it does
  std::vector<ReplicationMember> members{};
};

class Replication {
 public:
  /// Prepares the directory of one of the first members. Once in its life: a node that has lost its
  /// disk must not begin again, as it would vote without what it has acknowledged; begin it empty
  /// under a new number. A directory that is prepared stays as it is: bad_option, so a service
  /// calls this before its first start alone. Errors: those of open().
  [[nodiscard]] static Status found(const ReplicationOptions& options);
  /// Reads the directory and joins the group. Does not wait for a leader. Errors: bad_option,
  /// storage_in_use (the directory, or the address), storage_failed, storage_damaged, memory_full,
  /// no_thread.
  [[nodiscard]] static Result<std::unique_ptr<Replication>> open(const ReplicationOptions& options);
  /// Hands leadership over if it has it, and leaves. Calls under way end with closing, or with
  /// outcome_unknown; no other call may begin. Not in a callback of the engine.
  ~Replication();
  Replication(const Replication&) = delete;
  Replication& operator=(const Replication&) = delete;

  /// As long as this. Its calls have these besides: errors not_leader (no leader in time, nothing
  /// was changed) and outcome_unknown (asked again by the caller, claims and calls of owners are
  /// safe; this service has asked for as long as `patience`, and changed nothing twice). Progress:
  /// they block for the leader and a majority; a claim of finished work is answered from this
  /// node's state. Sections may read and not write. flush() answers 0, not how many there were.
  /// drop_namespace() takes unused namespaces alone. Scans, sizes and statistics are of this node.
  /// A claim is bound to no process unless it names a session.
  [[nodiscard]] Engine& engine() noexcept;
  /// In a child of its process `failed` is set, and all calls here end with forked.
  [[nodiscard]] ReplicationStatus status() const;
  /// Whether this node should be given work, for a load balancer. Errors, whose detail is a whole
  /// sentence: closing (it takes part no longer, or leaves), forked, not_leader (none is known),
  /// log_busy (a snapshot is fetched, or it lags behind by more than `lag_max` entries).
  [[nodiscard]] Status ready(std::uint64_t lag_max = 10'000) const;

  // --- for operators, at the leader -------------------------------------------------------------
  // Errors: not_leader, refused (too early; says why), bad_option (says what), closing. Progress:
  // they block until the change is proposed.
  [[nodiscard]] Status add(std::uint64_t id, const std::string& address);
  [[nodiscard]] Status promote(std::uint64_t id);
  [[nodiscard]] Status demote(std::uint64_t id);
  [[nodiscard]] Status remove(std::uint64_t id);
  /// 0: to one that has everything.
  [[nodiscard]] Status transfer(std::uint64_t id = 0);
  /// After the last service was upgraded: the group uses what the releases of all members know, and
  /// earlier ones can take part no longer. Blocks until it is decided. Errors: besides,
  /// outcome_unknown.
  [[nodiscard]] Status upgrade();
  [[nodiscard]] Status reload_tls(const ReplicationTls& files);

 private:
  friend struct replication::ReplicationHost;
  class Impl;
  explicit Replication(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
