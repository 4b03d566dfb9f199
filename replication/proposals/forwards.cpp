#include "replication/proposals/forwards.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {
namespace {

/// Under way to one leader. All of their answers find room in its queue for this node
/// (TransportOptions::queue_frames), beside its other messages; and the leader, which reads them
/// one after the other, must not be late with its heartbeats for them.
constexpr std::size_t forwards_max = 1'024;

}  // namespace

bool Forwards::is_full() const noexcept {
  return all_.size() >= forwards_max;
}

void Forwards::add(NodeId leader, std::uint64_t now, Proposal proposal) {
  SEMEL_ASSERT(!is_full() && proposal.is_own());
  all_.emplace(++newest_, Pending{leader, now, std::move(proposal)});
}

void Forwards::add(NodeId leader, std::uint64_t now, Readers readers) {
  SEMEL_ASSERT(!has_reads());
  all_.emplace(++newest_, Pending{leader, now, std::move(readers)});
  reads_ = newest_;
}

std::optional<Forwards::Pending> Forwards::take(std::uint64_t id, NodeId from) {
  const auto found = all_.find(id);
  if (found == all_.end() || found->second.leader != from) return std::nullopt;
  if (id == reads_) reads_ = 0;
  return std::move(all_.extract(found).mapped());
}

std::vector<Forwards::Pending> Forwards::take_if(const std::function<bool(const Pending&)>& is) {
  std::vector<Pending> taken;
  for (auto at = all_.begin(); at != all_.end();) {
    const auto each = at++;
    if (!is(each->second)) continue;
    if (each->first == reads_) reads_ = 0;
    taken.push_back(std::move(all_.extract(each).mapped()));
  }
  return taken;
}

std::vector<Forwards::Pending> Forwards::take_of_others(NodeId leader) {
  return take_if([&](const Pending& each) { return each.leader != leader; });
}

std::vector<Forwards::Pending> Forwards::take_late(std::uint64_t now, std::uint64_t patience) {
  return take_if([&](const Pending& each) {
    const Proposal* const proposal = each.proposal();
    const bool is_again = proposal != nullptr && proposal->has_number() && proposal->has_bytes() &&
                          now < proposal->until;
    const std::uint64_t wait =
        is_again ? (patience / 6) << std::min(proposal->asked, 10U) : patience;
    return now > each.since + wait;
  });
}

void Forwards::check_invariants() const noexcept {
  SEMEL_ASSERT(all_.empty() || all_.rbegin()->first <= newest_);
  SEMEL_ASSERT_SLOW(!has_reads() || all_.count(reads_) == 1);
}

// --- answered -----------------------------------------------------------------------------------

void AppliedWaits::add(LogIndex index, LogIndex applied, Wait wait) {
  if (applied >= index) return end(wait, true);
  waits_.emplace(index, std::move(wait));
}

void AppliedWaits::end(Wait& wait, bool is_applied) noexcept {
  if (wait.done && is_applied) wait.done(std::move(wait.answer));
  for (Reader& each : wait.readers) {
    if (is_applied) {
      each.done(Answer{PlainAnswer{}});
    } else {
      each.done(Error{ErrorCode::not_leader, {}});
    }
  }
}

void AppliedWaits::run(LogIndex applied) noexcept {
  while (!waits_.empty() && waits_.begin()->first <= applied) {
    auto wait = waits_.extract(waits_.begin());
    end(wait.mapped(), true);
  }
}

void AppliedWaits::give_up(std::uint64_t now) {
  std::vector<Wait> late;
  for (auto at = waits_.begin(); at != waits_.end();) {
    const auto each = at++;
    if (now > each->second.until) late.push_back(std::move(waits_.extract(each).mapped()));
  }
  for (Wait& each : late) end(each, false);
}

}  // namespace semel::replication
