// The one thread of a replica, and what it has. Others leave their calls here.
//
// Concurrency
//   [replica.leads]  release by the loop, acquire by callers: a hint.
#pragma once

#include <poll.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "engine/logged/group_time.hpp"
#include "replication/core/log_identity.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/node/freshness.hpp"
#include "replication/node/group_clock.hpp"
#include "replication/node/replica_disk.hpp"
#include "replication/node/replica_options.hpp"
#include "replication/node/snapshots.hpp"
#include "replication/node/stall_watch.hpp"
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
  [[nodiscard]] bool is_own_thread() const noexcept {
    return std::this_thread::get_id() == thread_.get_id();
  }
  [[nodiscard]] ReplicaStatus status() const;
  [[nodiscard]] bool leads() const noexcept {
    return leads_.load(std::memory_order_acquire);  // mo: acquire [replica.leads]
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::size_t bytes_besides() const noexcept { return state_->bytes_besides(); }
  [[nodiscard]] const engine::SessionOwner& session_owner() const noexcept { return owner_; }
  /// The highest level of features that all members know. Errors: closing, not_leader, refused (a
  /// member is not connected).
  [[nodiscard]] Result<FeatureLevel> common_level();
  /// Runs `what` on the loop and waits. Errors: closing, what it returns.
  [[nodiscard]] Status call(const std::function<Status(ConsensusCore&, std::uint64_t now)>& what);
  /// Errors: closing, those of ConsensusCore::promote().
  [[nodiscard]] Status promote(NodeId id);
  [[nodiscard]] Status reload_tls(const PeerTls& files);

 private:
  /// The group's time for other threads: what was applied last, and what has passed since.
  class GroupTime final : public engine::GroupTime {
   public:
    explicit GroupTime(const ReplicaLoop& loop) noexcept : loop_(loop) {}
    [[nodiscard]] Timestamp now() const noexcept override;
    [[nodiscard]] std::int64_t unix_ms() const noexcept override {
      return now().time_since_epoch().count();
    }
    [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override { return 0; }
    [[nodiscard]] std::optional<Timestamp> if_current() const noexcept override;

   private:
    [[nodiscard]] Timestamp at(std::uint64_t boot_ms) const noexcept;

    const ReplicaLoop& loop_;
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
  void take_message(RaftMessage message);
  void on_forward(NodeId from, Forward forward) override;
  void take_forward(NodeId from, Forward forward);
  void on_forward_reply(NodeId from, ForwardReply reply) override;
  void take_forward_reply(NodeId from, ForwardReply reply);
  void on_peer(NodeId id, const std::string& address) override;
  void meet(NodeId id, const std::string& address);
  [[nodiscard]] bool is_joining() const override;
  [[nodiscard]] bool knows(NodeId id) const override;
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
  void run();
  /// Behind CallQueue::begin_wake(). Until it returns stop() does not.
  void post_turn();
  /// After whatever has happened.
  void turn();
  void check_invariants() const noexcept;
  void apply_soon();
  void tick();
  void wake_soon();
  /// Runs a part of this thread's work. Where memory ends in it, what the core, the state and the
  /// log have may differ: this node takes part no longer.
  template <class Part>
  void run_part(Part&& part) noexcept;
  void memory_ended() noexcept;
  /// From other threads: `what` must not get lost. Waits while there is no memory.
  template <class What>
  void post_surely(const What& what);
  void arm();
  void begin_snapshots(LogIndex newest);
  void know_members();
  void show();
  void stop_with(const std::string& why);
  /// Takes no memory.
  void end() noexcept;
  [[nodiscard]] std::uint64_t now() const noexcept;
  [[nodiscard]] std::int64_t unix_ms() const noexcept;
  // --- for the operator's log, replica_reports.cpp
  void report(ReplicaEvent::What what, const std::string& text) const noexcept;
  /// What has begun or ended since the last time.
  void report_changes();
  /// The disk, and the group, where they have something to do and do not get on.
  void report_stalls();
  void report_disk_stall();
  void report_group_stall();
  [[nodiscard]] std::string what_waits() const;
  void report_members(Bytes configuration);

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
  /// Behind the core, which knows by then whose term it is.
  void take_mark(const MarkNote& note);
  /// Others may repeat what is here for so long as it is fresh.
  void show_fresh() noexcept;
  void tell_idle();

  // --- proposals, replica_calls.cpp -------------------------------------------------------------
  void submit(Proposal proposal);
  void take_calls();
  void propose_waiting();
  void propose_time();
  void queue_time();
  // --- the level of features, replica_level.cpp
  [[nodiscard]] Result<FeatureLevel> known_to_all() const;
  void begin_level();
  /// Of a leader: connects with no member that has another log than it had.
  void judge_logs();
  /// Puts the logs of members into the configuration. By the leader.
  void learn_logs();

  // --- to the leader and back, reads, replica_forwards.cpp --------------------------------------
  void forward_waiting();
  void lose_forwards(std::vector<Forwards::Pending> lost);
  /// Whether every replica can carry it out: else one message of a member would stop them all.
  [[nodiscard]] bool is_known(const Command& command) const;
  /// What a peer has sent, with the peer as its origin. Errors: those of its answer.
  [[nodiscard]] Result<Proposal> read_proposal(NodeId from, Bytes bytes) const;
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
  boost::asio::io_context context_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> guard_;
  boost::asio::steady_timer timer_;
  // Outlive the engine, whose waits look at the group's time.
  std::atomic<std::int64_t> time_offset_{0};     // of it from CLOCK_BOOTTIME
  std::atomic<std::uint64_t> current_until_{0};  // GroupTime::if_current()
  const GroupTime group_time_{*this};
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
  GroupClock clock_;
  std::uint16_t port_ = 0;

  // Of the loop's thread.
  Proposals proposals_;
  Reads reads_;
  Forwards forwards_{base::random_number() >> 8};
  AppliedWaits applied_waits_;
  std::map<NodeId, std::string> met_;  // who has connected, and listens there
  bool members_changed_ = true;
  std::string members_reported_;
  bool full_reported_ = false;
  bool off_reported_ = false;
  StallWatch disk_watch_;
  StallWatch group_watch_;
  LogIndex leader_commit_ = 0;
  Freshness freshness_{base::random_number()};
  LogIndex told_ = 0;              // of tell_idle()
  std::uint64_t level_asked_ = 0;  // when begin_level() has proposed one
  std::uint64_t elections_ = 0;
  const LogIdentity log_identity_;
  MemberLogs member_logs_;
  const std::uint64_t snapshot_bytes_;  // found on the disk
  bool is_ended_ = false;
  bool is_armed_ = false;     // the timer
  bool is_applying_ = false;  // apply_soon() has posted

  CallQueue calls_;
  mutable base::Mutex mutex_;
  ReplicaStatus status_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<bool> leads_{false};
  std::thread thread_;
};

template <class Part>
void ReplicaLoop::run_part(Part&& part) noexcept {
  try {
    part();
  } catch (const std::bad_alloc&) {
    memory_ended();
  }
}

template <class What>
void ReplicaLoop::post_surely(const What& what) {
  for (;;) {
    try {
      return boost::asio::post(context_, [this, what] { run_part(what); });
    } catch (const std::bad_alloc&) {
      poll(nullptr, 0, 1);
    }
  }
}

}  // namespace semel::replication
