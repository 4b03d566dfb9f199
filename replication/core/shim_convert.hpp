// Between the plain values of C++ and those of the shim, which point into them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "replication/core/message.hpp"
#include "replication/core/raft_shim.h"

namespace semel::replication {

/// Members as the library has them: these point into `addresses`.
struct ShimMembers {
  std::deque<std::string> addresses{};
  std::vector<raft_shim_member> members{};
};

[[nodiscard]] Member to_member(const raft_shim_member& member);
/// Points into what it returns.
[[nodiscard]] ShimMembers to_shim(const Configuration& configuration);
/// Points into `entries`.
[[nodiscard]] std::vector<raft_shim_entry> to_shim(const std::vector<RaftEntry>& entries);
/// Points into `members`, which it fills.
[[nodiscard]] raft_shim_snapshot to_shim(const SnapshotId& snapshot, ShimMembers& members);

/// A message for the library. Points into the message that it is made of, which must outlive it.
class ShimMessage {
 public:
  /// Not of a ReadProbe, a ReadReply or a CommitNotice: these the library does not know.
  ShimMessage(const RaftMessage& from, std::string address);
  ShimMessage(const ShimMessage&) = delete;
  ShimMessage& operator=(const ShimMessage&) = delete;
  [[nodiscard]] const raft_shim_message& get() const noexcept { return message_; }

 private:
  void set(const VoteRequest& vote);
  void set(const VoteReply& voted);
  void set(const AppendRequest& append);
  void set(const AppendReply& reply);
  void set(const SnapshotOffer& offer);
  void set(const TimeoutNow& timeout);
  void set(const ReadProbe&) {}
  void set(const ReadReply&) {}
  void set(const CommitNotice&) {}

  const std::string address_;
  std::vector<raft_shim_entry> entries_{};
  ShimMembers members_{};
  raft_shim_message message_{};
};

}  // namespace semel::replication
