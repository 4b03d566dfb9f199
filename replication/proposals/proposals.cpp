#include "replication/proposals/proposals.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace semel::replication {
namespace {

/// Entries of this leader that are under way at once. Later commands are gathered into the next
/// entry, so that one sync of each node is for all of them.
constexpr std::size_t entries_max = 4;
/// From this many commands under way on, the next entry begins when these are applied, or when it
/// is full: each costs every node a sync and some ten switches between threads, whatever its size.
constexpr std::size_t busy_commands = 16;

/// At most entry_bytes_max, however many there are.
std::size_t bytes_of(const std::deque<Proposal>& proposals) noexcept {
  std::size_t bytes = 0;
  for (const Proposal& each : proposals) {
    bytes += each.command.bytes.size();
    if (bytes >= entry_bytes_max) return entry_bytes_max;
  }
  return bytes;
}

}  // namespace

// --- before the log -----------------------------------------------------------------------------

void Proposals::add(Proposal proposal) {
  const bool is_held = proposal.numbering == Numbering::awaited;
  wait_in(is_held ? held_ : ready_, std::move(proposal));
}

void Proposals::add_own(const Command& command, ProposalDone done, const ProposalTerms& terms,
                        std::uint64_t now) {
  SEMEL_ASSERT(!terms.is_numbered);
  if (is_closed_) {
    if (done) done(Error{ErrorCode::closing, {}});
    return;
  }
  auto prepared = prepare(command);
  SEMEL_ASSERT(prepared.ok());
  change_.added += prepared->bytes.size();
  add(Proposal::made(*std::move(prepared), std::move(done), terms, now));
}

void Proposals::wait_in(std::deque<Proposal>& waiting, Proposal proposal) {
  SEMEL_ASSERT(!is_closed_ && proposal.has_bytes());
  refusal_at_ = std::min(refusal_at_, proposal.until);
  waiting.push_back(std::move(proposal));
}

void Proposals::number_held() {
  while (!held_.empty() && numbers_.give(held_.front())) {
    ready_.push_back(std::move(held_.front()));
    held_.pop_front();
  }
}

void Proposals::begin_life(std::uint64_t now) {
  if (numbers_.has_life() || std::exchange(is_beginning_, true)) return;
  const auto begun = [this](const Result<Answer>& answer) {
    is_beginning_ = false;
    const auto* const plain = answer.ok() ? std::get_if<PlainAnswer>(&answer->what) : nullptr;
    // Decided, and not shown here in time: begin_life() asks again.
    if (plain == nullptr || plain->number <= 0) return;
    numbers_.begin(static_cast<std::uint64_t>(plain->number));
  };
  constexpr Millis always{std::int64_t{10} * 365 * 24 * 3600 * 1000};
  add_own(
      {SessionCommand{
          .what = SessionCommand::What::close_former, .node = owner_.node, .life = owner_.life}},
      begun, {.repeats = true, .patience = always, .forwards = true, .is_numbered = false}, now);
}

bool Proposals::is_full() const noexcept {
  if (entries_.size() >= entries_max) return true;
  if (commands_ < busy_commands) return false;
  if (ready_.size() >= entry_commands_max) return false;
  return bytes_of(ready_) < entry_bytes_max;
}

// --- by the leader ------------------------------------------------------------------------------

std::string Proposals::begin_entry(LogIndex index, Term term, std::int64_t unix_ms,
                                   std::uint64_t now) {
  EntryBuilder entry{unix_ms, base::random_number()};
  entry.reserve(ready_.size(), bytes_of(ready_));
  std::vector<Proposal> taken;
  while (!ready_.empty() && entry.add(ready_.front().command, numbers_.stamp(ready_.front()))) {
    taken.push_back(std::move(ready_.front()));
    ready_.pop_front();
  }
  SEMEL_ASSERT(!taken.empty());
  entry_at_ = now;
  commands_ += taken.size();
  entries_.push_back({index, term, std::move(taken)});
  return std::move(entry).bytes();
}

bool Proposals::end_entry(LogIndex index, const Status& taken, std::uint64_t now) {
  // Within the core's call it may have been applied, or this node have lost its leadership.
  const bool is_here = !entries_.empty() && entries_.back().index == index;
  if (!is_here) return taken.ok();
  if (taken.ok()) {
    for (Proposal& each : entries_.back().proposals) {
      if (!each.can_ask_again(now)) drop_bytes(each);
    }
    return true;
  }
  std::vector<Proposal> refused = std::move(entries_.back().proposals);
  entries_.pop_back();
  commands_ -= refused.size();
  for (Proposal& each : refused) put_back(std::move(each), taken.error().code, now);
  return false;
}

void Proposals::answer(LogIndex index, Term term, Result<std::vector<Answer>>& answers,
                       std::uint64_t now) {
  if (entries_.empty() || entries_.front().index != index) return;
  Entry mine = std::move(entries_.front());
  entries_.pop_front();
  commands_ -= mine.proposals.size();
  const bool is_ours = mine.term == term;
  for (std::size_t i = 0; i < mine.proposals.size(); ++i) {
    Proposal& each = mine.proposals[i];
    if (!is_ours) {  // another entry is there: it never will be
      put_back(std::move(each), ErrorCode::not_leader, now);
      continue;
    }
    if (!answers.ok()) {
      finish(each, Error{ErrorCode::outcome_unknown, {}});
      continue;
    }
    SEMEL_ASSERT(answers->size() == mine.proposals.size());
    const auto* const refused = std::get_if<NotApplied>(&(*answers)[i].what);
    if (refused != nullptr && each.has_number()) {
      not_applied(std::move(each), refused->why, now);
    } else {
      finish(each, std::move((*answers)[i]));
    }
  }
}

void Proposals::lose_entries(std::uint64_t now) {
  commands_ = 0;
  for (Entry& entry : std::exchange(entries_, {})) {
    for (Proposal& each : entry.proposals) lose(std::move(each), now);
  }
}

// --- to the leader ------------------------------------------------------------------------------

void Proposals::hand_over(bool node_forwards, const std::function<bool(Proposal&)>& send) {
  std::vector<Proposal> kept;
  for (; !ready_.empty(); ready_.pop_front()) {
    Proposal& first = ready_.front();
    if (!first.may_forward(node_forwards)) {
      kept.push_back(std::move(first));
      continue;
    }
    static_cast<void>(numbers_.stamp(first));
    if (!send(first)) break;
  }
  ready_.insert(ready_.begin(), std::make_move_iterator(kept.begin()),
                std::make_move_iterator(kept.end()));
}

void Proposals::note_sent(Proposal& proposal, std::uint64_t now) {
  ++proposal.asked;
  if (!may_wait(proposal, now) && !proposal.can_ask_again(now)) drop_bytes(proposal);
}

void Proposals::refuse_waiting(ErrorCode why, std::uint64_t now) {
  if (now < refusal_at_ && !is_closed_) return;
  refusal_at_ = ~std::uint64_t{0};
  refuse(ready_, why, now);
  // With a life they are held for others that are under way.
  const bool is_window_full = numbers_.has_life() && why == ErrorCode::not_leader;
  refuse(held_, is_window_full ? ErrorCode::log_busy : why, now);
}

void Proposals::refuse(std::deque<Proposal>& waiting, ErrorCode why, std::uint64_t now) {
  for (Proposal& each : std::exchange(waiting, {})) {
    if (may_wait(each, now)) {
      wait_in(waiting, std::move(each));
    } else {
      finish(each, Error{each.error(why), {}});
    }
  }
}

// --- what became of one -------------------------------------------------------------------------

void Proposals::put_back(Proposal proposal, ErrorCode why, std::uint64_t now) {
  const bool may_repeat = !proposal.is_open || proposal.can_repeat();
  if (may_repeat && proposal.has_bytes() && may_wait(proposal, now)) {
    return wait_in(ready_, std::move(proposal));
  }
  finish(proposal, Error{proposal.error(why), {}});
}

void Proposals::not_applied(Proposal proposal, NotApplied::Why why, std::uint64_t now) {
  SEMEL_ASSERT(proposal.has_number());
  switch (why) {
    case NotApplied::Why::forgotten:
    case NotApplied::Why::not_kept:
      if (proposal.repeats && proposal.has_bytes() && may_wait(proposal, now)) {
        numbers_.take_back(proposal);
        return add(std::move(proposal));  // it gets another number
      }
      return finish(proposal, Error{ErrorCode::outcome_unknown, {}});
    case NotApplied::Why::too_far:
      return put_back(std::move(proposal), ErrorCode::log_busy, now);
    case NotApplied::Why::other_life:
    case NotApplied::Why::no_life:
      break;
  }
  // This node was no member for a while, or another process has its number. It begins again, under
  // a new number, by which the group knows nothing of the commands under way.
  if (proposal.origin.life == numbers_.life() && numbers_.has_life()) {
    numbers_.lose();
    begin_life(now);
    for (Proposal& each : std::exchange(ready_, {})) {
      if (each.has_number()) {
        not_applied(std::move(each), why, now);
      } else {
        ready_.push_back(std::move(each));
      }
    }
  }
  const bool may_repeat = !proposal.is_open || proposal.repeats;
  if (may_repeat && proposal.has_bytes() && !is_closed_) {
    numbers_.take_back(proposal);
    return add(std::move(proposal));
  }
  finish(proposal, Error{proposal.error(ErrorCode::not_leader), {}});
}

void Proposals::drop_bytes(Proposal& proposal) noexcept {
  change_.freed += proposal.command.bytes.size();
  proposal.command.bytes = {};
}

void Proposals::finish(Proposal& proposal, Result<Answer> answer) {
  drop_bytes(proposal);
  numbers_.take_back(proposal);
  if (proposal.done) proposal.done(std::move(answer));
}

void Proposals::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  const auto end_all = [this](auto& proposals) {
    for (Proposal& each : proposals) finish(each, Error{each.error(ErrorCode::closing), {}});
    proposals.clear();
  };
  for (Entry& entry : entries_) {
    for (Proposal& each : entry.proposals) each.is_open = true;
    end_all(entry.proposals);
  }
  entries_.clear();
  commands_ = 0;
  end_all(ready_);
  end_all(held_);
}

void Proposals::check_invariants() const noexcept {
  SEMEL_ASSERT(entries_.size() <= entries_max);
  std::size_t commands = 0;
  for (const Entry& each : entries_) commands += each.proposals.size();
  SEMEL_ASSERT(commands_ == commands);
  SEMEL_ASSERT(!is_closed_ || (entries_.empty() && ready_.empty() && held_.empty()));
  SEMEL_ASSERT(!is_beginning_ || !numbers_.has_life());
#if defined(SEMEL_VERIFY)
  for (const Proposal& each : held_) SEMEL_ASSERT(each.numbering == Numbering::awaited);
  for (const Proposal& each : ready_) {
    SEMEL_ASSERT(each.numbering != Numbering::awaited);
    each.check_invariants();
  }
#endif
}

}  // namespace semel::replication
