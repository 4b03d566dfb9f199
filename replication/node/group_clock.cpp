#include "replication/node/group_clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/assert.hpp"

namespace semel::replication {
namespace {

/// A leader's time may be slower or faster than CLOCK_BOOTTIME by one in so many.
constexpr std::int64_t slew = 1'000;
/// Who follows lets go what it knows twice as fast, until the next entry says better: its time is
/// never ahead of the leader's for long, whose entries all come late.
constexpr std::int64_t let_go = slew / 2;
constexpr std::int64_t unix_ms_max = std::int64_t{1} << 53;
/// A new leader may know the time worse than others, by as much as its entries came late to it. Who
/// follows it goes back with it. Otherwise the leader after it would be ahead of it, and end the
/// leases early that it has granted. No further: entries that come late say nothing of it, and
/// repeats count on a time that is known to a second (skew_margin).
constexpr std::int64_t back_most_ms = 500;
constexpr std::int64_t keep_every_ms = 10'000;
constexpr std::int64_t keep_at_most_every_ms = 1'000;

}  // namespace

void GroupClock::begin(std::int64_t newest_ms, std::int64_t unix_ms, std::int64_t boot_ms,
                       std::int64_t ahead_max) noexcept {
  newest_ = newest_ms;
  newest_boot_ = slewed_at_ = followed_at_ = boot_ms;
  ahead_max_ = ahead_max;
  guess_ = std::clamp<std::int64_t>(unix_ms, 0, unix_ms_max) - boot_ms;
  offset_ = plausible(guess_);
  is_known_ = false;
  is_settling_ = has_news_ = true;
}

void GroupClock::recall(const TimeContent& known, std::int64_t boot_ms) noexcept {
  if (known.boot_ms > boot_ms || known.boot_ms < 0) return;
  // A leader may have gone on meanwhile, at its slowest.
  offset_ = known.offset - (boot_ms - known.boot_ms) / slew - 1;
  is_known_ = true;
  is_settling_ = false;
  saw(newest_, boot_ms);
}

std::int64_t GroupClock::at(std::int64_t boot_ms) const noexcept {
  return std::max(newest_, offset_ + std::max(boot_ms, newest_boot_));
}

void GroupClock::saw(std::int64_t entry_ms, std::int64_t boot_ms) noexcept {
  if (entry_ms < newest_) return;
  newest_ = entry_ms;
  newest_boot_ = boot_ms;
  // What this node has counted on since the entry before stays, if it is more.
  offset_ = std::max(offset_, entry_ms - boot_ms);
}

void GroupClock::follow(std::int64_t entry_ms, std::int64_t boot_ms, Term term) noexcept {
  if (is_known_ && term != followed_term_) {
    offset_ = std::max(std::min(offset_, entry_ms - boot_ms), offset_ - back_most_ms);
    followed_at_ = boot_ms;
  } else if (is_known_) {
    const std::int64_t gone = std::max<std::int64_t>(0, boot_ms - followed_at_) / let_go;
    offset_ -= gone;
    followed_at_ += gone * let_go;
  } else {
    // In place of what a wall clock says, which may be days ahead.
    offset_ = std::max(entry_ms, newest_) - boot_ms;
    followed_at_ = boot_ms;
    is_known_ = true;
  }
  followed_term_ = term;
  is_settling_ = false;
  voices_.clear();
  slewed_at_ = boot_ms;
  saw(entry_ms, boot_ms);
}

void GroupClock::heard(NodeId from, TimeEstimate estimate, std::int64_t boot_ms) {
  if (!is_settling_ || estimate.unix_ms < 0 || estimate.unix_ms > unix_ms_max) return;
  std::erase_if(voices_, [&](const Voice& each) { return each.from == from; });
  if (voices_.size() == members_max) return;
  voices_.push_back({from, estimate.unix_ms - boot_ms, estimate.is_known});
  has_news_ = true;
}

/// A wall clock that is behind the newest entry, or too far ahead of it, is wrong.
std::int64_t GroupClock::plausible(std::int64_t offset) const noexcept {
  const std::int64_t least = newest_ - newest_boot_;
  const bool is_good = newest_ == 0 || (offset >= least && offset - least <= ahead_max_);
  return is_good ? offset : least;
}

void GroupClock::settle(std::size_t voters) noexcept {
  std::int64_t found[members_max + 1] = {plausible(guess_)};
  std::size_t count = 1;
  std::optional<std::int64_t> known;
  for (const Voice& each : voices_) {
    if (each.is_known) known = std::max(known.value_or(each.offset), each.offset);
    found[count++] = each.is_known ? each.offset : plausible(each.offset);
  }
  std::sort(found, found + count, std::greater<>{});
  const std::size_t majority = voters / 2 + 1;
  std::int64_t settled = newest_ == 0 ? guess_ : newest_ - newest_boot_;
  if (known) {
    settled = *known;
  } else if (count >= majority) {
    settled = found[majority - 1];  // so many say that it is as late as this
  }
  // The first time it takes the place of what was guessed. Afterwards it has given times to
  // entries.
  offset_ = is_known_ ? std::max(offset_, settled) : settled;
  offset_ = std::max(offset_, newest_ - newest_boot_);
  is_known_ = true;
  has_news_ = false;
}

std::int64_t GroupClock::next(std::int64_t boot_ms, std::int64_t unix_ms) noexcept {
  SEMEL_ASSERT(is_known_);
  const std::int64_t passed = std::max<std::int64_t>(0, boot_ms - slewed_at_);
  if (passed >= 1'000) {
    const std::int64_t most = passed / slew;
    offset_ += std::clamp<std::int64_t>(unix_ms - (offset_ + boot_ms), -most, most);
    slewed_at_ = boot_ms;
  }
  followed_at_ = boot_ms;
  newest_ = at(boot_ms);
  newest_boot_ = std::max(newest_boot_, boot_ms);
  offset_ = std::max(offset_, newest_ - newest_boot_);
  return newest_;
}

std::optional<TimeContent> GroupClock::to_keep(std::int64_t boot_ms) noexcept {
  if (!is_known_) return std::nullopt;
  const std::int64_t passed = boot_ms - kept_at_.value_or(boot_ms - keep_every_ms);
  const bool is_other = std::abs(offset_ - kept_offset_) >= 2;
  if (passed < (is_other ? keep_at_most_every_ms : keep_every_ms)) return std::nullopt;
  kept_at_ = boot_ms;
  kept_offset_ = offset_;
  TimeContent content;
  content.boot_ms = boot_ms;
  content.offset = offset_;
  return content;
}

}  // namespace semel::replication
