// What a node hands over to the leader, and reads. Every node answers when it has applied what it
// was told, so that its own engine shows it.
//
//   forward        id | life | .. and if that is not 0: lowest sequence | sequence - lowest |
//                  command; nothing behind the id: it is for a read
//   its reply      id | error | index of the entry, or that the read needs | answer
//
// Whose command it is is known by the connection that it comes from, and is not asked.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "replication/node/replica_loop.hpp"
#include "replication/state/fields.hpp"

namespace semel::replication {
namespace {

/// Under way to one leader. All of their answers find room in its queue for this node
/// (TransportOptions::queue_frames), beside its other messages; and the leader, which reads them
/// one after the other, must not be late with its heartbeats for them.
constexpr std::size_t forwarded_max = 1'024;

std::string forward_bytes(Origin origin, const PreparedCommand& command) {
  std::string bytes;
  FieldWriter fields{bytes};
  fields.number(origin.life);
  if (origin.life != 0) numbers(fields, origin);
  bytes += command.bytes;
  return bytes;
}

/// A session, and a life, is of the node that asks for it.
bool is_of(NodeId from, const Command& command) {
  if (const auto* session = std::get_if<SessionCommand>(&command.what)) {
    return session->what == SessionCommand::What::close || session->node == from;
  }
  const auto* const section = std::get_if<SectionCommand>(&command.what);
  return section == nullptr ||
         std::all_of(section->commands.begin(), section->commands.end(),
                     [from](const Command& each) { return is_of(from, each); });
}

}  // namespace

void ReplicaLoop::forward_waiting() {
  const NodeId leader = core_->leader();
  if (leader == 0 || leader == options_.node_id) return;
  std::vector<Proposal> kept;
  while (!proposals_.empty() && forwarded_.size() < forwarded_max) {
    Proposal& first = proposals_.front();
    if (first.is_of_peer || (!options_.forwards && !first.forwards)) {
      kept.push_back(std::move(first));
      proposals_.pop_front();
      continue;
    }
    const std::uint64_t id = forwards_ + 1;
    if (!transport_->send(leader, Forward{id, forward_bytes(origin_of(first), first.command)})) {
      break;
    }
    forwards_ = id;
    ++first.asked;
    if (!may_wait(first.until) && !can_ask_again(first)) drop_bytes(first);
    forwarded_[id] = {leader, now(), std::move(first), {}};
    proposals_.pop_front();
  }
  proposals_.insert(proposals_.begin(), std::make_move_iterator(kept.begin()),
                    std::make_move_iterator(kept.end()));
}

void ReplicaLoop::lose_forwarded(Forwarded forwarded, ErrorCode why, bool is_untouched) {
  if (forwarded.proposal) {
    return retry_or_refuse(*std::move(forwarded.proposal), why, is_untouched);
  }
  has_forwarded_reads_ = false;
  refuse_reads(std::move(forwarded.readers), ErrorCode::not_leader);
}

void ReplicaLoop::forget_forwarded(const std::function<bool(const Forwarded&)>& is) {
  std::vector<Forwarded> lost;
  for (auto at = forwarded_.begin(); at != forwarded_.end();) {
    const auto each = at++;
    if (is(each->second)) lost.push_back(std::move(forwarded_.extract(each).mapped()));
  }
  for (Forwarded& each : lost) lose_forwarded(std::move(each), ErrorCode::outcome_unknown, false);
}

/// It may have taken it, and has not answered. Where it can be asked again that is done soon, and
/// then later and later: it may have too much to do.
void ReplicaLoop::give_up_forwarded() {
  forget_forwarded([&](const Forwarded& each) {
    const bool is_again = each.proposal && has_number(*each.proposal) &&
                          !each.proposal->command.bytes.empty() && may_wait(each.proposal->until);
    if (!is_again) return now() > each.since + answer_patience();
    const std::uint64_t wait = (answer_patience() / 6) << std::min(each.proposal->asked, 10U);
    return now() > each.since + wait;
  });
}

bool ReplicaLoop::is_known(const Command& command) const {
  if (const auto* const request = std::get_if<RequestCommand>(&command.what)) {
    return runner_ != nullptr && runner_->knows(*request);
  }
  const auto* const section = std::get_if<SectionCommand>(&command.what);
  return section == nullptr || std::all_of(section->commands.begin(), section->commands.end(),
                                           [this](const Command& each) { return is_known(each); });
}

Result<ReplicaLoop::Proposal> ReplicaLoop::read_forward(NodeId from, Bytes bytes) const {
  FieldReader fields{bytes};
  Origin origin;
  fields.number(origin.life);
  if (origin.life != 0) {
    origin.node = from;
    numbers(fields, origin);
  }
  Bytes rest = fields.rest();
  if (!fields.is_good()) return Error{ErrorCode::bad_encoding, {}};
  SEMEL_TRY(command, decode(rest));
  if (!rest.empty() || !is_of(from, command) || !is_known(command)) {
    return Error{ErrorCode::bad_encoding, {}};
  }
  // Only who leads has looked whether all members know it.
  if (std::holds_alternative<FeatureLevelCommand>(command.what)) {
    return Error{ErrorCode::not_leader, {}};
  }
  // Below it a node of an earlier release would stop at it. What this leader has not applied yet
  // may raise the level: it is asked again.
  if (const FeatureLevel needed = level_of(command);
      needed > feature_level_first && state_->level() < needed) {
    return Error{ErrorCode::not_leader, {}};
  }
  SEMEL_TRY(prepared, prepare(command));
  return Proposal{.command = std::move(prepared), .is_of_peer = true, .origin = origin};
}

/// Of a member, and yet read as if it were hostile: an entry that no replica can read stops all.
void ReplicaLoop::on_forward(NodeId from, Forward forward) {
  if (!is_ended_) run_part([&] { take_forward(from, std::move(forward)); });
}

void ReplicaLoop::take_forward(NodeId from, Forward forward) {
  // It is called when the entry is applied here, or the read confirmed.
  const auto reply = [this, from, id = forward.id](const Result<Answer>& answer) {
    if (is_ended_) return;
    std::string bytes;
    if (answer.ok()) encode(*answer, bytes);
    ErrorCode error = answer.ok() ? ErrorCode::ok : answer.error().code;
    // It is this node that ends, not the one that asks, which goes on to the next leader.
    if (error == ErrorCode::closing) error = ErrorCode::not_leader;
    // One that no frame has room for is done all the same.
    if (bytes.size() > frame_bytes_max / 2) error = ErrorCode::outcome_unknown;
    if (error != ErrorCode::ok) bytes.clear();
    core_->tell_commit(from);
    std::string whole;
    FieldWriter fields{whole};
    fields.number(static_cast<std::uint64_t>(error));
    fields.number(std::uint64_t{state_->applied()});
    fields.bytes(bytes);
    static_cast<void>(transport_->send(from, ForwardReply{id, std::move(whole)}));
  };
  if (forward.bytes.empty()) {
    if (!core_->is_leader()) return reply(Error{ErrorCode::not_leader, {}});
    return read(reply, {});
  }
  Result<Proposal> proposal = read_forward(from, forward.bytes);
  if (!proposal.ok()) return reply(proposal.error());
  if (!core_->is_leader()) return reply(Error{ErrorCode::not_leader, {}});
  if (proposal->command.bytes.size() > command_bytes_max(options_)) {
    return reply(Error{ErrorCode::value_too_long, {}});
  }
  proposal->done = {reply, ErrorCode::outcome_unknown};
  submit(*std::move(proposal));
}

void ReplicaLoop::on_forward_reply(NodeId from, ForwardReply reply) {
  if (!is_ended_) run_part([&] { take_forward_reply(from, std::move(reply)); });
}

void ReplicaLoop::take_forward_reply(NodeId from, ForwardReply reply) {
  const auto found = forwarded_.find(reply.id);
  if (found == forwarded_.end() || found->second.leader != from) return;
  Forwarded forwarded = std::move(found->second);
  forwarded_.erase(found);
  FieldReader fields{reply.bytes};
  std::uint64_t error = 0;
  LogIndex index = 0;
  Bytes bytes;
  fields.number(error);
  fields.number(index);
  fields.bytes(bytes);
  Result<Answer> answer = Error{ErrorCode::outcome_unknown, {}};
  if (fields.is_good() && error != 0) answer = Error{static_cast<ErrorCode>(error), {}};
  if (fields.is_good() && error == 0) answer = decode_answer(bytes);
  if (!answer.ok()) {
    const ErrorCode why = answer.error().code;
    const bool is_again = why == ErrorCode::not_leader || why == ErrorCode::log_busy;
    if (is_again || why == ErrorCode::outcome_unknown || !forwarded.proposal) {
      return lose_forwarded(std::move(forwarded), why, is_again);
    }
    return finish(*forwarded.proposal, answer.error());
  }
  if (!held_.empty() || !proposals_.empty()) wake_soon();  // there is room for the next one
  if (forwarded.proposal) {
    const auto* const refused = std::get_if<NotApplied>(&answer->what);
    if (refused != nullptr && forwarded.proposal->is_numbered) {
      return not_applied(*std::move(forwarded.proposal), refused->why);
    }
    Reply done = std::move(forwarded.proposal->done);
    finish(*forwarded.proposal, Answer{});  // its number: what follows needs no leader
    if (!done) return;
    return when_applied(index, {.done = std::move(done),
                                .answer = *std::move(answer),
                                .until = forwarded.proposal->until});
  }
  has_forwarded_reads_ = false;
  when_applied(index, {.readers = std::move(forwarded.readers)});
  ask_waiting_reads();
}

/// The entry comes with the next appends. One that is cut off right after the leader's answer must
/// not wait for ever.
void ReplicaLoop::when_applied(LogIndex index, AppliedWait wait) {
  if (state_->applied() >= index) return wait.end(true);
  wait.until = std::max(wait.until, now() + answer_patience());
  applied_waits_.emplace(index, std::move(wait));
}

void ReplicaLoop::AppliedWait::end(bool is_applied) {
  if (done && is_applied) done(std::move(answer));
  for (Reader& each : readers) {
    if (is_applied) {
      each.done(Answer{PlainAnswer{}});
    } else {
      each.done(Error{ErrorCode::not_leader, {}});
    }
  }
}

void ReplicaLoop::run_applied(LogIndex index) {
  while (!applied_waits_.empty() && applied_waits_.begin()->first <= index) {
    AppliedWait wait = std::move(applied_waits_.begin()->second);
    applied_waits_.erase(applied_waits_.begin());
    wait.end(true);
  }
}

void ReplicaLoop::give_up_applied() {
  std::vector<AppliedWait> late;
  for (auto at = applied_waits_.begin(); at != applied_waits_.end();) {
    const auto each = at++;
    if (now() > each->second.until)
      late.push_back(std::move(applied_waits_.extract(each).mapped()));
  }
  for (AppliedWait& each : late) each.end(false);
}

// --- reads --------------------------------------------------------------------------------------

void ReplicaLoop::read(ProposalDone done, const ProposalTerms& terms) {
  {
    base::MutexLock lock{mutex_};
    if (!is_closed_) {
      const std::uint64_t until = now() + static_cast<std::uint64_t>(terms.patience.count());
      new_reads_.push_back({{std::move(done), ErrorCode::closing}, until});
      if (!begin_wake()) return;
      lock.unlock();
      return post_turn();
    }
  }
  done(Error{ErrorCode::closing, {}});
}

/// Those that may wait stay.
void ReplicaLoop::refuse_reads(std::vector<Reader> readers, ErrorCode why) {
  for (Reader& each : readers) {
    if (may_wait(each.until)) {
      reads_.push_back(std::move(each));
    } else {
      each.done(Error{why, {}});
    }
  }
}

void ReplicaLoop::ask_waiting_reads() {
  // One round is under way: the next one is for all who come meanwhile.
  if (reads_.empty() || !waiting_reads_.empty() || is_ended_) return;
  if (!core_->is_leader() && forward_reads()) return;
  const LogIndex time_index = renew_time();
  if (is_ended_) return;
  const std::uint64_t time_until = now() + static_cast<std::uint64_t>(options_.election.count());
  // No other node can have answered anything since: what is committed here is all there is.
  if (options_.reads_by_lease && core_->is_leader() && core_->lease_until(now()) > now()) {
    waiting_reads_.push_back(
        {0, core_->commit(), std::exchange(reads_, {}), time_index, time_until});
    return finish_reads();
  }
  const Result<std::uint64_t> round = core_->read(now());
  if (!round.ok()) return refuse_reads(std::exchange(reads_, {}), round.error().code);
  waiting_reads_.push_back(
      {*round, core_->read_index(), std::move(reads_), time_index, time_until});
  reads_.clear();
  finish_reads();
}

/// True: they are under way, or wait for those that are.
bool ReplicaLoop::forward_reads() {
  const NodeId leader = core_->leader();
  if (!options_.forwards || leader == 0 || leader == options_.node_id) return false;
  if (has_forwarded_reads_) return true;
  const std::uint64_t id = forwards_ + 1;
  if (!transport_->send(leader, Forward{id, {}})) return false;
  forwards_ = id;
  has_forwarded_reads_ = true;
  forwarded_[id] = {leader, now(), std::nullopt, std::exchange(reads_, {})};
  return true;
}

/// Between entries the log's time stands still, and what has ended since would still be read.
/// Without records that end, and right after an entry, nothing is written for a read.
LogIndex ReplicaLoop::renew_time() {
  if (!core_->is_leader() || core_->is_handing_over()) return 0;
  const std::int64_t behind = clock_.at(static_cast<std::int64_t>(now())) - state_->unix_ms();
  if (behind <= options_.heartbeat.count() || state_->engine().stats().records_with_ttl == 0) {
    return 0;
  }
  if (in_flight_.empty() && proposals_.empty()) {
    queue_time();
    propose_waiting();
  }
  return in_flight_.empty() ? 0 : in_flight_.back().index;
}

void ReplicaLoop::finish_reads() {
  const auto is_ready = [this](const WaitingRead& read) {
    const LogIndex applied = core_->applied();
    return core_->read_confirmed() >= read.round && applied >= read.index &&
           (applied >= read.time_index || now() >= read.time_until);
  };
  while (!waiting_reads_.empty() && is_ready(waiting_reads_.front())) {
    WaitingRead read = std::move(waiting_reads_.front());
    waiting_reads_.pop_front();
    for (Reader& each : read.readers) each.done(Answer{PlainAnswer{}});
  }
}

}  // namespace semel::replication
