// Proposals: from callers to entries, and from applied entries back to callers.
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "replication/node/replica_loop.hpp"

namespace semel::replication {
namespace {

/// Entries of this leader that are under way at once. While they are, what comes is gathered into
/// the next one, so that one sync of each node is for all of it.
constexpr std::size_t in_flight_max = 4;
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
  ErrorCode refused = ErrorCode::closing;
  {
    const base::MutexLock lock{mutex_};
    if (!is_closed_) {
      if (waiting_bytes_ + command.bytes.size() <= options_.proposals_bytes_max) {
        const std::uint64_t until = now() + static_cast<std::uint64_t>(terms.patience.count());
        const std::size_t bytes = command.bytes.size();
        new_proposals_.push_back(
            {std::move(command), std::move(done), terms.repeats, until, terms.forwards});
        waiting_bytes_ += bytes;
        return wake();
      }
      refused = ErrorCode::log_busy;
    }
  }
  done(Error{refused, {}});
}

bool ReplicaLoop::may_wait(std::uint64_t until) const noexcept {
  return !is_ended_ && now() < until;
}

void ReplicaLoop::retry_or_refuse(Proposal proposal, ErrorCode why, bool is_untouched) {
  const bool may_repeat = is_untouched || proposal.repeats;
  if (may_repeat && !proposal.command.bytes.empty() && may_wait(proposal.until)) {
    const base::MutexLock lock{mutex_};
    waiting_bytes_ += proposal.command.bytes.size();
    proposals_.push_back(std::move(proposal));
  } else if (proposal.done) {
    proposal.done(Error{why, {}});
  }
}

void ReplicaLoop::refuse_waiting(ErrorCode why) {
  std::deque<Proposal> proposals;
  proposals.swap(proposals_);
  std::size_t bytes = 0;
  for (Proposal& each : proposals) {
    if (may_wait(each.until)) {
      proposals_.push_back(std::move(each));
      continue;
    }
    bytes += each.command.bytes.size();
    if (each.done) each.done(Error{why, {}});
  }
  const base::MutexLock lock{mutex_};
  SEMEL_ASSERT(waiting_bytes_ >= bytes);
  waiting_bytes_ -= bytes;
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
  if (proposals_.empty() || is_ended_) return;
  if (!core_->is_leader() || core_->is_handing_over()) {
    forward_waiting();
    return refuse_waiting(ErrorCode::not_leader);
  }
  // What former leaders have left is applied first: its time is not known before, and an entry with
  // an earlier one stops every replica, each time that it is opened.
  if (in_flight_.empty() && core_->applied() < core_->last()) return;
  while (!proposals_.empty() && in_flight_.size() < in_flight_max) {
    const std::uint64_t here = now();
    EntryBuilder entry{next_time(), base::random_number()};
    std::vector<Proposal> taken;
    std::size_t bytes = 0;
    while (!proposals_.empty() && entry.add(proposals_.front().command)) {
      bytes += proposals_.front().command.bytes.size();
      taken.push_back(std::move(proposals_.front()));
      proposals_.pop_front();
    }
    SEMEL_ASSERT(!taken.empty());
    {
      const base::MutexLock lock{mutex_};
      SEMEL_ASSERT(waiting_bytes_ >= bytes);
      waiting_bytes_ -= bytes;
    }
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
        if (!each.repeats) each.command.bytes = {};
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
  auto prepared = prepare({TimeCommand{}});
  SEMEL_ASSERT(prepared.ok());
  {
    const base::MutexLock lock{mutex_};
    waiting_bytes_ += prepared->bytes.size();
  }
  proposals_.push_back({*std::move(prepared), nullptr});
}

void ReplicaLoop::end_former_life() {
  auto prepared = prepare({SessionCommand{
      .what = SessionCommand::What::close_former, .node = owner_.node, .life = owner_.life}});
  SEMEL_ASSERT(prepared.ok());
  constexpr Millis for_good{std::int64_t{10} * 365 * 24 * 3600 * 1000};
  propose(*std::move(prepared), [](const Result<Answer>&) {},
          {.repeats = true, .patience = for_good, .forwards = true});
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
    } else if (!answers.ok()) {
      if (each.done) each.done(Error{ErrorCode::outcome_unknown, {}});
    } else {
      SEMEL_ASSERT(answers->size() == mine.proposals.size());
      if (each.done) each.done(std::move((*answers)[i]));
    }
  }
}

}  // namespace semel::replication
