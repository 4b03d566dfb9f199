// Proposals: from callers to entries, and from applied entries back to callers.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "replication/node/replica_loop.hpp"

namespace semel::replication {
namespace {

/// Entries of this leader that are under way at once. While they are, what comes is gathered into
/// the next one, so that one sync of each node is for all of it.
constexpr std::size_t in_flight_max = 4;
/// From this many commands under way on, the next entry begins when these are applied, or when it
/// is full: each costs every node a sync and some ten switches between threads, whatever its size.
constexpr std::size_t busy_commands = 16;
constexpr std::uint64_t time_every_ms = 1'000;

}  // namespace

void ReplicaLoop::propose(PreparedCommand command, ProposalDone done, const ProposalTerms& terms) {
  // A longer one would end every node that has to write it.
  if (command.bytes.size() > command_bytes_max(options_)) {
    return done(Error{ErrorCode::value_too_long, "a command of " +
                                                     std::to_string(command.bytes.size()) +
                                                     " bytes, in a group at most " +
                                                     std::to_string(command_bytes_max(options_))});
  }
  submit({.command = std::move(command),
          .done = {std::move(done), ErrorCode::outcome_unknown},
          .repeats = terms.repeats,
          .until = now() + static_cast<std::uint64_t>(terms.patience.count()),
          .forwards = terms.forwards,
          .is_numbered = terms.is_numbered,
          .asks_again = static_cast<std::uint64_t>(terms.asks_again.count())});
}

void ReplicaLoop::submit(Proposal proposal) {
  ErrorCode refused = ErrorCode::closing;
  {
    base::MutexLock lock{mutex_};
    if (!is_closed_) {
      const std::size_t bytes = proposal.command.bytes.size();
      if (waiting_bytes_ + bytes <= options_.proposals_bytes_max) {
        new_proposals_.push_back(std::move(proposal));
        waiting_bytes_ += bytes;
        new_bytes_ += bytes;
        const bool fills_entry =
            new_bytes_ >= entry_bytes_max || new_proposals_.size() >= entry_commands_max;
        if ((is_full_ && !fills_entry) || !begin_wake()) return;
        lock.unlock();
        return post_turn();
      }
      refused = ErrorCode::log_busy;
    }
  }
  if (proposal.done) proposal.done(Error{refused, {}});
}

bool ReplicaLoop::is_full() const noexcept {
  if (in_flight_.size() >= in_flight_max) return true;
  std::size_t under_way = 0;
  for (const InFlight& entry : in_flight_) under_way += entry.proposals.size();
  if (under_way < busy_commands) return false;
  if (proposals_.size() >= entry_commands_max) return false;
  std::size_t bytes = 0;
  for (const Proposal& each : proposals_) bytes += each.command.bytes.size();
  return bytes < entry_bytes_max;
}

/// At the end of a turn. Whatever was submitted before has woken the loop; whatever ends an entry
/// is followed by a turn, whose take_calls() finds the rest.
void ReplicaLoop::show_full() {
  if (shows_full_ || is_ended_ || !is_full()) return;
  shows_full_ = true;
  const base::MutexLock lock{mutex_};
  is_full_ = true;
}

void ReplicaLoop::take_calls() {
  shows_full_ = is_full();
  base::MutexLock lock{mutex_};
  is_woken_ = false;
  is_full_ = shows_full_;
  SEMEL_ASSERT(waiting_bytes_ >= freed_bytes_);
  waiting_bytes_ -= std::exchange(freed_bytes_, 0);
  std::vector<Proposal> proposals;
  std::vector<Reader> reads;
  proposals.swap(new_proposals_);
  new_bytes_ = 0;
  reads.swap(new_reads_);
  lock.unlock();
  for (Proposal& each : proposals) {
    wait_in(each.is_numbered ? held_ : proposals_, std::move(each));
  }
  number_held();
  for (Reader& each : reads) reads_.push_back(std::move(each));
}

bool ReplicaLoop::may_wait(std::uint64_t until) const noexcept {
  return !is_ended_ && now() < until;
}

void ReplicaLoop::drop_bytes(Proposal& proposal) {
  freed_bytes_ += proposal.command.bytes.size();
  proposal.command.bytes = {};
}

void ReplicaLoop::finish(Proposal& proposal, Result<Answer> answer) {
  drop_bytes(proposal);
  if (has_number(proposal)) sequences_.end(proposal.origin.sequence);
  if (proposal.done) proposal.done(std::move(answer));
}

void ReplicaLoop::retry_or_refuse(Proposal proposal, ErrorCode why, bool is_untouched) {
  if (!is_untouched && !proposal.is_open) {
    proposal.is_open = true;
    proposal.until = std::max(proposal.until, now() + proposal.asks_again);
    // Where a node says who leads instead: that would let its client ask anew.
    proposal.forwards = true;
  }
  const bool may_repeat = !proposal.is_open || has_number(proposal) || proposal.repeats;
  if (may_repeat && !proposal.command.bytes.empty() && may_wait(proposal.until)) {
    return wait_in(proposals_, std::move(proposal));
  }
  // That this time nothing was changed says nothing about the times before.
  finish(proposal, Error{proposal.is_open ? ErrorCode::outcome_unknown : why, {}});
}

void ReplicaLoop::refuse(std::deque<Proposal>& waiting, ErrorCode why) {
  std::deque<Proposal> proposals;
  proposals.swap(waiting);
  for (Proposal& each : proposals) {
    if (may_wait(each.until)) {
      wait_in(waiting, std::move(each));
    } else {
      finish(each, Error{each.is_open ? ErrorCode::outcome_unknown : why, {}});
    }
  }
}

void ReplicaLoop::wait_in(std::deque<Proposal>& waiting, Proposal proposal) {
  refusal_at_ = std::min(refusal_at_, proposal.until);
  waiting.push_back(std::move(proposal));
}

void ReplicaLoop::refuse_waiting(ErrorCode why) {
  if (now() < refusal_at_ && !is_ended_) return;
  refusal_at_ = ~std::uint64_t{0};
  refuse(proposals_, why);
  // With a number for this life they are held back for others that are under way.
  const bool is_full = life_ != 0 && why == ErrorCode::not_leader;
  refuse(held_, is_full ? ErrorCode::log_busy : why);
}

void ReplicaLoop::lose_in_flight() {
  std::deque<InFlight> lost;
  lost.swap(in_flight_);
  for (InFlight& entry : lost) {
    for (Proposal& each : entry.proposals) {
      retry_or_refuse(std::move(each), ErrorCode::outcome_unknown, false);
    }
  }
  for (WaitingRead& each : std::exchange(waiting_reads_, {})) {
    refuse_reads(std::move(each.readers), ErrorCode::not_leader);
  }
}

void ReplicaLoop::propose_waiting() {
  if ((proposals_.empty() && held_.empty()) || is_ended_) return;
  if (!core_->is_leader() || core_->is_handing_over()) {
    forward_waiting();
    return refuse_waiting(ErrorCode::not_leader);
  }
  // What former leaders have left is applied first: its time is not known before, and an entry with
  // an earlier one stops every replica, each time that it is opened.
  if (in_flight_.empty() && core_->applied() < core_->last()) return;
  while (!proposals_.empty() && !is_full()) {
    const std::uint64_t here = now();
    EntryBuilder entry{next_time(), base::random_number()};
    std::vector<Proposal> taken;
    while (!proposals_.empty() &&
           entry.add(proposals_.front().command, origin_of(proposals_.front()))) {
      taken.push_back(std::move(proposals_.front()));
      proposals_.pop_front();
    }
    SEMEL_ASSERT(!taken.empty());
    last_proposal_ = here;
    // Before: with one voter it may be applied within the call.
    in_flight_.push_back({core_->last() + 1, core_->term(), std::move(taken)});
    const LogIndex expected = in_flight_.back().index;
    const Result<LogIndex> index =
        core_->propose(here, std::make_shared<const std::string>(entry.bytes()));
    const bool is_there = !is_ended_ && !in_flight_.empty() && in_flight_.back().index == expected;
    if (index.ok()) {
      SEMEL_ASSERT(*index == expected);
      if (!is_there) continue;
      for (Proposal& each : in_flight_.back().proposals) {
        if (!can_ask_again(each)) drop_bytes(each);
      }
      continue;
    }
    if (!is_there) return;
    std::vector<Proposal> refused = std::move(in_flight_.back().proposals);
    in_flight_.pop_back();
    for (Proposal& each : refused) retry_or_refuse(std::move(each), index.error().code, true);
    return;
  }
}

/// Time is what entries say it is: an idle group's records end by this one.
void ReplicaLoop::propose_time() {
  if (!core_->is_leader() || core_->is_handing_over() || !in_flight_.empty() ||
      !proposals_.empty() || now() < last_proposal_ + time_every_ms ||
      state_->engine().stats().records_with_ttl == 0) {
    return;
  }
  queue_time();
}

void ReplicaLoop::queue_time() {
  auto prepared = prepare({TimeCommand{}});
  SEMEL_ASSERT(prepared.ok());
  {
    const base::MutexLock lock{mutex_};
    waiting_bytes_ += prepared->bytes.size();
  }
  wait_in(proposals_, {.command = *std::move(prepared)});
}

void ReplicaLoop::answer(LogIndex index, Term term, Result<std::vector<Answer>>& answers) {
  if (in_flight_.empty() || in_flight_.front().index != index) return;
  InFlight mine = std::move(in_flight_.front());
  in_flight_.pop_front();
  const bool is_ours = mine.term == term;
  for (std::size_t i = 0; i < mine.proposals.size(); ++i) {
    Proposal& each = mine.proposals[i];
    if (!is_ours) {  // another entry is there: it never will be
      retry_or_refuse(std::move(each), ErrorCode::not_leader, true);
      continue;
    }
    if (!answers.ok()) {
      finish(each, Error{ErrorCode::outcome_unknown, {}});
      continue;
    }
    SEMEL_ASSERT(answers->size() == mine.proposals.size());
    const auto* const refused = std::get_if<NotApplied>(&(*answers)[i].what);
    if (refused != nullptr && each.is_numbered) {
      not_applied(std::move(each), refused->why);
    } else {
      finish(each, std::move((*answers)[i]));
    }
  }
}

}  // namespace semel::replication
