// One node of a simulation: its disk, its clock, its state machine.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replication/core/log_identity.hpp"
#include "replication/parts/group_clock.hpp"
#include "tests/replication/core/simulation.hpp"

namespace semel::tests {

/// An entry: a client wants a key, for good or until a lease ends.
struct SimulatedCommand {
  std::uint64_t key;
  std::uint64_t client;
  std::int64_t group_ms;   // the leader's stamp
  std::uint64_t asked_at;  // on the simulation's clock, which no node knows
  std::int64_t lease_ms;   // 0: for good
};

/// The state machine: who was first to claim a key. The digest is of all that was applied.
struct SimulatedState {
  struct Lease {
    std::uint64_t client;
    std::int64_t until;      // the group's time
    std::uint64_t asked_at;  // of SimulatedCommand
  };
  std::map<std::uint64_t, std::uint64_t> owners;
  std::map<std::uint64_t, Lease> leases;
  std::int64_t group_ms = 0;
  std::uint64_t digest = 0;

  /// The owner of the key.
  std::uint64_t apply(replication::LogIndex index, const SimulatedCommand& command);
};

class SimulatedNode final : public replication::ConsensusEffects {
 public:
  SimulatedNode(Simulation& world, replication::NodeId id);
  ~SimulatedNode() override;

  /// A member from the beginning has the configuration as its first entry.
  void found(const replication::SharedData& configuration);
  void boot();
  /// What was not synced is lost, or a part of it.
  void crash();
  void stop();
  /// Its disk is lost. It is started by the same command then: empty, and waits for a leader.
  void wipe();
  /// Its clock counts from another time, and says nothing about that of before.
  void boot_machine();
  /// While it is down, the newest segment of its log is lost.
  void lose_segment();
  [[nodiscard]] const replication::LogIdentity& log_identity() const noexcept { return identity_; }
  /// Whether this node lets that one in which has this log.
  [[nodiscard]] bool accepts(replication::NodeId id, const replication::LogIdentity& log);
  /// By the newest configuration that it has, running or not.
  [[nodiscard]] replication::Configuration members_on_disk() const;
  /// What comes and what is due waits until then, in its order, as with SIGSTOP.
  void pause(std::uint64_t until) noexcept { paused_until_ = until; }
  [[nodiscard]] std::uint64_t paused_until() const noexcept { return paused_until_; }

  [[nodiscard]] bool is_up() const noexcept { return core_ != nullptr; }
  [[nodiscard]] replication::ConsensusCore& core() noexcept { return *core_; }
  [[nodiscard]] const SimulatedState& state() const noexcept { return state_; }
  [[nodiscard]] replication::NodeId id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t clock() const noexcept;
  [[nodiscard]] replication::Term stored_term() const noexcept { return term_; }
  /// Up to which entry its disk has everything.
  [[nodiscard]] replication::LogIndex stored() const noexcept {
    return std::max(first_ + log_.size() - 1, snapshot_ ? snapshot_->id.index : 0);
  }
  /// `log`: that its sender had.
  void receive(const replication::RaftMessage& message, const replication::LogIdentity& log);
  void claim(std::uint64_t key, std::uint64_t client, std::int64_t lease_ms);
  void begin_read();

  [[nodiscard]] Status save_vote(replication::Term term, replication::NodeId vote) override;
  void append(replication::LogIndex first, std::vector<replication::RaftEntry> entries) override;
  void send(replication::RaftMessage message) override;
  void apply(replication::LogIndex index, const replication::RaftEntry& entry) override;
  void install(const replication::SnapshotOffer& offer) override;
  void changed() override;
  void failed(const Error& error) override;

 private:
  struct Write {
    replication::LogIndex first;
    std::vector<replication::RaftEntry> entries;
  };
  struct Segment {  // the newest one: what is there without it
    replication::LogIndex first = 1;
    std::deque<replication::RaftEntry> log;
    std::uint64_t written = 0;
  };
  struct Snapshot {
    replication::SnapshotId id;
    SimulatedState state;
  };
  struct Read {
    std::uint64_t round;
    replication::LogIndex least;  // answered before it began
  };

  void tick_soon();
  void write_done(std::uint64_t life, replication::LogIndex last, replication::Term term);
  void put(const Write& write);
  void consider_snapshot();
  void finish_reads();
  void check_members();
  void lead_time();
  void keep_time();
  void learn_logs();
  [[nodiscard]] std::uint64_t disk_delay();

  Simulation& world_;
  const replication::NodeId id_;
  std::unique_ptr<replication::ConsensusCore> core_;
  replication::GroupClock time_;
  replication::MemberLogs member_logs_;
  std::uint64_t life_ = 0;
  std::uint64_t paused_until_ = 0;
  SimulatedState state_;
  std::vector<Read> reads_;
  bool is_taking_ = false;
  std::int64_t offset_;
  std::int64_t rate_;  // of the clock, in 1,000,000
  // The disk.
  replication::LogIdentity identity_;
  replication::Term term_ = 0;
  replication::NodeId vote_ = 0;
  std::optional<Snapshot> snapshot_;
  std::optional<replication::TimeContent> kept_time_;
  bool is_time_of_boot_ = true;
  std::map<replication::LogIndex, Snapshot> sent_;  // states by index, for those who install them
  replication::LogIndex first_ = 1;
  std::deque<replication::RaftEntry> log_;
  std::uint64_t written_ = 0;  // entries, also those that others have taken the place of
  std::uint64_t tail_ = 0;     // the file: how many of them were synced
  Segment segment_;
  std::deque<Write> writing_;  // not synced
  std::uint64_t disk_free_ = 0;
};

}  // namespace semel::tests
