// Messages from peers, and the guards that judge them before the library gets them.
#pragma once

#include <cstdint>

#include "replication/core/applier.hpp"
#include "replication/core/consensus_options.hpp"
#include "replication/core/leadership.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/outbox.hpp"
#include "replication/core/raft_library.hpp"
#include "replication/core/raft_steps.hpp"

namespace semel::replication {

/// Belongs to one thread.
class Inbox {
 public:
  struct Parts {
    const ConsensusOptions& options;
    const RaftLibrary& raft;
    const MemoryLog& log;
    Leadership& leadership;
    Outbox& outbox;
    RaftSteps& steps;
    Applier& applier;
  };
  explicit Inbox(const Parts& parts) noexcept : parts_(parts) {}

  /// Once. `has_voted`: in an earlier life this node may have promised something.
  void begin(std::uint64_t now, bool has_voted) noexcept;
  /// Whether the library, whose assertions are compiled out, can take it.
  [[nodiscard]] bool fits(const RaftMessage& message) const;
  /// One that fits.
  void take(std::uint64_t now, RaftMessage& message);

 private:
  void take_append(std::uint64_t now, RaftMessage& message);
  void take_notice(std::uint64_t now, const RaftMessage& message);
  void trim_compacted(AppendRequest& append) const;
  /// A member change before the one with which an append begins.
  void commit_change_before(std::uint64_t now, const RaftMessage& message);
  /// To the library, with that before it.
  void give_append(std::uint64_t now, const RaftMessage& message);
  [[nodiscard]] bool sits_out_vote(std::uint64_t now) noexcept;
  [[nodiscard]] bool is_stale_rejection(const RaftMessage& message) const;

  const Parts parts_;
  std::uint64_t started_ = 0;
  bool sits_out_ = false;
};

}  // namespace semel::replication
