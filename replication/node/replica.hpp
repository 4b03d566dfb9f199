// A node of a group: an engine whose changes are decided by the replicated log.
//
//   callers --- proposals --> loop (one thread): consensus, transport, state machine
//                              |  entries           ^ entries on the disk
//                              v                    |
//                             log writer (one thread)
//
// A proposal is answered when its entry is applied, which is when a majority has it on its disks.
#pragma once

#include <memory>
#include <string>

#include "engine/api/sessions.hpp"
#include "engine/logged/group_time.hpp"
#include "engine/replica/decision_scope.hpp"
#include "engine/replica/object_look.hpp"
#include "engine/replica/slot_look.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/state/apply.hpp"
#include "replication/state/entry.hpp"
#include "semel/engine.hpp"

namespace semel::replication {

class ReplicaLoop;

class Replica {
 public:
  /// Reads the directory. Errors: bad_option, storage_in_use, storage_failed, storage_damaged,
  /// memory_full, those of Engine::open.
  [[nodiscard]] static Result<std::unique_ptr<Replica>> open(const ReplicaOptions& options);
  /// Ends as stop().
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  /// To be read by any thread. Changes are refused but by the replicated log. Waits and repeats of
  /// claims go to it: engine/replica.
  [[nodiscard]] Engine& engine() noexcept;
  /// Listens, and takes part in the group. `runner`: of RequestCommand, or null; must outlive this.
  /// Once. Errors: bad_option, storage_in_use (the address), no_thread.
  [[nodiscard]] Status start(RequestRunner* runner = nullptr);
  /// Hands the lead over, if it has it: another node then leads at once, and not after an election
  /// timeout. Waits for that, 300 ms at most. Not on the replica's thread.
  void hand_over();
  /// Commands under way are answered: outcome_unknown. Written entries are synced. After it, every
  /// call ends with `closing`.
  void stop();

  // --- from any thread ------------------------------------------------------------------------
  /// `done` when its entry is applied here.
  void propose(PreparedCommand command, ProposalDone done, ProposalTerms terms = {});
  /// The same, and waits. Not on the replica's thread. Errors: besides, those of prepare().
  [[nodiscard]] Result<Answer> propose(const Command& command, ProposalTerms terms = {});
  /// `done` with a PlainAnswer when the engine has all that was answered before this call, by
  /// whatever node. Only the leader can say so; with `forwards` it is asked. Errors: not_leader,
  /// closing.
  void read(ProposalDone done, ProposalTerms terms = {});
  [[nodiscard]] Status read(ProposalTerms terms = {});
  /// The group's time, as far as this node knows it: it goes on between entries.
  [[nodiscard]] const engine::GroupTime& clock() const noexcept;
  /// Whether this is the thread that applies entries. It must not wait for itself.
  [[nodiscard]] bool is_own_thread() const noexcept;
  [[nodiscard]] ReplicaStatus status() const;
  /// A hint, without a lock: whether it leads, as it saw last.
  [[nodiscard]] bool is_leader() const noexcept;
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Memory that the engine does not count: answers kept for repeats, and libraries of functions.
  [[nodiscard]] std::size_t bytes_besides() const noexcept;
  /// Of sessions that this node opens. Sessions of an earlier life are closed when this one reaches
  /// a leader.
  [[nodiscard]] const engine::SessionOwner& session_owner() const noexcept;

  // --- for operators; they block until it is proposed -------------------------------------------
  // Errors: those of ConsensusCore, closing.
  [[nodiscard]] Status add(NodeId id, const std::string& address);
  [[nodiscard]] Status promote(NodeId id);
  [[nodiscard]] Status demote(NodeId id);
  [[nodiscard]] Status remove(NodeId id);
  [[nodiscard]] Status transfer(NodeId id);
  /// The group uses from now on what all of its members know, and no earlier release can take part
  /// any more. Waits until it is decided. Without effect if it does already. Errors: besides,
  /// not_leader, refused (a member is not connected), outcome_unknown.
  [[nodiscard]] Status upgrade();
  [[nodiscard]] Status reload_tls(const PeerTls& files);

 private:
  explicit Replica(std::unique_ptr<ReplicaLoop> loop);
  [[nodiscard]] Status change(const MemberChange& change);
  const std::unique_ptr<ReplicaLoop> loop_;
};

}  // namespace semel::replication
