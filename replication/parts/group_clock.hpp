// The time that a leader gives its entries, and every node's knowledge of it.
//
// It goes on from the newest entry by a clock that no one sets (CLOCK_BOOTTIME), and follows the
// wall clock slowly. So neither a step of the wall clock nor a new leader whose wall clock is wrong
// lets records end at once. A node knows its offset from CLOCK_BOOTTIME if it has followed a leader
// since the machine was booted, also in an earlier process (TimeContent). Another node guesses by
// its wall clock, less what the group's time was behind it before the boot, and believes it only if
// a majority of the voters is not earlier: a node that wins an election has the time of each node
// that voted for it.
//
// The time that a leader has granted leases by must not be earlier than the time of any leader
// after it, or these end early. What a node knows of the time is therefore of a term: a message of
// that term's leader said what time it was, and came later than it was sent. So it is never ahead
// of that leader, nor, since each leader takes over the time of the newest term, of any before it.
// The time of a newer term replaces that of an older one, also where it is less
// (docs/decisions/0071-time-over-leaders.md).
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replication/core/message.hpp"
#include "replication/log/kept_time.hpp"

namespace semel::replication {

/// Of one node, when it was asked.
struct TimeEstimate {
  std::int64_t unix_ms = 0;
  bool is_known = false;  ///< from a leader; otherwise its wall clock's
  Term term = 0;          ///< of that leader; 0: a release before level 4 does not say
  [[nodiscard]] bool operator==(const TimeEstimate&) const = default;
};

class GroupClock {
 public:
  /// What protects against times that end leases early. Off only in the simulator, which then must
  /// find that.
  struct Guards {
    /// A leader of a newer term counts also where it is more than half a second behind.
    bool counts_terms = true;
    /// What the group's time was behind the wall clock before a boot counts after it.
    bool counts_behind = true;
  };
  explicit GroupClock(Guards guards) noexcept : guards_(guards) {}
  GroupClock() noexcept : GroupClock(Guards{}) {}

  /// After a start. `newest_ms`: of the newest entry that is known, 0: none. `boot_ms`:
  /// milliseconds of CLOCK_BOOTTIME, here and below. `ahead_max`: so much later than the newest
  /// entry a wall clock may be, to be believed.
  void begin(std::int64_t newest_ms, std::int64_t unix_ms, std::int64_t boot_ms,
             std::int64_t ahead_max) noexcept;
  /// Behind begin(): what an earlier process has known. Of another boot than this one only `behind`
  /// counts, and only where the group's time was behind: a wall clock that was too early before the
  /// boot and is right after it must not let records end.
  void recall(const TimeContent& known, bool is_of_this_boot, std::int64_t boot_ms) noexcept;

  /// An entry of this time and term was applied.
  void saw(std::int64_t entry_ms, std::int64_t boot_ms, Term term) noexcept;
  /// The leader of this `term`, another node, has said that it is this time, or has given it to an
  /// entry. An older term than is known says nothing.
  void follow(std::int64_t leader_ms, std::int64_t boot_ms, Term term) noexcept;
  /// The message of the last follow() was sent after `asked_boot_ms`: this bounds the error of this
  /// node's time.
  void bound(std::int64_t leader_ms, std::int64_t asked_boot_ms, Term term) noexcept;
  /// Whether this node is at most half a second behind the newest leader that it knows of.
  [[nodiscard]] bool is_close() const noexcept;
  /// Before a message goes: what it has for hear(). `leads`: in the message's term.
  void tell(RaftMessage& message, bool leads, std::int64_t boot_ms) const noexcept;
  /// Before the core takes a message, in this `term`: a node that has its entries, and leads by
  /// them, then also has the time by which their leases were granted. std::bad_alloc.
  void hear(const RaftMessage& message, Term term, std::int64_t boot_ms);
  /// What a voter thinks, which has just voted for this node. Others than plausible times are
  /// ignored. std::bad_alloc.
  void heard(NodeId from, TimeEstimate estimate, std::int64_t boot_ms);

  /// Whether this node, which leads in `term`, has to call lead() before next().
  [[nodiscard]] bool has_to_lead(Term term) const noexcept {
    return led_term_ != term || (is_guess_ && has_news_);
  }
  /// Takes what this node and its voters know of the newest term; they are so many, and a majority
  /// has been heard. All entries of former leaders are applied.
  void lead(Term term, std::size_t voters) noexcept;
  /// For the next entry: not before the newest one. lead() was called for this term.
  [[nodiscard]] std::int64_t next(std::int64_t boot_ms, std::int64_t unix_ms) noexcept;
  /// How far the wall clock is from the group's time.
  [[nodiscard]] std::int64_t off_by(std::int64_t boot_ms, std::int64_t unix_ms) const noexcept {
    return unix_ms - at(boot_ms);
  }
  /// The group's time, as far as this node knows or guesses it.
  [[nodiscard]] std::int64_t at(std::int64_t boot_ms) const noexcept;
  [[nodiscard]] TimeEstimate estimate(std::int64_t boot_ms) const noexcept {
    return {at(boot_ms), is_known_, is_known_ ? term_ : 0};
  }
  /// For the disk, if it is known, and is a few milliseconds off the kept one, or ten seconds
  /// newer.
  [[nodiscard]] std::optional<TimeContent> to_keep(std::int64_t boot_ms,
                                                   std::int64_t unix_ms) noexcept;

 private:
  struct Voice {
    NodeId from;
    std::int64_t offset;
    bool is_known;
    Term term;
  };
  void know(std::int64_t offset, std::int64_t boot_ms, Term term) noexcept;
  [[nodiscard]] std::int64_t plausible(std::int64_t offset) const noexcept;
  [[nodiscard]] std::int64_t majority_of_guesses(std::size_t voters) const noexcept;

  Guards guards_;
  // Of the group's time from CLOCK_BOOTTIME.
  std::int64_t offset_ = 0;
  std::int64_t newest_ = 0;       // of the entries: time never goes back behind it
  std::int64_t newest_boot_ = 0;  // when it was applied
  std::int64_t ahead_max_ = 0;
  std::int64_t slewed_at_ = 0;  // by next()
  std::int64_t window_ = 0;     // of follow(), since window_at_: the latest
  std::int64_t before_ = 0;     // the same of the window before
  std::int64_t window_at_ = 0;
  Term term_ = 0;         // of the leader that offset_ is of, if is_known_
  Term newest_term_ = 0;  // of the entries
  Term led_term_ = 0;     // of the newest lead()
  Term needed_term_ = 0;  // oldest term of a usable time: that of the entries before lead()
  bool is_known_ = false;
  bool is_guess_ = false;              // of lead(), by wall clocks
  bool has_news_ = false;              // heard() since lead()
  std::int64_t guess_ = 0;             // an offset: the wall clock's at the start
  std::optional<std::int64_t> upper_;  // of offset_: the leader's is not more
  std::vector<Voice> voices_;
  std::optional<TimeContent> kept_;  // the newest of to_keep()
};

}  // namespace semel::replication
