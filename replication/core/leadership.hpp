// What proves that a node leads: rounds of reads, and a lease by what the other members have
// answered. And, of a follower, what it answers to that.
#pragma once

#include <cstdint>

#include "replication/core/consensus_effects.hpp"
#include "replication/core/consensus_options.hpp"
#include "replication/core/follower_answers.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/raft_library.hpp"

namespace semel::replication {

/// Belongs to one thread; times are of the clock of the core's events.
class Leadership {
 public:
  struct Parts {
    const ConsensusOptions& options;
    const RaftLibrary& raft;
    const MemoryLog& log;
    ConsensusEffects& effects;
  };
  explicit Leadership(const Parts& parts) : parts_(parts), answers_(parts.options.id) {}

  /// Another role or term: the answers belong to another leader.
  void reset() noexcept { answers_.reset(); }
  /// The core has failed: it proves nothing any more.
  void end() noexcept { is_ended_ = true; }

  /// It leads, and has committed in its term: it knows everything that was decided.
  [[nodiscard]] bool knows_decided() const;

  // --- reads ----------------------------------------------------------------------------------
  /// See ConsensusCore::read(). To be called only while knows_decided().
  [[nodiscard]] std::uint64_t begin_round();
  /// The newest round whose reads are proven.
  [[nodiscard]] std::uint64_t confirmed() const noexcept { return answers_.confirmed(); }
  [[nodiscard]] LogIndex read_index() const noexcept { return answers_.read_index(); }
  /// A read must not wait for ever for a probe that was lost.
  void probe_again();
  void answer_probe(const RaftMessage& message);
  void count_probe(const RaftMessage& message);
  /// See ConsensusCore::tell_commit().
  void tell_commit(NodeId id);

  // --- lease ----------------------------------------------------------------------------------
  /// Of a message that the library has taken.
  void note_echo(const RaftMessage& message);
  /// For a reply to an append of that node: when the newest append of the leader of this term was
  /// sent that has come; 0: none has.
  [[nodiscard]] std::uint64_t echo_for(NodeId leader) const noexcept;
  /// Another node is asked to become the leader: in this term the lease is over.
  void give_lease_up() noexcept { no_lease_term_ = parts_.raft.term(); }
  /// The latest time at which this node, as the leader, certainly had everything the group had
  /// decided: a majority has answered appends that it sent at or after this time. 0: not known.
  [[nodiscard]] std::uint64_t heard_at(std::uint64_t now) const;
  /// Until when no other node can be the leader, if clocks differ in speed by less than a tenth; 0:
  /// not known.
  [[nodiscard]] std::uint64_t lease_until(std::uint64_t now) const;

  void check_invariants() const noexcept { answers_.check_invariants(); }

 private:
  void send(NodeId to, decltype(RaftMessage::what) what);
  void send_probes();

  const Parts parts_;
  bool is_ended_ = false;
  // Of a leader, in its term.
  FollowerAnswers answers_;
  Term no_lease_term_ = 0;
  // Of a follower: the newest `echo` of the leader of this term.
  std::uint64_t echo_ = 0;
  Term echo_term_ = 0;
};

}  // namespace semel::replication
