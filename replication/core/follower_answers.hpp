// What a leader knows of the other members by their answers, in its term: for its lease, for how
// current it is, and for reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/assert.hpp"
#include "replication/core/message.hpp"

namespace semel::replication {

/// Belongs to one thread; times are of the leader's clock.
class FollowerAnswers {
 public:
  /// `self`: the leader, which is a voter or not.
  explicit FollowerAnswers(NodeId self) noexcept : self_(self) {}

  /// Another role or term: the answers belong to another leader.
  void reset() noexcept {
    echoes_.clear();
    rounds_.clear();
    told_.clear();
    confirmed_ = 0;
    read_index_ = 0;
  }

  // --- time -----------------------------------------------------------------------------------
  /// A member has answered an append that was sent at `echo`.
  void note_echo(NodeId from, std::uint64_t echo) {
    std::uint64_t& known = echoes_[from];
    known = std::max(known, echo);
  }
  /// A majority of the voters, the leader among them by its answer `now`, has answered appends sent
  /// then or later; 0: none has.
  [[nodiscard]] std::uint64_t heard_at(const Configuration& members, std::uint64_t now) const {
    return majority(members, echoes_, now);
  }

  // --- reads ----------------------------------------------------------------------------------
  /// The next round, for reads at the commit index `commit`.
  std::uint64_t begin_round(LogIndex commit) noexcept {
    read_index_ = commit;
    return ++round_;
  }
  /// Of the newest round. A later one proves it too, with more committed.
  [[nodiscard]] LogIndex read_index() const noexcept { return read_index_; }
  [[nodiscard]] std::uint64_t round() const noexcept { return round_; }
  /// The newest round that a majority has confirmed.
  [[nodiscard]] std::uint64_t confirmed() const noexcept { return confirmed_; }
  [[nodiscard]] bool has_confirmed(NodeId id) const noexcept {
    const auto found = rounds_.find(id);
    return found != rounds_.end() && found->second >= round_;
  }
  void note_round(NodeId from, std::uint64_t round) {
    std::uint64_t& known = rounds_[from];
    known = std::max(known, round);
  }
  void count_rounds(const Configuration& members) {
    confirmed_ = std::max(confirmed_, majority(members, rounds_, round_));
    check_invariants();
  }

  // --- commits --------------------------------------------------------------------------------
  /// False: the member was already sent this commit index.
  [[nodiscard]] bool note_told(NodeId id, LogIndex commit) {
    LogIndex& told = told_[id];
    if (told >= commit) return false;
    told = commit;
    return true;
  }

  /// Invariant: confirmed_ <= round_.
  void check_invariants() const noexcept { SEMEL_ASSERT(confirmed_ <= round_); }

 private:
  using Answers = std::map<NodeId, std::uint64_t>;
  /// The largest answer that a majority of voters has reached, with `own` as the leader's; 0: none.
  [[nodiscard]] std::uint64_t majority(const Configuration& members, const Answers& answers,
                                       std::uint64_t own) const {
    std::vector<std::uint64_t> reached;
    for (const Member& each : members) {
      if (each.role != MemberRole::voter) continue;
      const auto found = answers.find(each.id);
      const std::uint64_t theirs = found == answers.end() ? 0 : found->second;
      reached.push_back(each.id == self_ ? own : theirs);
    }
    if (reached.empty()) return 0;
    std::sort(reached.begin(), reached.end(), std::greater<>{});
    return reached[reached.size() / 2];
  }

  const NodeId self_;
  Answers echoes_;  // when what a member has answered was sent
  Answers rounds_;  // the newest round that a member has confirmed
  std::map<NodeId, LogIndex> told_;
  std::uint64_t round_ = 0;
  std::uint64_t confirmed_ = 0;
  LogIndex read_index_ = 0;
};

}  // namespace semel::replication
