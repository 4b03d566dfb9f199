// The one thread of a replica, and what it has. Others leave their calls here.
//
// Concurrency
//   [replica.leads]  release by the loop, acquire by callers: a hint.
//   [replica.posting]  release by a caller that has woken the loop, acquire by stop(): its last use
//     of this object.
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
#include "replication/node/reply.hpp"
#include "replication/node/sequences.hpp"
#include "replication/node/stall_watch.hpp"
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
  struct Proposal {
    PreparedCommand command;  // without bytes: it cannot be proposed again
    Reply done{};
    bool repeats = false;
    std::uint64_t until = 0;  // it waits for a leader
    bool forwards = false;
    bool is_numbered = false;      // by this node
    std::uint64_t asks_again = 0;  // milliseconds, once is_open
    bool is_open = false;          // it may have been decided, or may be yet
    unsigned asked = 0;            // how often it was forwarded
    bool is_of_peer = false;       // which is told who leads, and asks that one itself
    Origin origin{};
  };
  struct Reader {
    Reply done;
    std::uint64_t until = 0;
  };
  /// An entry of this leader that is not applied yet.
  struct InFlight {
    LogIndex index;
    Term term;
    std::vector<Proposal> proposals;
  };
  /// To the leader, and not answered: a proposal, or else readers.
  struct Forwarded {
    NodeId leader;
    std::uint64_t since;
    std::optional<Proposal> proposal;
    std::vector<Reader> readers;
  };
  /// What the leader has answered, and this node does not show yet.
  struct AppliedWait {
    Reply done{};  // of a proposal
    Answer answer{};
    std::vector<Reader> readers{};
    std::uint64_t until = 0;
    void end(bool is_applied);
  };
  struct WaitingRead {
    std::uint64_t round;
    LogIndex index;
    std::vector<Reader> readers;
    LogIndex time_index = 0;       // what has ended by the group's time has, with this entry
    std::uint64_t time_until = 0;  // without it from then on
  };
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
  [[nodiscard]] std::optional<std::string> snapshot_path(LogIndex index, Term term) override;
  void on_event(Event event, const std::string& what) override;
  void on_starved() noexcept override { memory_ended(); }

  // --- the loop, replica_loop.cpp ---------------------------------------------------------------
  [[nodiscard]] Status start_parts(RequestRunner* runner);
  void run();
  /// True: the caller has to call post_turn(), once it has released the mutex. Until that returns
  /// stop() does not.
  [[nodiscard]] bool begin_wake() SEMEL_REQUIRES(mutex_);
  void post_turn();
  /// After whatever has happened.
  void turn();
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
  void take_calls();
  [[nodiscard]] bool is_full() const noexcept;
  void show_full();
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
  [[nodiscard]] std::size_t count_forwarded() const noexcept;
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
  void answer(LogIndex index, Term term, Result<std::vector<Answer>>& answers);
  [[nodiscard]] bool may_wait(std::uint64_t until) const noexcept;
  /// Proposes it again, later, or answers with `why`. `is_untouched`: it was not decided.
  void retry_or_refuse(Proposal proposal, ErrorCode why, bool is_untouched);
  /// What has not been proposed, and may not wait.
  void refuse_waiting(ErrorCode why);
  void refuse(std::deque<Proposal>& waiting, ErrorCode why);
  /// Into proposals_ or held_.
  void wait_in(std::deque<Proposal>& waiting, Proposal proposal);
  /// The last of it.
  void finish(Proposal& proposal, Result<Answer> answer);
  /// It need not be asked again.
  void drop_bytes(Proposal& proposal);
  /// This node leads no longer, or has ended: what was under way may be decided by another.
  void lose_in_flight();

  // --- numbers of proposals, replica_numbers.cpp ------------------------------------------------
  /// What was bound to an earlier life of this node, to connections or to itself, ends. The log
  /// gives this life its number, without which nothing of it is proposed.
  void begin_life();
  void number_held();
  [[nodiscard]] bool has_number(const Proposal& proposal) const noexcept {
    return proposal.is_numbered && proposal.origin.sequence != 0;
  }
  /// As it goes to the log now.
  [[nodiscard]] const Origin& origin_of(Proposal& proposal) noexcept;
  /// It gets another number.
  void renew(Proposal proposal);
  /// What to do with a proposal of this node that the log did not take.
  void not_applied(Proposal proposal, NotApplied::Why why);
  /// It may be asked again, if it is not known what became of it.
  [[nodiscard]] bool can_ask_again(const Proposal& proposal) const noexcept;

  // --- to the leader and back, reads, replica_forwards.cpp --------------------------------------
  void forward_waiting();
  /// It is not known what became of those that `is` says.
  void forget_forwarded(const std::function<bool(const Forwarded&)>& is);
  void lose_forwarded(Forwarded forwarded, ErrorCode why, bool is_untouched);
  /// That a leader which still leads has not answered.
  void give_up_forwarded();
  /// Whether every replica can carry it out: else one message of a member would stop them all.
  [[nodiscard]] bool is_known(const Command& command) const;
  /// What a peer has sent, with the peer as its origin.
  [[nodiscard]] Result<Proposal> read_forward(NodeId from, Bytes bytes) const;
  /// Calls it when this node has applied the entry, or lags behind for too long.
  void when_applied(LogIndex index, AppliedWait wait);
  void run_applied(LogIndex index);
  void give_up_applied();
  [[nodiscard]] std::uint64_t answer_patience() const noexcept {
    return 10 * static_cast<std::uint64_t>(options_.election.count());
  }
  void ask_waiting_reads();
  /// Of a leader: the entry that brings the log's time up for a read; 0: none is needed.
  [[nodiscard]] LogIndex renew_time();
  [[nodiscard]] bool forward_reads();
  void refuse_reads(std::vector<Reader> readers, ErrorCode why);
  void finish_reads();

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
  GroupClock clock_;
  std::uint16_t port_ = 0;

  // Of the loop's thread.
  std::deque<Proposal> proposals_;
  std::deque<Proposal> held_;  // that have no number yet: so many are under way, or life_ is 0
  Sequences sequences_;
  std::uint64_t life_ = 0;        // of this node, as the log has numbered it; 0: not yet
  std::uint64_t refusal_at_ = 0;  // none of proposals_ and held_ has waited for long enough before
  std::size_t freed_bytes_ = 0;   // of waiting_bytes_, since the last turn
  std::deque<InFlight> in_flight_;
  std::vector<Reader> reads_;  // that no round is for yet
  std::deque<WaitingRead> waiting_reads_;
  std::map<std::uint64_t, Forwarded> forwarded_;
  bool has_forwarded_reads_ = false;  // the next ones go together, when these are answered
  std::multimap<LogIndex, AppliedWait> applied_waits_;
  std::uint64_t forwards_;  // the newest: a leader may still answer those of an earlier life
  std::map<NodeId, std::string> met_;  // who has connected, and listens there
  bool members_changed_ = true;
  std::string members_reported_;
  bool full_reported_ = false;
  bool off_reported_ = false;
  StallWatch disk_watch_;
  StallWatch group_watch_;
  LogIndex leader_commit_ = 0;
  Freshness freshness_{base::random_number()};
  LogIndex told_ = 0;  // of tell_idle()
  std::uint64_t last_proposal_ = 0;
  std::uint64_t level_asked_ = 0;  // when begin_level() has proposed one
  std::uint64_t elections_ = 0;
  std::uint64_t log_bytes_ = 0;  // of what was applied since the last snapshot
  std::uint64_t cut_bytes_ = 0;  // of them, in the one that is being written
  const LogIdentity log_identity_;
  MemberLogs member_logs_;
  std::uint64_t snapshot_bytes_;
  LogIndex snapshot_index_ = 0;
  bool is_snapping_ = false;
  std::optional<SnapshotId> fetching_;
  std::function<void()> after_snapshot_;  // what needs the worker next
  bool is_ended_ = false;
  bool is_armed_ = false;     // the timer
  bool shows_full_ = false;   // is_full_, which this thread alone changes
  bool begins_life_ = false;  // it was proposed
  bool is_applying_ = false;  // apply_soon() has posted
  std::thread worker_;        // one snapshot at a time is written, or checked

  mutable base::Mutex mutex_;
  std::vector<Proposal> new_proposals_ SEMEL_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;  // of what is, or may be, proposed
  std::vector<Reader> new_reads_ SEMEL_GUARDED_BY(mutex_);
  bool is_woken_ SEMEL_GUARDED_BY(mutex_) = false;
  std::size_t new_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;  // of new_proposals_
  // No new entry begins: proposals are taken by the turn that follows the end of one, or when they
  // fill one.
  bool is_full_ SEMEL_GUARDED_BY(mutex_) = false;
  bool is_closed_ SEMEL_GUARDED_BY(mutex_) = true;  // until start()
  ReplicaStatus status_ SEMEL_GUARDED_BY(mutex_);
  // While a snapshot begins: what the entries are that it may be cut behind.
  std::deque<SnapshotId> marks_ SEMEL_GUARDED_BY(mutex_);
  bool is_marking_ SEMEL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> leads_{false};
  std::atomic<unsigned> posting_{0};  // threads between begin_wake() and the end of post_turn()
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
