#include "replication/parts/forwarder.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "replication/parts/replica_time.hpp"

namespace semel::replication {

Forwarder::Forwarder(const Parts& parts) : parts_(parts), forwards_(base::random_number() >> 8) {}

NodeId Forwarder::leader() const noexcept {
  const NodeId leader = parts_.core.raft().leader();
  return leader == parts_.options.node_id ? 0 : leader;
}

void Forwarder::forward_proposals() {
  const NodeId to = leader();
  if (to == 0) return;
  parts_.proposals.hand_over(parts_.options.forwards, [&](Proposal& each) {
    if (forwards_.is_full()) return false;
    const std::string bytes = forward_bytes(each.origin, each.command);
    if (!parts_.transport.send(to, Forward{forwards_.next_id(), bytes})) return false;
    parts_.proposals.note_sent(each, now());
    forwards_.add(to, now(), std::move(each));
    return true;
  });
}

bool Forwarder::forward_reads() {
  const NodeId to = leader();
  if (!parts_.options.forwards || to == 0) return false;
  if (forwards_.has_reads()) return true;
  if (!parts_.transport.send(to, Forward{forwards_.next_id(), {}})) return false;
  forwards_.add(to, now(), parts_.reads.take_waiting());
  return true;
}

/// It is not known what became of them.
void Forwarder::lose(std::vector<Forwards::Pending> lost) {
  for (Forwards::Pending& each : lost) {
    if (Proposal* const proposal = each.proposal()) {
      parts_.proposals.lose(std::move(*proposal), now());
    } else {
      parts_.reads.refuse(std::get<Forwards::Readers>(std::move(each.what)), ErrorCode::not_leader,
                          now());
    }
  }
}

void Forwarder::give_up_late() {
  lose(forwards_.take_late(now(), answer_patience(parts_.options)));
  waits_.give_up(now());
}

void Forwarder::close() noexcept {
  for (auto& [id, each] : forwards_.take_all()) {
    // The destructor of a Reply answers the reader.
    if (Proposal* const proposal = each.proposal()) {
      parts_.proposals.finish(*proposal, Error{ErrorCode::outcome_unknown, {}});
    }
  }
  waits_.run(log_index_max);  // they are decided, if not applied here
}

bool Forwarder::take_reply(NodeId from, const ForwardReply& reply) {
  std::optional<Forwards::Pending> pending = forwards_.take(reply.id, from);
  if (!pending) return false;
  ForwardAnswer content = read_forward_reply(reply.bytes);
  if (content.answer.ok()) {
    const Proposals::Figures proposals = parts_.proposals.figures();
    // There is room for the next one.
    if (proposals.ready != 0 || proposals.held != 0) parts_.host.wake_soon();
  }
  if (Proposal* const proposal = pending->proposal()) {
    take_proposal_reply(std::move(*proposal), std::move(content));
    return false;
  }
  auto readers = std::get<Forwards::Readers>(std::move(pending->what));
  if (!content.answer.ok()) {
    parts_.reads.refuse(std::move(readers), ErrorCode::not_leader, now());
    return false;
  }
  show_when_applied(content.index, {.readers = std::move(readers)});
  return true;
}

void Forwarder::take_proposal_reply(Proposal proposal, ForwardAnswer content) {
  Proposals& proposals = parts_.proposals;
  if (!content.answer.ok()) {
    const ErrorCode why = content.answer.error().code;
    if (why == ErrorCode::not_leader || why == ErrorCode::log_busy) {
      return proposals.put_back(std::move(proposal), why, now());
    }
    if (why == ErrorCode::outcome_unknown) return proposals.lose(std::move(proposal), now());
    return proposals.finish(proposal, content.answer.error());
  }
  const auto* const refused = std::get_if<NotApplied>(&content.answer->what);
  if (refused != nullptr && proposal.has_number()) {
    proposals.not_applied(std::move(proposal), refused->why, now());
    const Proposals::Figures figures = proposals.figures();
    if (!figures.has_life || figures.can_number) parts_.host.wake_soon();
    return;
  }
  Reply done = std::move(proposal.done);
  proposals.finish(proposal, Answer{});  // its number: the rest needs no leader
  if (!done) return;
  show_when_applied(
      content.index,
      {.done = std::move(done), .answer = *std::move(content.answer), .until = proposal.until});
}

/// The entry comes with the next appends.
void Forwarder::show_when_applied(LogIndex index, AppliedWaits::Wait wait) {
  wait.until = std::max(wait.until, now() + answer_patience(parts_.options));
  waits_.add(index, parts_.state.applied(), std::move(wait));
}

}  // namespace semel::replication
