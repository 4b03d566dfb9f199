// Proposals and reads: from callers to entries, and from applied entries back to callers.
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "replication/node/replica_loop.hpp"
#include "replication/state/fields.hpp"

namespace semel::replication {
namespace {

/// Entries of this leader that are under way at once. While they are, what comes is gathered into
/// the next one, so that one sync of each node is for all of it.
constexpr std::size_t in_flight_max = 4;
constexpr std::uint64_t time_every_ms = 1'000;

}  // namespace

void ReplicaLoop::propose(PreparedCommand command, ProposalDone done) {
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
        waiting_bytes_ += command.bytes.size();
        new_proposals_.push_back({std::move(command), std::move(done)});
        return wake();
      }
      refused = ErrorCode::log_busy;
    }
  }
  done(Error{refused, {}});
}

void ReplicaLoop::read(ProposalDone done) {
  {
    const base::MutexLock lock{mutex_};
    if (!is_closed_) {
      new_reads_.push_back(std::move(done));
      return wake();
    }
  }
  done(Error{ErrorCode::closing, {}});
}

void ReplicaLoop::propose_waiting() {
  if (proposals_.empty() || is_ended_) return;
  if (!core_->is_leader() || core_->is_handing_over()) {
    if (options_.forwards) forward_waiting();
    return give_up(ErrorCode::ok, ErrorCode::not_leader);
  }
  while (!proposals_.empty() && in_flight_.size() < in_flight_max) {
    const std::uint64_t here = now();
    EntryBuilder entry{clock_.next(static_cast<std::int64_t>(here), unix_ms()),
                       base::random_number()};
    std::vector<ProposalDone> dones;
    std::size_t bytes = 0;
    while (!proposals_.empty() && entry.add(proposals_.front().command)) {
      bytes += proposals_.front().command.bytes.size();
      dones.push_back(std::move(proposals_.front().done));
      proposals_.pop_front();
    }
    SEMEL_ASSERT(!dones.empty());
    {
      const base::MutexLock lock{mutex_};
      SEMEL_ASSERT(waiting_bytes_ >= bytes);
      waiting_bytes_ -= bytes;
    }
    last_proposal_ = here;
    // Before: with one voter it may be applied within the call.
    in_flight_.push_back({core_->last() + 1, core_->term(), std::move(dones)});
    const LogIndex expected = in_flight_.back().index;
    const Result<LogIndex> index =
        core_->propose(here, std::make_shared<const std::string>(entry.bytes()));
    if (index.ok()) {
      SEMEL_ASSERT(*index == expected);
      continue;
    }
    if (is_ended_ || in_flight_.empty() || in_flight_.back().index != expected) return;
    std::vector<ProposalDone> refused = std::move(in_flight_.back().dones);
    in_flight_.pop_back();
    for (ProposalDone& done : refused) {
      if (done) done(index.error());
    }
    return;
  }
}

/// Time is what entries say it is: an idle group's records end by this one.
void ReplicaLoop::propose_time() {
  if (!core_->is_leader() || core_->is_handing_over() || !in_flight_.empty() ||
      now() < last_proposal_ + time_every_ms || state_->engine().stats().records_with_ttl == 0) {
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

void ReplicaLoop::answer(LogIndex index, Term term, Result<std::vector<Answer>>& answers) {
  if (in_flight_.empty() || in_flight_.front().index != index) return;
  InFlight mine = std::move(in_flight_.front());
  in_flight_.pop_front();
  const bool is_ours = mine.term == term;
  for (std::size_t i = 0; i < mine.dones.size(); ++i) {
    if (!mine.dones[i]) continue;
    if (!is_ours) {
      mine.dones[i](Error{ErrorCode::not_leader, {}});  // another entry is there: it never will be
    } else if (!answers.ok()) {
      mine.dones[i](Error{ErrorCode::outcome_unknown, {}});
    } else {
      SEMEL_ASSERT(answers->size() == mine.dones.size());
      mine.dones[i](std::move((*answers)[i]));
    }
  }
}

/// ErrorCode::ok: these are left.
void ReplicaLoop::give_up(ErrorCode in_flight, ErrorCode waiting) {
  std::deque<InFlight> flying;
  if (in_flight != ErrorCode::ok) flying.swap(in_flight_);
  std::deque<Proposal> proposals;
  proposals.swap(proposals_);
  std::vector<ProposalDone> reads;
  reads.swap(reads_);
  for (WaitingRead& each : waiting_reads_) {
    for (ProposalDone& done : each.dones) reads.push_back(std::move(done));
  }
  waiting_reads_.clear();
  std::size_t bytes = 0;
  for (const Proposal& each : proposals) bytes += each.command.bytes.size();
  {
    const base::MutexLock lock{mutex_};
    SEMEL_ASSERT(waiting_bytes_ >= bytes);
    waiting_bytes_ -= bytes;
  }
  for (InFlight& each : flying) {
    for (ProposalDone& done : each.dones) {
      if (done) done(Error{in_flight, {}});
    }
  }
  for (Proposal& each : proposals) {
    if (each.done) each.done(Error{waiting, {}});
  }
  for (ProposalDone& done : reads) done(Error{waiting, {}});
}

// --- to the leader and back ---------------------------------------------------------------------

void ReplicaLoop::forward_waiting() {
  const NodeId leader = core_->leader();
  if (leader == 0 || leader == options_.node_id) return;
  std::size_t bytes = 0;
  while (!proposals_.empty()) {
    Proposal& first = proposals_.front();
    const std::uint64_t id = forwards_ + 1;
    if (!transport_->send(leader, Forward{id, first.command.bytes})) break;
    forwards_ = id;
    bytes += first.command.bytes.size();
    if (first.done) forwarded_[id] = {leader, now(), std::move(first.done)};
    proposals_.pop_front();
  }
  const base::MutexLock lock{mutex_};
  waiting_bytes_ -= bytes;
}

void ReplicaLoop::forget_forwarded(const std::function<bool(const Forwarded&)>& is) {
  std::vector<ProposalDone> dones;
  std::erase_if(forwarded_, [&](auto& each) {
    if (!is(each.second)) return false;
    dones.push_back(std::move(each.second.done));
    return true;
  });
  for (ProposalDone& done : dones) done(Error{ErrorCode::outcome_unknown, {}});
}

/// Of a member, and yet read as if it were hostile: an entry that no replica can read stops all.
void ReplicaLoop::on_forward(NodeId from, Forward forward) {
  const auto reply = [this, from, id = forward.id](const Result<Answer>& answer) {
    std::string bytes;
    FieldWriter fields{bytes};
    const auto* plain = answer.ok() ? std::get_if<PlainAnswer>(&answer->what) : nullptr;
    // One that no frame has room for is done all the same.
    if (plain != nullptr && plain->text.size() > frame_bytes_max / 2) plain = nullptr;
    const ErrorCode error = plain != nullptr ? ErrorCode::ok
                            : answer.ok()    ? ErrorCode::outcome_unknown
                                             : answer.error().code;
    fields.number(static_cast<std::uint64_t>(error));
    fields.number(std::uint64_t{plain == nullptr ? 0U : static_cast<unsigned>(plain->error)});
    fields.number(plain == nullptr ? std::int64_t{0} : plain->number);
    fields.bytes(plain == nullptr ? Bytes{} : Bytes{plain->text});
    if (!is_ended_) static_cast<void>(transport_->send(from, ForwardReply{id, std::move(bytes)}));
  };
  if (is_ended_) return;
  Bytes rest = forward.bytes;
  const Result<Command> command = decode(rest);
  if (!command.ok() || !rest.empty()) return reply(Error{ErrorCode::bad_encoding, {}});
  Result<PreparedCommand> prepared = prepare(*command);
  if (!prepared.ok()) return reply(prepared.error());
  if (!core_->is_leader()) return reply(Error{ErrorCode::not_leader, {}});
  propose(*std::move(prepared), reply);
}

void ReplicaLoop::on_forward_reply(NodeId from, ForwardReply reply) {
  const auto found = forwarded_.find(reply.id);
  if (found == forwarded_.end() || found->second.leader != from) return;
  const ProposalDone done = std::move(found->second.done);
  forwarded_.erase(found);
  FieldReader fields{reply.bytes};
  std::uint64_t error = 0;
  std::uint64_t answered = 0;
  PlainAnswer plain;
  Bytes text;
  fields.number(error);
  fields.number(answered);
  fields.number(plain.number);
  fields.bytes(text);
  if (!fields.is_good()) return done(Error{ErrorCode::outcome_unknown, {}});
  if (error != 0) return done(Error{static_cast<ErrorCode>(error), {}});
  plain.error = static_cast<ErrorCode>(answered);
  plain.text = text;
  done(Answer{std::move(plain)});
}

// --- reads --------------------------------------------------------------------------------------

void ReplicaLoop::ask_waiting_reads() {
  // One round is under way: the next one is for all who come meanwhile.
  if (reads_.empty() || !waiting_reads_.empty() || is_ended_) return;
  const Result<std::uint64_t> round = core_->read(now());
  if (!round.ok()) {
    std::vector<ProposalDone> refused;
    refused.swap(reads_);
    for (ProposalDone& done : refused) done(round.error());
    return;
  }
  waiting_reads_.push_back({*round, core_->read_index(), std::move(reads_)});
  reads_.clear();
  finish_reads();
}

void ReplicaLoop::finish_reads() {
  while (!waiting_reads_.empty() && core_->read_confirmed() >= waiting_reads_.front().round &&
         core_->applied() >= waiting_reads_.front().index) {
    WaitingRead read = std::move(waiting_reads_.front());
    waiting_reads_.pop_front();
    for (ProposalDone& done : read.dones) done(Answer{PlainAnswer{}});
  }
}

}  // namespace semel::replication
