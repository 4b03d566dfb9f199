#include "replication/core/freshness.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {

std::uint64_t Freshness::mark(std::uint64_t now) noexcept {
  if (!marked_at_) {
    mark_ = std::max<std::uint64_t>((mark_ + 1) & mark_mask, 1);
    marked_at_ = now;
  }
  return mark_;
}

std::optional<std::uint64_t> Freshness::came(std::uint64_t mark, LogIndex commit) noexcept {
  // Of an older mark the time is not kept: another append comes with the newest one.
  if (!marked_at_ || mark != mark_) return std::nullopt;
  know({*marked_at_, commit});
  return std::exchange(marked_at_, std::nullopt);
}

void Freshness::replied(NodeId from, Term term, std::uint64_t mark, std::uint64_t now) {
  Replied& known = replied_[from];
  // With each reply until it has come back. Counted from the last one it would never be old enough.
  if (known.term == term && known.mark == mark) return;
  // The newest, not the largest: a node that has begun anew counts from elsewhere.
  known = {term, mark, now};
}

std::uint64_t Freshness::mark_of(NodeId to, Term term, std::uint64_t heard) const noexcept {
  const auto found = replied_.find(to);
  if (found == replied_.end() || found->second.term != term) return 0;
  // An append sent in the same millisecond may have been sent before.
  return heard > found->second.at ? found->second.mark : 0;
}

void Freshness::leads(std::uint64_t at, LogIndex commit) noexcept {
  if (at != 0) know({at, commit});
}

void Freshness::know(Known known) noexcept {
  // Under load there is always something not applied yet. The oldest stays, or none would ever do.
  (known_ ? next_ : known_) = known;
}

std::uint64_t Freshness::fresh_at(LogIndex applied) noexcept {
  while (known_ && known_->commit <= applied) {
    fresh_at_ = std::max(fresh_at_, known_->at);
    known_ = std::exchange(next_, std::nullopt);
  }
  SEMEL_ASSERT(known_ || !next_);
  return fresh_at_;
}

}  // namespace semel::replication
