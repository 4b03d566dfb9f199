// Raft without input and output: events in, effects out. Elections, log matching, the rule of
// commits and membership are libraft's, by its call raft_step(); what its release 0.22.1 gets wrong
// is guarded here (Guards, docs/decisions/0038-consensus-core.md). The same code runs in a node and
// in the simulator.
//
// No clock, no thread, no disk, no socket, and no randomness but the seed. Belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/core/follower_answers.hpp"
#include "replication/core/memory_log.hpp"
#include "replication/core/message.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

struct raft_shim;
struct raft_shim_message;
struct raft_shim_snapshot;
struct raft_shim_update;

namespace semel::replication {

/// What protects against defects of the library. Off only in the simulator, which then must find a
/// fault.
struct Guards {
  bool splits_configurations = true;  ///< a configuration is the first entry of its message
  bool drops_stale_rejections = true;
  bool shows_real_term = true;     ///< in a refused pre-vote
  bool trims_compacted = true;     ///< entries that the own snapshot has
  bool waits_for_catch_up = true;  ///< before a promotion, a demotion and a removal
  bool bounds_uncommitted = true;
  bool gives_lease_up = true;     ///< for the term in which TimeoutNow was sent
  bool sits_out = true;           ///< a restarted voter, for one election timeout
  bool holds_timeout_now = true;  ///< until everything is on its receiver's disk
  bool keeps_members = true;      ///< that are committed, where the change after them is dropped
};

struct ConsensusOptions {
  NodeId id = 0;
  std::string address;
  Millis election{500};  ///< a follower that hears nothing for one to two of them is a candidate
  Millis heartbeat{50};
  std::size_t uncommitted_max = 64;           ///< entries
  std::size_t message_bytes_max = 256 << 10;  ///< of entries' data, unless one entry has more
  std::size_t apply_entries_max =
      64;  ///< applied per event; bounds how long the loop does not respond
  std::size_t apply_bytes_max = 256 << 10;  ///< of their data, unless one entry has more
  std::uint32_t seed = 1;                   ///< of election timeouts
  Guards guards{};
};

/// What a node has on its disk.
struct StoredState {
  Term term = 0;
  NodeId voted_for = 0;
  std::optional<SnapshotId> snapshot{};
  LogIndex first = 1;  ///< of `entries`; not behind the snapshot's index + 1
  std::vector<RaftEntry> entries{};
};

/// Called within an event, in the order in which they must happen. They must not call the core.
class ConsensusEffects {
 public:
  virtual ~ConsensusEffects() = default;
  /// On the disk before it returns. An error stops the core.
  [[nodiscard]] virtual Status save_vote(Term term, NodeId voted_for) = 0;
  /// Write after all earlier entries; they replace entries from `first` on. Answer with persisted()
  /// when they are on the disk.
  virtual void append(LogIndex first, std::vector<RaftEntry> entries) = 0;
  virtual void send(RaftMessage message) = 0;
  /// Committed: the next entry for the state machine.
  virtual void apply(LogIndex index, const RaftEntry& entry) = 0;
  /// Replaces the replicated log and the state. installed() says when it is on the disk and in the
  /// state.
  virtual void install(const SnapshotOffer& offer) = 0;
  /// Role, term or leader have changed.
  virtual void changed() = 0;
  /// The core has stopped: nothing that it said after `error` counts.
  virtual void failed(const Error& error) = 0;
};

enum class Role : std::uint8_t { follower, candidate, leader };

class ConsensusCore {
 public:
  /// Errors: bad_option (also: the library is of another release than 0.22), memory_full.
  [[nodiscard]] static Result<std::unique_ptr<ConsensusCore>> make(const ConsensusOptions& options,
                                                                   ConsensusEffects& effects);
  ~ConsensusCore();
  ConsensusCore(const ConsensusCore&) = delete;
  ConsensusCore& operator=(const ConsensusCore&) = delete;

  /// The data of the first entry of a new group's log, on each of its first members. Errors:
  /// bad_option (twice the same id or address, no voter, more than members_max).
  [[nodiscard]] static Result<SharedData> encode(const Configuration& configuration);
  /// Of an entry that is a configuration. Errors: bad_encoding.
  [[nodiscard]] static Result<Configuration> decode(Bytes data);

  // --- events; `now` is milliseconds of a clock that does not go back -------------------------
  /// Once, before all others. Errors: bad_option, bad_encoding, memory_full.
  [[nodiscard]] Status start(std::uint64_t now, StoredState stored);
  /// At next_timeout(), or more often.
  void tick(std::uint64_t now);
  /// Applies the next part of the committed entries. To be called soon while must_apply_more(): a
  /// restarted node has much to apply, and must answer messages between the parts.
  void apply_more(std::uint64_t now);
  /// From a peer whose identity is proven. An invalid message is dropped.
  void receive(std::uint64_t now, RaftMessage message);
  /// Of what append() was called with: all up to `index`, which has `term`.
  void persisted(std::uint64_t now, LogIndex index, Term term);
  /// The index that the entry will have, if this node stays the leader. Errors: not_leader (also:
  /// it hands its leadership over), log_busy (uncommitted_max entries are not committed),
  /// memory_full.
  [[nodiscard]] Result<LogIndex> propose(std::uint64_t now, SharedData data);
  /// A snapshot of the state after `snapshot.index` is on the disk. Entries before the last
  /// `trailing` of it are forgotten.
  void snapshot_taken(std::uint64_t now, const SnapshotId& snapshot, std::size_t trailing);
  /// install() is done.
  void installed(std::uint64_t now, const SnapshotId& snapshot);

  // --- membership, by the leader; one change at a time ----------------------------------------
  // Errors of each: not_leader; refused (another change is under way, or a member lacks entries
  // that it would need); bad_option (no such member, the last voter, an id or address that is
  // taken).
  [[nodiscard]] Status add(std::uint64_t now, NodeId id, const std::string& address);
  [[nodiscard]] Status promote(std::uint64_t now, NodeId id);
  [[nodiscard]] Status demote(std::uint64_t now, NodeId id);
  [[nodiscard]] Status remove(std::uint64_t now, NodeId id);
  /// Puts the logs of members that have none into the configuration. From then on none is promoted
  /// whose log is not known.
  [[nodiscard]] Status learn(std::uint64_t now, const std::map<NodeId, LogIdentity>& logs);
  /// 0: to one that has everything.
  [[nodiscard]] Status transfer(std::uint64_t now, NodeId id);

  // --- reads ----------------------------------------------------------------------------------
  /// A round whose end, read_confirmed() >= the round, proves that this node was the leader after
  /// this call: the state at read_index() then has every change that was answered before it. One
  /// round serves all reads that arrive before it is sent. Errors: not_leader (also: no entry of
  /// its term is committed yet).
  [[nodiscard]] Result<std::uint64_t> read(std::uint64_t now);
  [[nodiscard]] std::uint64_t read_confirmed() const noexcept { return answers_.confirmed(); }
  [[nodiscard]] LogIndex read_index() const noexcept { return answers_.read_index(); }
  /// Sends the present commit index to a member that waits for it. Members learn later ones from
  /// the next append.
  void tell_commit(NodeId id);
  /// It leads, and has committed in its term: it knows everything that was decided.
  [[nodiscard]] bool knows_decided() const;
  /// The latest time at which this node, as the leader, certainly had everything the group had
  /// decided: a majority has answered appends that it sent at or after this time. 0: not known. On
  /// the clock of `now`.
  [[nodiscard]] std::uint64_t heard_at(std::uint64_t now) const;
  /// Until when no other node can be the leader, if clocks differ in speed by less than a tenth; 0:
  /// not known. On the clock of `now`.
  [[nodiscard]] std::uint64_t lease_until(std::uint64_t now) const;

  // --- insight --------------------------------------------------------------------------------
  [[nodiscard]] Role role() const noexcept;
  [[nodiscard]] bool is_leader() const noexcept { return role() == Role::leader; }
  [[nodiscard]] Term term() const noexcept;
  [[nodiscard]] NodeId leader() const noexcept;  ///< 0: not known
  [[nodiscard]] LogIndex commit() const noexcept { return committed_; }
  [[nodiscard]] LogIndex applied() const noexcept { return applied_; }
  [[nodiscard]] LogIndex stored() const noexcept;  ///< on the disk of this node
  /// Written or not.
  [[nodiscard]] const MemoryLog& log() const noexcept { return log_; }
  /// Of the leader: what a member has on its disk; 0: not known.
  [[nodiscard]] LogIndex match(NodeId id) const noexcept;
  [[nodiscard]] Configuration members() const;  ///< the newest, committed or not
  /// The newest that is committed and applied, and its index: those of a snapshot.
  [[nodiscard]] const Configuration& applied_members() const noexcept { return applied_members_; }
  [[nodiscard]] LogIndex applied_members_index() const noexcept { return applied_members_index_; }
  /// A change of members is not committed, as far as this node knows.
  [[nodiscard]] bool is_changing_members() const noexcept;
  [[nodiscard]] bool is_handing_over() const noexcept;
  [[nodiscard]] bool is_installing() const noexcept { return installing_; }
  /// Entries are committed that were not applied yet.
  [[nodiscard]] bool must_apply_more() const noexcept {
    return !failed_ && !installing_ && applied_ < committed_;
  }
  [[nodiscard]] std::uint64_t next_timeout() const noexcept;
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }

 private:
  ConsensusCore(const ConsensusOptions& options, ConsensusEffects& effects, raft_shim* shim);
  void begin(std::uint64_t now);
  /// Within an event: what a step has asked for. False: the core has failed.
  bool carry_out(int error, const raft_shim_update& update, const std::vector<RaftEntry>& own);
  bool persist(const raft_shim_update& update, const std::vector<RaftEntry>& own);
  void send(const raft_shim_message& message);
  void send_append(const raft_shim_message& message, RaftMessage head);
  void send_held();
  void after(std::uint64_t now);
  void apply_committed(std::uint64_t now);
  bool apply_configuration(std::uint64_t now, LogIndex index, const RaftEntry& entry);
  /// Tells the library that a configuration is committed. False: the core has failed.
  bool commit_configuration(std::uint64_t now, LogIndex index, const RaftEntry& entry);
  /// The same, of the one before that in an append which the library is about to take.
  void commit_configuration_before(std::uint64_t now, const RaftMessage& message);
  void report_persisted(std::uint64_t now);
  void begin_term(std::uint64_t now);
  /// Of a barrier, as the library's own.
  [[nodiscard]] static SharedData empty_entry();
  void note_state();
  bool submit(std::uint64_t now, EntryType type, SharedData data, int& error);
  [[nodiscard]] Status change(std::uint64_t now, const Configuration& to);
  [[nodiscard]] Status check_change() const;
  [[nodiscard]] Status check_voters_without(NodeId id) const;
  [[nodiscard]] bool fits(const RaftMessage& message) const;
  void take(std::uint64_t now, RaftMessage& message);
  void take_append(std::uint64_t now, RaftMessage& message);
  /// Hands one message to the library.
  void give(std::uint64_t now, const RaftMessage& message);
  void note_echo(const RaftMessage& message);
  void take_notice(std::uint64_t now, const RaftMessage& message);
  void answer_probe(const RaftMessage& message);
  void count_probe(const RaftMessage& message);
  /// Null: it is none. Valid until the next call.
  [[nodiscard]] const Member* member(NodeId id) const;
  [[nodiscard]] LogIndex raft_configuration_index() const;
  void send_probes();
  /// Invariant: applied_ <= committed_ <= log_.last(), unless it has failed or installs.
  void check_invariants() const noexcept;
  void fail(const std::string& what);
  void fail(const Error& error);

  const ConsensusOptions options_;
  ConsensusEffects& effects_;
  struct ShimDeleter {
    void operator()(raft_shim* shim) const noexcept;
  };
  const std::unique_ptr<raft_shim, ShimDeleter> shim_;
  MemoryLog log_;
  LogIndex applied_ = 0;
  LogIndex committed_ = 0;  // the largest that was seen
  Configuration applied_members_;
  LogIndex applied_members_index_ = 0;
  std::size_t entries_left_ = 0;  // of apply_entries_max and apply_bytes_max, in this event
  std::size_t bytes_left_ = 0;
  LogIndex persisted_ = 0;  // reported, and not yet told to the library; 0: nothing
  Term persisted_term_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t sent_at_ = 0;  // the event's now, for the echoes of appends
  mutable Configuration member_of_;
  bool sits_out_ = false;
  bool installing_ = false;
  std::optional<SnapshotOffer> offered_;  // of the message under way
  std::optional<RaftMessage> held_;       // a TimeoutNow that its receiver would ignore
  bool failed_ = false;
  bool busy_ = false;
  bool is_muted_ = false;  // the library answers what no peer has sent
  // As reported last.
  Role seen_role_ = Role::follower;
  Term seen_term_ = 0;
  NodeId seen_leader_ = 0;
  // Of a leader, in its term.
  FollowerAnswers answers_;
  Term no_lease_term_ = 0;
  // Of a follower: the newest `echo` of the leader of this term.
  std::uint64_t echo_ = 0;
  Term echo_term_ = 0;
};

}  // namespace semel::replication
