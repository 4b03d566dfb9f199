// A node of a group in this process. Its engine is used as any other, the commands of Redis are
// called as functions, and both go through the group's log: an acknowledged change is on the disks
// of a majority. The other members are services that embed a node, or processes of `semel node`.
//
//   ReplicationOptions options{.cluster_id = 0xC0FFEE, .node_id = 1, .directory = "orders-1"};
//   options.peers = {{1, "10.0.0.1:7100"}, {2, "10.0.0.2:7100"}, {3, "10.0.0.3:7100"}};
//   auto node = GroupNode::open(options).value();
//   auto orders = node->engine().claims("orders", Policy{}).value();
//   auto work = orders.claim({.key = "1001"});
//   node->redis().call({"SEMEL.CLAIM", "orders", "1001"});  // in_flight: it is the same claim
//
// A service that needs no commands, in a group without `semel node`, opens a Replication instead:
// it is smaller, and links no interpreter of Lua.
//
// Source: docs/replication.md#in-process-a-node-of-the-group
#pragma once

#include <memory>

#include "semel/engine.hpp"
#include "semel/local_redis.hpp"
#include "semel/replication.hpp"
#include "semel/result.hpp"

namespace semel {

/// Thread-safe but for the destructor. A process may have several, each with its own directory and
/// address. In a child of its process no call has an effect (calls of engine() and group() end with
/// forked, those of redis() with an error reply), and the destructor frees nothing.
class GroupNode {
 public:
  /// Replication::found(): prepares the directory of a first member, once in its life. The
  /// directory is that of `semel node`, too. Errors: those of open().
  [[nodiscard]] static Status found(const ReplicationOptions& options);
  /// Reads the directory and joins the group. Does not wait for a leader: calls do, for as long as
  /// `patience` says. The limits of keys and values are those of `semel node`, whatever `options`
  /// say, as all members must have the same; `engine.background` is ignored, as a GroupNode has a
  /// thread that sweeps. A wall clock that steps while this runs ends no lease early; `report` and
  /// status().clock_off_ms name the difference. Exceptions: std::bad_alloc. Errors, after which
  /// directory, address and threads are free again: bad_option (names the option), storage_in_use
  /// (directory or address; by this process or another one), storage_failed, storage_damaged,
  /// storage_newer (the group uses features of a later release; after the start, status().failed
  /// names them), memory_full, no_thread, out_of_address_space.
  [[nodiscard]] static Result<std::unique_ptr<GroupNode>> open(const ReplicationOptions& options);
  /// As stop(), which ends calls of engine() under way; no other may begin. The clients of redis()
  /// must be gone. Not in a callback.
  ~GroupNode();
  GroupNode(const GroupNode&) = delete;
  GroupNode& operator=(const GroupNode&) = delete;

  /// Hands the lead over if it has it, and leaves the group until the directory is opened again.
  /// Calls and waits of all threads end with closing or outcome_unknown, commands with the error
  /// reply of that; so do later changes and reads. A client that said READONLY still reads. Again:
  /// without effect. Not in a callback. Progress: blocks for 300 ms at most for the next leader,
  /// for a sync of the log, and for callbacks under way.
  void stop();

  /// As Replication::engine(). Valid until the destructor.
  [[nodiscard]] Engine& engine() noexcept;
  /// The commands of Redis, as a node with `cluster-forward yes` carries them out: the group
  /// decides each, wherever the leader is. Without a leader a command waits for as long as
  /// `patience` says; the reply is then CLUSTERDOWN (nothing was changed) or TRYAGAIN (the outcome
  /// is unknown). A client that said READONLY reads this node's own state, which may be stale.
  /// SHUTDOWN, CONFIG REWRITE and other commands for the program around a node are refused. A
  /// command blocks its thread until the reply. Valid until the destructor.
  [[nodiscard]] LocalRedis& redis() noexcept;
  /// The group and this node's part in it: status(), ready(), and the calls of operators. Valid
  /// until the destructor.
  [[nodiscard]] Replication& group() noexcept;

 private:
  class Impl;
  explicit GroupNode(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
