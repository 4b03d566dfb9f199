// How long ago this node had all that its group had decided.
//
// No message says how old it is: the network may have held it up, for as long as a partition takes.
// So time is taken on this node's clock alone, for a way there and back. A reply to the leader
// carries a mark, and the time of the first one with that mark is kept. An append that has the mark
// was sent later than that, by a leader that knew what was decided when the mark was new: a
// majority has answered it since, so there was no later leader by then. When all that the append
// says is committed is applied here, this node has what was decided when the mark was new.
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
  /// An append of the leader of this node's term has come, with a mark, and says so much is
  /// committed. When the reply was sent that it answers; none: that is not known.
  std::optional<std::uint64_t> came(std::uint64_t mark, LogIndex commit) noexcept;

  // --- of a node that leads ---------------------------------------------------------------------
  /// A reply to an append of `term`, in which this node leads, has come now. std::bad_alloc.
  void replied(NodeId from, Term term, std::uint64_t mark, std::uint64_t now);
  /// For an append of `term` to that node. `heard`: a majority has answered what this leader has
  /// sent then, or 0. 0: there is no mark, or others may have decided without this leader when it
  /// was new.
  [[nodiscard]] std::uint64_t mark_of(NodeId to, Term term, std::uint64_t heard) const noexcept;
  /// What is committed up to `commit` is all that was decided at `at`; 0: not known.
  void leads(std::uint64_t at, LogIndex commit) noexcept;

  /// So much is applied. The time at which all was here that was decided; 0: not known.
  [[nodiscard]] std::uint64_t fresh_at(LogIndex applied) noexcept;

 private:
  static constexpr std::uint64_t mark_mask = 0xffff'ffff;  // five bytes on the wire

  /// All up to `commit` is what was decided at `at`.
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
