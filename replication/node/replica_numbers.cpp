// The numbers by which the log knows proposals of this node, so that one may be asked again.
//
//   new -- has no number --> held_ -- life and window --> proposals_ --> in an entry, or forwarded
//                                                           ^                 |
//                                                           '-- asked again --'  the same number
//
// The number ends when nobody waits for the answer, and the next command tells the log so.
#include <utility>

#include "base/assert.hpp"
#include "replication/node/replica_loop.hpp"

namespace semel::replication {

void ReplicaLoop::begin_life() {
  auto prepared = prepare({SessionCommand{
      .what = SessionCommand::What::close_former, .node = owner_.node, .life = owner_.life}});
  SEMEL_ASSERT(prepared.ok());
  constexpr Millis for_good{std::int64_t{10} * 365 * 24 * 3600 * 1000};
  begins_life_ = true;
  const auto begun = [this](const Result<Answer>& answer) {
    begins_life_ = false;
    const auto* const plain = answer.ok() ? std::get_if<PlainAnswer>(&answer->what) : nullptr;
    // Decided, and not shown here in time: the next tick asks again.
    if (plain == nullptr || plain->number <= 0) return;
    life_ = static_cast<std::uint64_t>(plain->number);
    wake_soon();
  };
  propose(*std::move(prepared), begun,
          {.repeats = true, .patience = for_good, .forwards = true, .is_numbered = false});
}

void ReplicaLoop::number_held() {
  while (life_ != 0 && !held_.empty()) {
    const std::optional<std::uint64_t> sequence = sequences_.take();
    if (!sequence) return;
    held_.front().origin = {.node = options_.node_id, .sequence = *sequence};
    proposals_.push_back(std::move(held_.front()));
    held_.pop_front();
  }
}

const Origin& ReplicaLoop::origin_of(Proposal& proposal) noexcept {
  if (has_number(proposal)) {
    proposal.origin.life = life_;
    proposal.origin.lowest = sequences_.lowest();
  }
  return proposal.origin;
}

bool ReplicaLoop::can_ask_again(const Proposal& proposal) const noexcept {
  const bool may = has_number(proposal) || proposal.repeats;
  return may && (proposal.asks_again != 0 || may_wait(proposal.until));
}

void ReplicaLoop::renew(Proposal proposal) {
  sequences_.end(proposal.origin.sequence);
  proposal.origin = {};
  wait_in(held_, std::move(proposal));
  wake_soon();
}

void ReplicaLoop::not_applied(Proposal proposal, NotApplied::Why why) {
  const bool has_bytes = !proposal.command.bytes.empty();
  switch (why) {
    case NotApplied::Why::forgotten:
    case NotApplied::Why::not_kept:
      if (proposal.repeats && has_bytes && may_wait(proposal.until)) {
        return renew(std::move(proposal));
      }
      return finish(proposal, Error{ErrorCode::outcome_unknown, {}});
    case NotApplied::Why::too_far:
      return retry_or_refuse(std::move(proposal), ErrorCode::log_busy, true);
    case NotApplied::Why::other_life:
    case NotApplied::Why::no_life:
      break;
  }
  // This node was no member for a while, or another process has its number. It begins again, under
  // a new number, by which nothing is known of what was under way.
  if (proposal.origin.life == life_ && life_ != 0) {
    life_ = 0;
    begin_life();
    std::deque<Proposal> numbered;
    numbered.swap(proposals_);
    for (Proposal& each : numbered) {
      if (has_number(each)) {
        not_applied(std::move(each), why);
      } else {
        proposals_.push_back(std::move(each));
      }
    }
  }
  const bool may_repeat = !proposal.is_open || proposal.repeats;
  if (may_repeat && has_bytes) return renew(std::move(proposal));
  finish(proposal,
         Error{proposal.is_open ? ErrorCode::outcome_unknown : ErrorCode::not_leader, {}});
}

}  // namespace semel::replication
