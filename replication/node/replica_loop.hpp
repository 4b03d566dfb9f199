// The one thread of a replica, and what it has. Others leave their calls here.
//
// Concurrency
//   [replica.leads]  release by the loop, acquire by callers: a hint.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/node/group_clock.hpp"
#include "replication/node/replica_disk.hpp"
#include "replication/node/replica_options.hpp"
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
  void propose(PreparedCommand command, ProposalDone done);
  void read(ProposalDone done);
  [[nodiscard]] ReplicaStatus status() const;
  [[nodiscard]] bool leads() const noexcept {
    return leads_.load(std::memory_order_acquire);  // mo: acquire [replica.leads]
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Runs `what` on the loop and waits. Errors: closing, what it returns.
  [[nodiscard]] Status call(const std::function<Status(ConsensusCore&, std::uint64_t now)>& what);
  [[nodiscard]] Status reload_tls(const PeerTls& files);

 private:
  struct Proposal {
    PreparedCommand command;
    ProposalDone done;
  };
  /// An entry of this leader that is not applied yet.
  struct InFlight {
    LogIndex index;
    Term term;
    std::vector<ProposalDone> dones;
  };
  /// To the leader, and not answered.
  struct Forwarded {
    NodeId leader;
    std::uint64_t since;
    ProposalDone done;
  };
  struct WaitingRead {
    std::uint64_t round;
    LogIndex index;
    std::vector<ProposalDone> dones;
  };

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
  void on_forward(NodeId from, Forward forward) override;
  void on_forward_reply(NodeId from, ForwardReply reply) override;
  void on_peer(NodeId id, const std::string& address) override;
  [[nodiscard]] bool knows(NodeId id) const override;
  [[nodiscard]] std::optional<std::string> snapshot_path(LogIndex index, Term term) override;
  void on_event(const std::string& what) override;

  // --- the loop, replica_loop.cpp ---------------------------------------------------------------
  [[nodiscard]] Status start_parts(RequestRunner* runner);
  void run();
  void wake() SEMEL_REQUIRES(mutex_);
  /// After whatever has happened.
  void turn();
  void tick();
  void arm();
  void take_calls();
  void know_members();
  void show();
  void stop_with(const std::string& why);
  void end();
  [[nodiscard]] std::uint64_t now() const noexcept;
  [[nodiscard]] std::int64_t unix_ms() const noexcept;
  void report(const std::string& what) const;

  // --- proposals and reads, replica_calls.cpp ---------------------------------------------------
  void propose_waiting();
  void propose_time();
  void ask_waiting_reads();
  void finish_reads();
  void answer(LogIndex index, Term term, Result<std::vector<Answer>>& answers);
  void give_up(ErrorCode in_flight, ErrorCode waiting);
  void forward_waiting();
  /// It is not known what became of those that `is` says.
  void forget_forwarded(const std::function<bool(const Forwarded&)>& is);

  // --- snapshots, replica_snapshots.cpp ---------------------------------------------------------
  void consider_snapshot();
  void take_snapshot();
  [[nodiscard]] Result<SnapshotFront> write_snapshot(std::uint64_t& bytes);
  void end_marking();
  void snapshot_done(const Result<SnapshotFront>& taken, std::uint64_t bytes);
  void fetch_snapshot(const RaftMessage& message);
  void check_fetched(const SnapshotId& id, const std::string& path);
  [[nodiscard]] Status take_over(const SnapshotId& id, const std::string& path);
  void fetched(const Status& checked);
  [[nodiscard]] SnapshotId mark_of(LogIndex index) const;

  const ReplicaOptions options_;
  storage::Disk& disk_;
  const SystemClock system_clock_;
  const Clock& wall_;
  boost::asio::io_context context_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guard_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<StateMachine> state_;
  std::unique_ptr<VoteFile> votes_;
  VoteContent vote_;
  StoredState stored_;             // until start()
  std::unique_ptr<EntryLog> log_;  // until start()
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<ConsensusCore> core_;
  std::unique_ptr<PeerTransport> transport_;
  GroupClock clock_;
  std::uint16_t port_ = 0;

  // Of the loop's thread.
  std::deque<Proposal> proposals_;
  std::deque<InFlight> in_flight_;
  std::vector<ProposalDone> reads_;  // that no round is for yet
  std::deque<WaitingRead> waiting_reads_;
  std::map<std::uint64_t, Forwarded> forwarded_;
  std::uint64_t forwards_ = 0;
  std::map<NodeId, std::string> met_;  // who has connected, and listens there
  bool members_changed_ = true;
  std::uint64_t last_proposal_ = 0;
  std::uint64_t elections_ = 0;
  std::uint64_t log_bytes_ = 0;  // since the last snapshot
  std::uint64_t snapshot_bytes_;
  LogIndex snapshot_index_ = 0;
  bool is_snapping_ = false;
  std::optional<SnapshotId> fetching_;
  std::function<void()> after_snapshot_;  // what needs the worker next
  bool is_ended_ = false;
  std::thread worker_;  // one snapshot at a time is written, or checked

  mutable base::Mutex mutex_;
  std::vector<Proposal> new_proposals_ SEMEL_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;  // of what is not proposed yet
  std::vector<ProposalDone> new_reads_ SEMEL_GUARDED_BY(mutex_);
  bool is_woken_ SEMEL_GUARDED_BY(mutex_) = false;
  bool is_closed_ SEMEL_GUARDED_BY(mutex_) = true;  // until start()
  ReplicaStatus status_ SEMEL_GUARDED_BY(mutex_);
  // While a snapshot begins: what the entries are that it may be cut behind.
  std::deque<SnapshotId> marks_ SEMEL_GUARDED_BY(mutex_);
  bool is_marking_ SEMEL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> leads_{false};
  std::thread thread_;
};

}  // namespace semel::replication
