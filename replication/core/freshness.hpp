// How long ago this node had all that its group had decided.
//
// No message says how old it is: a partition may delay it for as long as it lasts. So a node takes
// the time on its own clock, for a way there and back. Its reply to the leader carries a mark m,
// and the node keeps the time issued(m) of the first reply with that mark. The leader echoes m once
// a quorum has acknowledged its term for something that it sent after m arrived: no later leader
// existed by then.
//
//   Invariant: an append that echoes m implies that its commit index is at least what the group had
//   decided at issued(m). So a node that has applied that index had all of it at issued(m).
//
// Belongs to one thread; times are of a clock that does not go back, in milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "replication/core/types.hpp"

namespace semel::replication {

class Freshness {
 public:
  /// `seed`: another one for each life of a node. A leader may still have the mark of an earlier
  /// life, whose time this one does not know.
  explicit Freshness(std::uint64_t seed) noexcept : mark_(seed & mark_mask) {}

  // --- of a node that follows -------------------------------------------------------------------
  /// For a reply to an append, which is sent now. Not 0.
  [[nodiscard]] std::uint64_t mark(std::uint64_t now) noexcept;
  /// An append of the leader of this node's term has come, with a mark and a commit index. Returns
  /// when the reply was sent that it answers; none: unknown.
  std::optional<std::uint64_t> came(std::uint64_t mark, LogIndex commit) noexcept;

  // --- of a node that leads ---------------------------------------------------------------------
  /// A reply to an append of `term`, in which this node leads, has come now. std::bad_alloc.
  void replied(NodeId from, Term term, std::uint64_t mark, std::uint64_t now);
  /// For an append of `term` to that node. `heard`: a majority has answered appends that this
  /// leader sent then, or 0. Returns 0 if there is no mark, or if others may have decided without
  /// this leader when it was new.
  [[nodiscard]] std::uint64_t mark_of(NodeId to, Term term, std::uint64_t heard) const noexcept;
  /// The entries up to `commit` are all that was decided at `at`; 0: not known.
  void leads(std::uint64_t at, LogIndex commit) noexcept;

  /// Returns a time at which this node had everything decided by then, given the index applied; 0:
  /// unknown.
  [[nodiscard]] std::uint64_t fresh_at(LogIndex applied) noexcept;

 private:
  static constexpr std::uint64_t mark_mask = 0xffff'ffff;  // five bytes on the wire

  /// The entries up to `commit` are all that was decided at `at`.
  struct Known {
    std::uint64_t at;
    LogIndex commit;
  };
  struct Replied {
    Term term;
    std::uint64_t mark;
    std::uint64_t at;  // when it came first
  };
  void know(Known known) noexcept;

  std::uint64_t mark_;  // the newest; it is on its way if it has a time
  std::optional<std::uint64_t> marked_at_;
  std::optional<Known> known_;  // not applied yet
  std::optional<Known> next_;   // the newest behind it
  std::uint64_t fresh_at_ = 0;
  std::map<NodeId, Replied> replied_;
};

}  // namespace semel::replication
