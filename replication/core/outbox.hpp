// The library's messages to peers, as ours: appends in parts, a snapshot's offer only while it is
// the newest, a TimeoutNow when its receiver has everything.
#pragma once

#include <cstdint>
#include <optional>

#include "replication/core/consensus_effects.hpp"
#include "replication/core/consensus_options.hpp"
#include "replication/core/leadership.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/raft_library.hpp"
#include "semel/result.hpp"

struct raft_shim_message;

namespace semel::replication {

/// Belongs to one thread.
class Outbox {
 public:
  struct Parts {
    const ConsensusOptions& options;
    const RaftLibrary& raft;
    const MemoryLog& log;
    Leadership& leadership;
    ConsensusEffects& effects;
  };
  explicit Outbox(const Parts& parts) noexcept : parts_(parts) {}

  /// An event begins: its appends are sent now, which their echoes say.
  void begin_event(std::uint64_t now) noexcept { sent_at_ = now; }
  /// Errors: storage_damaged (no core of ours makes such a message, or its log lacks an entry).
  [[nodiscard]] Status send(const raft_shim_message& message);
  /// At the end of an event.
  void send_held();
  /// While muted, the library answers what no peer has sent.
  void set_muted(bool is_muted) noexcept { is_muted_ = is_muted; }

 private:
  [[nodiscard]] Status send_append(const raft_shim_message& message, RaftMessage head);
  [[nodiscard]] AppendRequest append_after(LogIndex index, Term term, LogIndex commit) const;

  const Parts parts_;
  std::uint64_t sent_at_ = 0;
  std::optional<RaftMessage> held_;  // a TimeoutNow that its receiver would ignore
  bool is_muted_ = false;
};

}  // namespace semel::replication
