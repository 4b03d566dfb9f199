// A group of nodes in one thread: their network, their disks and their clocks are simulated, and
// the consensus core and the group's clock are the real ones. One seed is one run, the same each
// time.
//
// The network loses, doubles, delays and reorders messages, and cuts single directions. A crash
// takes what was not synced, or leaves a part of it. A sync may fail, which stops the node. Each
// node has a clock of its own, which differs in rate and offset. Nodes are stopped, and find later
// what has come meanwhile. Disks are lost, and their nodes begin empty; so do those that find the
// newest segment of their log lost. Members are added, promoted, demoted and removed, leadership is
// handed over, logs are compacted and snapshots installed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "replication/core/consensus_core.hpp"
#include "tests/proofs/random.hpp"

namespace semel::tests {

struct SimulationCounts {
  std::uint64_t commits = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t crashes = 0;
  std::uint64_t failed_syncs = 0;
  std::uint64_t elections = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t installs = 0;
  std::uint64_t changes = 0;  // of members
  std::uint64_t transfers = 0;
  std::uint64_t reads = 0;
  std::uint64_t leases = 0;  // looked at while one was held
  std::uint64_t messages = 0;
  std::uint64_t pauses = 0;
  std::uint64_t wipes = 0;
  std::uint64_t lost_segments = 0;
  std::uint64_t boots = 0;  // of all machines
  std::uint64_t leases_granted = 0;

  void add(const SimulationCounts& other);
};

class SimulatedNode;
struct SimulatedCommand;

class Simulation {
 public:
  /// `without`: "time", what protects the group's time over leaders;
  /// "identities": whatever log a member has, it is let in;
  /// "tail": a node starts also where its log has lost its newest segment.
  Simulation(std::uint64_t seed, const replication::Guards& guards,
             std::set<std::string> without = {});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// 30 s with faults, then 10 s without. Empty: nothing was found; else what, in a sentence.
  [[nodiscard]] std::string run();
  [[nodiscard]] const SimulationCounts& counts() const noexcept { return counts_; }

 private:
  friend class SimulatedNode;
  struct Event {
    std::uint64_t at;
    std::uint64_t number;
    std::function<void()> what;
    [[nodiscard]] bool operator<(const Event& other) const noexcept {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  struct Committed {
    replication::Term term;
    std::string data;
  };
  struct Turns {
    unsigned left = 0;
    std::set<replication::NodeId> who;
  };
  struct Forgetting {
    replication::NodeId forgets;
    std::vector<replication::NodeId> stale;  // cut off
    std::vector<replication::NodeId> end;
  };

  void after(std::uint64_t delay, std::function<void()> what);
  void find(const std::string& what);
  [[nodiscard]] SimulatedNode* leader();
  void load();
  void disturb();
  void change_members();
  /// Everyone is up and connected. The voters, if they are three or more; else one is made.
  std::vector<replication::NodeId> gather();
  /// A majority hands leadership to and fro, and what each of its leaders says comes late to the
  /// others. The rest is cut off, and leads then: what it knows of the time is of the first leader.
  void begin_turns(unsigned tries);
  void take_turn();
  void be_late(replication::NodeId id);
  void end_turns();
  void lead_who_missed(unsigned tries);
  void boot_all();
  /// With nothing under way.
  [[nodiscard]] bool is_leading(replication::NodeId id);
  /// `then`, once that is so, or after so many milliseconds.
  void await(std::function<bool()> what, std::uint64_t most, std::function<void()> then);
  static constexpr std::uint64_t leased_keys = 8;
  void claim_lease(SimulatedNode& node);
  void cut_some();
  void heal();
  void judge();
  /// Of every node and every wall clock: the nodes' own clocks differ.
  [[nodiscard]] std::int64_t wall_ms() const noexcept {
    return 1'700'000'000'000 + static_cast<std::int64_t>(now_) + wall_ahead_ms_;
  }
  void deliver(const replication::RaftMessage& message, const replication::LogIdentity& log);
  /// Whether a node may lose its disk: at most a minority of the voters has, and those that count
  /// on it know which log it had. (A first member whose log nobody knows yet is not started again
  /// by the same command.)
  [[nodiscard]] bool may_wipe(SimulatedNode& node);
  /// A minority is cut off while the others go on. One of these then loses the newest segment of
  /// its log, and the rest of them ends: with the minority it must not lead without what is lost.
  /// Or, of three, it loses its disk, and the former leader leads anew with the vote of the one
  /// that was cut off, and ends when the other one has had the first of the log again.
  void forget_and_vote(unsigned tries);
  void forget(const Forgetting& parts);
  void lose_segment(SimulatedNode& node);
  void end_when_begun(replication::NodeId leads, replication::NodeId forgets, unsigned tries);
  /// Of a member, by this configuration: its disk was lost since.
  [[nodiscard]] bool is_wiped(const replication::Member& member) const;
  /// The runbook: a member that has lost its disk is removed, and comes back as a new one.
  void replace_wiped();
  /// By this entry a client has been granted a lease: after the one before has ended.
  void leased(replication::LogIndex index, const SimulatedCommand& command);
  void send(const replication::RaftMessage& message);
  void committed(SimulatedNode& node, replication::LogIndex index,
                 const replication::RaftEntry& entry);

  proofs::Random random_;
  const replication::Guards guards_;
  const std::set<std::string> without_;
  SimulationCounts counts_;
  std::uint64_t now_ = 1'000;
  std::uint64_t events_ = 0;
  std::priority_queue<Event> queue_;
  std::map<replication::NodeId, std::unique_ptr<SimulatedNode>> nodes_;
  std::set<std::pair<replication::NodeId, replication::NodeId>> cut_;
  // Appends do not come through, and all else does.
  std::optional<std::pair<replication::NodeId, replication::NodeId>> starved_;
  std::uint64_t loss_ = 0;      // in 1,000
  std::uint64_t latency_ = 1;   // ms
  std::uint64_t slowness_ = 1;  // of disks, ms
  std::uint64_t clients_ = 0;
  Turns turns_;
  std::uint64_t quiet_until_ = 0;   // clients ask for nothing
  std::int64_t wall_ahead_ms_ = 0;  // of true time: all wall clocks were set
  std::uint64_t first_leased_ = 0;  // of the keys that are wanted for a lease, now
  bool is_healed_ = false;
  std::string found_;
  std::map<replication::LogIndex, Committed> log_;  // that any node has applied
  std::map<std::uint64_t, std::uint64_t> owners_;   // key: client that was told so
  std::map<replication::Term, replication::NodeId> leaders_;
  // When what was granted last was asked for, by its key and on this clock; and by which entry.
  std::map<std::uint64_t, std::pair<std::uint64_t, replication::LogIndex>> leases_;
  replication::LogIndex answered_ = 0;  // the largest index of an entry that was acknowledged
};

}  // namespace semel::tests
