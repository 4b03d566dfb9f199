// What peers send to a replica, and what the transport asks it about them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "replication/parts/replica_parts.hpp"
#include "replication/state/state_machine.hpp"
#include "replication/transport/transport_options.hpp"

namespace semel::replication {

/// Belongs to the loop's thread.
class PeerInput final : public PeerHandler {
 public:
  /// `runner`: of the state machine; may be null.
  PeerInput(ReplicaParts& parts, const RequestRunner* runner) noexcept
      : parts_(parts), runner_(runner) {}

  void on_message(RaftMessage message) override;
  void on_forward(NodeId from, Forward forward) override;
  void on_forward_reply(NodeId from, ForwardReply reply) override;
  void on_peer(NodeId id, const std::string& address) override;
  void on_event(Event event, const std::string& what) override;
  void on_starved() noexcept override;
  [[nodiscard]] bool is_joining() const override;
  [[nodiscard]] bool knows(NodeId id) const override;
  [[nodiscard]] FeatureLevel level() const override;
  [[nodiscard]] std::optional<std::string> snapshot_path(LogIndex index, Term term) override;

 private:
  /// Its caller is a connection, which would take a lack of memory for its own trouble.
  template <class Part>
  void run(Part&& part);
  void take_message(RaftMessage message);
  void take_forward(NodeId from, Forward forward);
  /// Whether every replica can carry it out: else one message of a member would stop them all.
  [[nodiscard]] bool is_known(const Command& command) const;
  /// What a peer has sent, with the peer as its origin. Errors: those of its answer.
  [[nodiscard]] Result<Proposal> read_proposal(NodeId from, std::string bytes) const;

  ReplicaParts& parts_;
  const RequestRunner* const runner_;
};

}  // namespace semel::replication
