// The one thread of a replica, and what it has. Others leave their calls here.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "replication/core/freshness.hpp"
#include "replication/core/log_identity.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/node/group_clock.hpp"
#include "replication/node/loop_thread.hpp"
#include "replication/node/members.hpp"
#include "replication/node/published.hpp"
#include "replication/node/replica_disk.hpp"
#include "replication/node/replica_options.hpp"
#include "replication/node/replica_reports.hpp"
#include "replication/node/snapshots.hpp"
#include "replication/proposals/call_queue.hpp"
#include "replication/proposals/forward_codec.hpp"
#include "replication/proposals/forwards.hpp"
#include "replication/proposals/proposals.hpp"
#include "replication/proposals/reads.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

class ReplicaLoop final : private ConsensusEffects, private PeerHandler {
 public:
  ReplicaLoop(const ReplicaOptions& options, storage::Disk& disk, ReplicaDisk found);
  ~ReplicaLoop() override;
  ReplicaLoop(const ReplicaLoop&) = delete;
  ReplicaLoop& operator=(const ReplicaLoop&) = delete;

  [[nodiscard]] Engine& engine() noexcept { return state_->engine(); }
  [[nodiscard]] Status start(RequestRunner* runner);
  void stop();
  void propose(PreparedCommand command, ProposalDone done, const ProposalTerms& terms);
  void read(ProposalDone done, const ProposalTerms& terms);
  [[nodiscard]] const engine::GroupTime& group_time() const noexcept { return group_time_; }
  [[nodiscard]] bool is_own_thread() const noexcept { return thread_.is_own(); }
  [[nodiscard]] const PublishedStatus& status() const noexcept { return status_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::size_t bytes_besides() const noexcept { return state_->bytes_besides(); }
  [[nodiscard]] const engine::SessionOwner& session_owner() const noexcept { return owner_; }
  /// The highest level of features that all members know. Errors: closing, not_leader, refused (a
  /// member is not connected).
  [[nodiscard]] Result<FeatureLevel> common_level();
  /// Runs `what` on the loop and waits. Errors: closing, what it returns.
  [[nodiscard]] Status call(const std::function<Status(ConsensusCore&, std::uint64_t now)>& what);
  /// Errors: closing, those of ConsensusCore::change().
  [[nodiscard]] Status promote(NodeId id);
  [[nodiscard]] Status reload_tls(const PeerTls& files);

 private:
  // --- of the core ------------------------------------------------------------------------------
  [[nodiscard]] Status save_vote(Term term, NodeId voted_for) override;
  void append(LogIndex first, std::vector<RaftEntry> entries) override;
  void send(RaftMessage message) override;
  void apply(LogIndex index, const RaftEntry& entry) override;
  void install(const SnapshotOffer& offer) override;
  void changed() override;
  void failed(const Error& error) override;

  // --- of the transport -------------------------------------------------------------------------
  void on_message(RaftMessage message) override;
  void take_message(RaftMessage message);
  void on_forward(NodeId from, Forward forward) override;
  void take_forward(NodeId from, Forward forward);
  void on_forward_reply(NodeId from, ForwardReply reply) override;
  void take_forward_reply(NodeId from, ForwardReply reply);
  void on_peer(NodeId id, const std::string& address) override;
  [[nodiscard]] bool is_joining() const override { return members_->is_joining(); }
  [[nodiscard]] bool knows(NodeId id) const override { return members_->knows(id); }
  [[nodiscard]] FeatureLevel level() const override {
    return std::max(state_->level(), feature_level_first);
  }
  [[nodiscard]] std::optional<std::string> snapshot_path(LogIndex index, Term term) override {
    return snapshots_->path_of(index, term);
  }
  void on_event(Event event, const std::string& what) override;
  void on_starved() noexcept override { memory_ended(); }

  // --- the loop, replica_loop.cpp ---------------------------------------------------------------
  [[nodiscard]] Status start_parts(RequestRunner* runner);
  void begin();
  /// Behind CallQueue::begin_wake(). Until it returns stop() does not.
  void post_turn();
  /// After whatever has happened.
  void turn();
  void check_invariants() const noexcept;
  void apply_soon();
  void tick();
  void wake_soon();
  void memory_ended() noexcept;
  [[nodiscard]] std::uint64_t tick_after() const;
  void begin_snapshots(LogIndex newest);
  void show();
  void stop_with(const std::string& why);
  /// Takes no memory.
  void end() noexcept;
  [[nodiscard]] std::uint64_t now() const noexcept;
  [[nodiscard]] std::int64_t unix_ms() const noexcept;
  void report(ReplicaEvent::What what, const std::string& text) const noexcept;
  void report_changes();
  [[nodiscard]] std::string what_waits() const;

  // --- the group's time, and how current this node is, replica_time.cpp -------------------------
  void show_time() noexcept;
  /// For another process of this boot.
  void keep_time();
  void lead_time();
  [[nodiscard]] std::int64_t next_time();
  /// What a message says that Freshness is about.
  struct MarkNote {
    NodeId from = 0;
    Term term = 0;
    bool is_reply = false;
    std::uint64_t mark = 0;  // 0: it has none
    LogIndex commit = 0;
    std::int64_t unix_ms = 0;  // of the leader; 0: it does not say
  };
  [[nodiscard]] static MarkNote mark_in(const RaftMessage& message) noexcept;
  /// Call after the core has processed the message, so its term is current.
  void take_mark(const MarkNote& note);
  /// Publishes until when callers may answer repeats from this replica.
  void show_fresh() noexcept;
  void tell_idle();

  // --- proposals, replica_calls.cpp -------------------------------------------------------------
  void submit(Proposal proposal);
  void take_calls();
  void propose_waiting();
  void propose_time();
  void queue_time();
  void begin_level();

  // --- to the leader and back, reads, replica_forwards.cpp --------------------------------------
  void forward_waiting();
  void lose_forwards(std::vector<Forwards::Pending> lost);
  /// Whether every replica can carry it out: else one message of a member would stop them all.
  [[nodiscard]] bool is_known(const Command& command) const;
  /// What a peer has sent, with the peer as its origin. Errors: those of its answer.
  [[nodiscard]] Result<Proposal> read_proposal(NodeId from, std::string bytes) const;
  void take_proposal_reply(Proposal proposal, ForwardAnswer content);
  void show_when_applied(LogIndex index, AppliedWaits::Wait wait);
  [[nodiscard]] std::uint64_t answer_patience() const noexcept {
    return 10 * static_cast<std::uint64_t>(options_.election.count());
  }
  void ask_waiting_reads();
  [[nodiscard]] LogIndex renew_time();
  [[nodiscard]] bool forward_reads();
  void finish_reads();

  const ReplicaOptions options_;
  const engine::SessionOwner owner_;
  storage::Disk& disk_;
  const SystemClock system_clock_;
  const Clock& wall_;
  LoopThread thread_;
  PublishedTime group_time_;  // outlives the engine, whose waits look at it
  std::unique_ptr<StateMachine> state_;
  RequestRunner* runner_ = nullptr;  // of state_
  std::unique_ptr<VoteFile> votes_;
  VoteContent vote_;
  KeptTime kept_time_;             // belongs to the writer's thread after start()
  StoredState stored_;             // until start()
  std::unique_ptr<EntryLog> log_;  // until start()
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<ConsensusCore> core_;
  std::unique_ptr<PeerTransport> transport_;
  std::unique_ptr<Snapshots> snapshots_;
  std::unique_ptr<Members> members_;
  GroupClock clock_;
  std::uint16_t port_ = 0;

  // Of the loop's thread.
  Proposals proposals_;
  Reads reads_;
  Forwards forwards_{base::random_number() >> 8};
  AppliedWaits applied_waits_;
  ReplicaReports reports_;
  Freshness freshness_{base::random_number()};
  LogIndex told_ = 0;  // of tell_idle()
  std::uint64_t elections_ = 0;
  const LogIdentity log_identity_;
  const std::uint64_t snapshot_bytes_;  // found on the disk
  bool is_ended_ = false;
  bool is_applying_ = false;  // apply_soon() has posted

  CallQueue calls_;
  PublishedStatus status_;
};

}  // namespace semel::replication
