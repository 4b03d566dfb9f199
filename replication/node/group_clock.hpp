// The time that a leader gives its entries, and what every node knows of it.
//
// It goes on from the newest entry by a clock that no one sets (CLOCK_BOOTTIME), and follows the
// wall clock slowly. So neither a step of the wall clock nor a new leader whose wall clock is wrong
// lets records end at once. How far it is from CLOCK_BOOTTIME is known to who has followed a leader
// since the machine was booted, also in an earlier process (TimeContent). Who does not know it has
// a wall clock to guess by, and believes it only if a majority of the voters is not earlier: a node
// that wins an election has been told the time of each that voted for it.
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replication/core/message.hpp"
#include "storage/log/checkpoint.hpp"

namespace semel::replication {

/// How far the group's time is from CLOCK_BOOTTIME, on the disk: for another process of this boot.
/// Not synced: what a power cut takes is of no use after it.
struct TimeContent {
  static constexpr std::uint64_t magic_value = 0x31454d49'544c4d53;  // "SMLTIME1"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // grows with each write
  std::uint64_t cluster_id = 0;
  std::uint64_t boot = 0;    // digest of the boot, and of the clock's namespace
  std::int64_t boot_ms = 0;  // when it was written
  std::int64_t offset = 0;   // of the group's time from boot_ms
  std::uint64_t digest = 0;  // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(TimeContent, digest));
  }
};
using TimeFile = storage::TwoSlots<TimeContent>;

/// Of one node, when it was asked.
struct TimeEstimate {
  std::int64_t unix_ms = 0;
  bool is_known = false;  ///< from entries; otherwise its wall clock's
  [[nodiscard]] bool operator==(const TimeEstimate&) const = default;
};

class GroupClock {
 public:
  /// After a start. `newest_ms`: of the newest entry that is known, 0: none. `boot_ms`:
  /// milliseconds of CLOCK_BOOTTIME, here and below. `ahead_max`: so much later than the newest
  /// entry a wall clock may be, to be believed.
  void begin(std::int64_t newest_ms, std::int64_t unix_ms, std::int64_t boot_ms,
             std::int64_t ahead_max) noexcept;
  /// Behind begin(): what an earlier process of this boot has known.
  void recall(const TimeContent& known, std::int64_t boot_ms) noexcept;

  /// An entry of this time was applied.
  void saw(std::int64_t entry_ms, std::int64_t boot_ms) noexcept;
  /// The same, of an entry of another node that leads at present, in its `term`: its time is the
  /// group's, also where it is somewhat behind what this node has known.
  void follow(std::int64_t entry_ms, std::int64_t boot_ms, Term term) noexcept;
  /// What a voter thinks, which has just voted for this node. Others than plausible times are
  /// ignored. std::bad_alloc.
  void heard(NodeId from, TimeEstimate estimate, std::int64_t boot_ms);

  /// Whether this node, which leads, has to call settle() before next().
  [[nodiscard]] bool has_to_settle() const noexcept { return is_settling_ && has_news_; }
  /// Takes what the voters have made of it: they are so many, and a majority has been heard.
  void settle(std::size_t voters) noexcept;
  /// For the next entry: not before the newest one. It is known.
  [[nodiscard]] std::int64_t next(std::int64_t boot_ms, std::int64_t unix_ms) noexcept;
  /// How far the wall clock is from the group's time.
  [[nodiscard]] std::int64_t off_by(std::int64_t boot_ms, std::int64_t unix_ms) const noexcept {
    return unix_ms - at(boot_ms);
  }
  /// The group's time, as far as this node knows or guesses it.
  [[nodiscard]] std::int64_t at(std::int64_t boot_ms) const noexcept;
  [[nodiscard]] TimeEstimate estimate(std::int64_t boot_ms) const noexcept {
    return {at(boot_ms), is_known_};
  }
  /// For the disk, if it is known, and differs from what is there by two milliseconds or ten
  /// seconds.
  [[nodiscard]] std::optional<TimeContent> to_keep(std::int64_t boot_ms) noexcept;

 private:
  struct Voice {
    NodeId from;
    std::int64_t offset;
    bool is_known;
  };
  [[nodiscard]] std::int64_t plausible(std::int64_t offset) const noexcept;

  // Of the group's time from CLOCK_BOOTTIME.
  std::int64_t offset_ = 0;
  std::int64_t newest_ = 0;       // of the entries: time never goes back behind it
  std::int64_t newest_boot_ = 0;  // when it was applied
  std::int64_t ahead_max_ = 0;
  std::int64_t slewed_at_ = 0;    // by next()
  std::int64_t followed_at_ = 0;  // by follow()
  Term followed_term_ = 0;        // of follow()
  bool is_known_ = false;
  bool is_settling_ = false;  // what voters say counts: the first time as a leader is of them
  bool has_news_ = false;     // since settle()
  std::int64_t guess_ = 0;    // an offset: the wall clock's at the start
  std::vector<Voice> voices_;
  std::int64_t kept_offset_ = 0;
  std::optional<std::int64_t> kept_at_;
};

}  // namespace semel::replication
