#include "replication/parts/group_clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {
namespace {

/// A leader's time may be slower or faster than CLOCK_BOOTTIME by one in so many.
constexpr std::int64_t slew = 1'000;
/// Of one leader's messages, the one that was under way for the shortest time counts, for this
/// long: clocks differ in speed, and the leader follows its wall clock.
constexpr std::int64_t window_ms = 1'000;
constexpr std::int64_t unix_ms_max = std::int64_t{1} << 53;
/// A node answers repeats by a time that is known to a second (skew_margin). Half of it is for the
/// drift of both clocks until the leader's next message.
constexpr std::int64_t close_ms = 500;
constexpr std::int64_t keep_every_ms = 10'000;
constexpr std::int64_t keep_at_most_every_ms = 1'000;
constexpr std::int64_t behind_step_ms = 5;

}  // namespace

void GroupClock::begin(std::int64_t newest_ms, std::int64_t unix_ms, std::int64_t boot_ms,
                       std::int64_t ahead_max) noexcept {
  newest_ = newest_ms;
  newest_boot_ = slewed_at_ = window_at_ = boot_ms;
  ahead_max_ = ahead_max;
  guess_ = std::clamp<std::int64_t>(unix_ms, 0, unix_ms_max) - boot_ms;
  offset_ = plausible(guess_);
  term_ = newest_term_ = led_term_ = 0;
  is_known_ = is_guess_ = has_news_ = false;
}

void GroupClock::recall(const TimeContent& known, bool is_of_this_boot,
                        std::int64_t boot_ms) noexcept {
  if (known.behind > 0 && known.behind <= unix_ms_max && guards_.counts_behind) {
    guess_ -= known.behind;
    offset_ = plausible(guess_);
  }
  if (!is_of_this_boot || known.boot_ms > boot_ms || known.boot_ms < 0) return;
  // A leader may have gone on meanwhile, at its slowest.
  know(known.offset - (boot_ms - known.boot_ms) / slew - 1, boot_ms, known.term);
}

std::int64_t GroupClock::at(std::int64_t boot_ms) const noexcept {
  return std::max(newest_, offset_ + std::max(boot_ms, newest_boot_));
}

void GroupClock::saw(std::int64_t entry_ms, std::int64_t boot_ms, Term term) noexcept {
  newest_term_ = std::max(newest_term_, term);
  if (entry_ms < newest_) return;
  newest_ = entry_ms;
  newest_boot_ = boot_ms;
  // Until a leader says more: an entry is never ahead of its leader.
  if (!is_known_) offset_ = std::max(offset_, entry_ms - boot_ms);
}

void GroupClock::know(std::int64_t offset, std::int64_t boot_ms, Term term) noexcept {
  offset_ = window_ = before_ = offset;
  window_at_ = slewed_at_ = boot_ms;
  term_ = term;
  upper_.reset();
  is_known_ = true;
  is_guess_ = false;
}

void GroupClock::follow(std::int64_t leader_ms, std::int64_t boot_ms, Term term) noexcept {
  if (leader_ms <= 0 || leader_ms > unix_ms_max) return;
  const std::int64_t offset = leader_ms - boot_ms;
  if (!is_known_ || term > term_) {
    // In place of what a wall clock says, which may be days ahead, and of what a former leader
    // knew, which may be ahead of what this one grants leases by.
    const bool counts = guards_.counts_terms || !is_known_;
    know(counts ? offset : std::max(std::min(offset, offset_), offset_ - close_ms), boot_ms, term);
  } else if (term == term_ && led_term_ != term) {
    const std::int64_t passed = boot_ms - window_at_;
    // The best of the previous window counts as well.
    const std::int64_t before = passed >= 2 * window_ms ? offset : window_;
    const bool is_next = passed >= window_ms;
    window_ = is_next ? offset : std::max(window_, offset);
    window_at_ = is_next ? boot_ms : window_at_;
    before_ = is_next ? before : before_;
    offset_ = std::max(window_, before_);
    slewed_at_ = boot_ms;  // by the leader
  }
  voices_.clear();
}

void GroupClock::bound(std::int64_t leader_ms, std::int64_t asked_boot_ms, Term term) noexcept {
  if (term == term_) upper_ = leader_ms - asked_boot_ms;
}

bool GroupClock::is_close() const noexcept {
  return is_known_ && (led_term_ == term_ || (upper_ && *upper_ - offset_ <= close_ms));
}

void GroupClock::tell(RaftMessage& message, bool leads, std::int64_t boot_ms) const noexcept {
  if (auto* const vote = std::get_if<VoteReply>(&message.what)) {
    vote->unix_ms = at(boot_ms);
    vote->is_time_known = is_known_;
    vote->time_term = is_known_ ? term_ : 0;
  } else if (auto* const append = std::get_if<AppendRequest>(&message.what)) {
    append->unix_ms = leads && led_term_ == message.term ? at(boot_ms) : 0;
  }
}

void GroupClock::hear(const RaftMessage& message, Term term, std::int64_t boot_ms) {
  if (const auto* const vote = std::get_if<VoteReply>(&message.what)) {
    heard(message.from, {vote->unix_ms, vote->is_time_known, vote->time_term}, boot_ms);
  } else if (const auto* const append = std::get_if<AppendRequest>(&message.what)) {
    if (append->unix_ms != 0 && message.term >= term) {
      follow(append->unix_ms, boot_ms, message.term);
    }
  }
}

void GroupClock::heard(NodeId from, TimeEstimate estimate, std::int64_t boot_ms) {
  if (estimate.unix_ms < 0 || estimate.unix_ms > unix_ms_max) return;
  std::erase_if(voices_, [&](const Voice& each) { return each.from == from; });
  if (voices_.size() == members_max) return;
  voices_.push_back({from, estimate.unix_ms - boot_ms, estimate.is_known, estimate.term});
  has_news_ = true;
}

/// A wall clock that is behind the newest entry, or too far ahead of it, is wrong.
std::int64_t GroupClock::plausible(std::int64_t offset) const noexcept {
  const std::int64_t least = newest_ - newest_boot_;
  const bool is_good = newest_ == 0 || (offset >= least && offset - least <= ahead_max_);
  return is_good ? offset : least;
}

/// What so many wall clocks are not earlier than. They are not asked where a majority is missing.
std::int64_t GroupClock::majority_of_guesses(std::size_t voters) const noexcept {
  std::int64_t found[members_max + 1] = {plausible(guess_)};
  std::size_t count = 1;
  for (const Voice& each : voices_) found[count++] = plausible(each.offset);
  const std::size_t majority = voters / 2 + 1;
  if (count < majority) return newest_ == 0 ? guess_ : newest_ - newest_boot_;
  std::sort(found, found + count, std::greater<>{});
  return found[majority - 1];
}

void GroupClock::lead(Term term, std::size_t voters) noexcept {
  const bool is_first = led_term_ != term;
  if (is_first) needed_term_ = newest_term_;
  const bool is_ours = is_known_ && !is_guess_;
  bool anyone_knew = is_ours;
  std::optional<Voice> best;
  if (is_ours && term_ >= needed_term_) best = Voice{0, offset_, true, term_};
  for (const Voice& each : voices_) {
    anyone_knew = anyone_knew || each.is_known;
    if (!each.is_known || each.term < needed_term_) continue;
    if (!best || std::pair{each.term, each.offset} > std::pair{best->term, best->offset}) {
      best = each;
    }
  }
  // A time of a term before the newest entry's may be ahead of the time by which that entry's
  // leases were granted.
  const std::int64_t settled = best          ? best->offset
                               : anyone_knew ? newest_ - newest_boot_
                                             : majority_of_guesses(voters);
  // The first time it replaces the guess. Afterwards it has given times to entries.
  offset_ = is_first ? settled : std::max(offset_, settled);
  is_guess_ = !best && !anyone_knew;
  is_known_ = true;
  has_news_ = false;
  term_ = led_term_ = term;
}

std::int64_t GroupClock::next(std::int64_t boot_ms, std::int64_t unix_ms) noexcept {
  SEMEL_ASSERT(is_known_);
  const std::int64_t passed = std::max<std::int64_t>(0, boot_ms - slewed_at_);
  if (passed >= 1'000) {
    const std::int64_t most = passed / slew;
    offset_ += std::clamp<std::int64_t>(unix_ms - (offset_ + boot_ms), -most, most);
    slewed_at_ = boot_ms;
  }
  newest_ = at(boot_ms);
  newest_boot_ = std::max(newest_boot_, boot_ms);
  // The newest entry was not ahead of the leader that has made it.
  offset_ = std::max(offset_, newest_ - newest_boot_);
  return newest_;
}

std::optional<TimeContent> GroupClock::to_keep(std::int64_t boot_ms,
                                               std::int64_t unix_ms) noexcept {
  if (!is_known_) return std::nullopt;
  TimeContent content;
  content.boot_ms = boot_ms;
  content.offset = offset_;
  content.term = term_;
  content.behind = std::clamp<std::int64_t>(unix_ms, 0, unix_ms_max) - at(boot_ms);
  // At once for a new term: a kept time of a term before the newest entry's is of no use.
  if (kept_ && kept_->term == term_) {
    const bool is_other = std::abs(offset_ - kept_->offset) >= 2 ||
                          std::abs(content.behind - kept_->behind) >= behind_step_ms;
    if (boot_ms - kept_->boot_ms < (is_other ? keep_at_most_every_ms : keep_every_ms)) {
      return std::nullopt;
    }
  }
  kept_ = content;
  return content;
}

}  // namespace semel::replication
