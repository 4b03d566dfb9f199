#include "replication/core/inbox.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/configuration_codec.hpp"

namespace semel::replication {
namespace {

bool is_configuration(const RaftEntry& entry) {
  return entry.type == EntryType::configuration;
}

/// Takes the entries before the next configuration that is not the first one; false: there is none.
bool split_at_configuration(AppendRequest& append, AppendRequest& part) {
  if (append.entries.size() < 2) return false;
  const auto next =
      std::find_if(append.entries.begin() + 1, append.entries.end(), is_configuration);
  if (next == append.entries.end()) return false;
  part.entries.assign(append.entries.begin(), next);
  append.previous_index += part.entries.size();
  append.previous_term = part.entries.back().term;
  append.entries.erase(append.entries.begin(), next);
  return true;
}

bool is_sound(const AppendRequest& append, Term term) {
  if ((append.previous_index == 0) != (append.previous_term == 0)) return false;
  Term before = append.previous_term;
  for (const RaftEntry& each : append.entries) {
    if (each.data == nullptr || each.term < before || each.term == 0 || each.term > term) {
      return false;
    }
    if (is_configuration(each) && !decode_configuration(*each.data)) return false;
    before = each.term;
  }
  return true;
}

bool is_sound(const SnapshotId& snapshot, Term term) {
  return snapshot.index != 0 && snapshot.term != 0 && snapshot.term <= term &&
         snapshot.configuration_index <= snapshot.index &&
         encode_configuration(snapshot.configuration).ok();
}

}  // namespace

void Inbox::begin(std::uint64_t now, bool has_voted) noexcept {
  started_ = now;
  sits_out_ = parts_.options.guards.sits_out && has_voted;
}

bool Inbox::fits(const RaftMessage& message) const {
  const RaftLibrary& raft = parts_.raft;
  const NodeId self = parts_.options.id;
  if (message.from == 0 || message.from == self || message.to != self || message.term == 0) {
    return false;
  }
  const auto* const append = std::get_if<AppendRequest>(&message.what);
  const auto* const offer = std::get_if<SnapshotOffer>(&message.what);
  // There is one leader a term.
  const bool is_leaders = append != nullptr || offer != nullptr;
  if (is_leaders && raft.is_leader() && message.term == raft.term()) return false;
  if (append != nullptr) return is_sound(*append, message.term);
  if (offer != nullptr) return is_sound(offer->snapshot, message.term);
  // Progress is kept for members alone.
  const bool is_reply = std::holds_alternative<AppendReply>(message.what);
  return !is_reply || !raft.is_leader() || raft.member(message.from).has_value();
}

/// It forgot its leader when it stopped, and another vote within the time of that leader's lease
/// would let two nodes lead.
bool Inbox::sits_out_vote(std::uint64_t now) noexcept {
  const auto election = static_cast<std::uint64_t>(parts_.options.election.count());
  if (now >= started_ + election) sits_out_ = false;
  return sits_out_;
}

/// Of a message from before: the library would go back behind what it knows to be there, and never
/// send that member an entry again.
bool Inbox::is_stale_rejection(const RaftMessage& message) const {
  const auto* const reply = std::get_if<AppendReply>(&message.what);
  return reply != nullptr && parts_.raft.is_leader() && message.term == parts_.raft.term() &&
         reply->rejected != 0 && reply->rejected <= parts_.raft.match(message.from);
}

void Inbox::take(std::uint64_t now, RaftMessage& message) {
  Leadership& leadership = parts_.leadership;
  if (std::holds_alternative<ReadProbe>(message.what)) return leadership.answer_probe(message);
  if (std::holds_alternative<ReadReply>(message.what)) return leadership.count_probe(message);
  if (std::holds_alternative<CommitNotice>(message.what)) return take_notice(now, message);
  if (std::holds_alternative<AppendRequest>(message.what)) return take_append(now, message);
  if (std::holds_alternative<VoteRequest>(message.what) && sits_out_vote(now)) return;
  if (std::holds_alternative<SnapshotOffer>(message.what) && parts_.log.is_installing()) return;
  if (parts_.options.guards.drops_stale_rejections && is_stale_rejection(message)) return;
  parts_.steps.receive(now, message);
  leadership.note_echo(message);
}

/// Entries that the snapshot has are committed, so they are equal. The library does not know their
/// terms any more.
void Inbox::trim_compacted(AppendRequest& append) const {
  const SnapshotId& snapshot = parts_.log.snapshot();
  if (append.previous_index >= snapshot.index) return;
  const LogIndex known = snapshot.index - append.previous_index;
  const std::size_t drop = std::min<std::uint64_t>(known, append.entries.size());
  append.entries.erase(append.entries.begin(),
                       append.entries.begin() + static_cast<std::ptrdiff_t>(drop));
  append.previous_index = snapshot.index;
  append.previous_term = snapshot.term;
}

void Inbox::take_append(std::uint64_t now, RaftMessage& message) {
  const Guards& guards = parts_.options.guards;
  auto& append = std::get<AppendRequest>(message.what);
  if (parts_.log.is_installing()) {
    append.entries.clear();
  } else if (guards.trims_compacted) {
    trim_compacted(append);
  }
  // The library notes a configuration at the index of the first entry of its message.
  while (guards.splits_configurations) {
    AppendRequest part{.previous_index = append.previous_index,
                       .previous_term = append.previous_term,
                       .commit = append.commit,
                       .echo = append.echo,
                       .entries = {}};
    if (!split_at_configuration(append, part)) break;
    give_append(now, {message.from, message.to, message.term, std::move(part)});
    if (parts_.steps.has_failed()) return;
    parts_.applier.apply_committed(now);
    if (parts_.steps.has_failed()) return;
  }
  give_append(now, message);
  parts_.leadership.note_echo(message);
}

void Inbox::give_append(std::uint64_t now, const RaftMessage& message) {
  commit_change_before(now, message);
  if (!parts_.steps.has_failed()) parts_.steps.receive(now, message);
}

/// The library knows one configuration that is not committed, and for a second one it forgets the
/// first. When the second is dropped with its leader, it would go back behind both. A leader makes
/// a second one only when the first is committed; so that is, if it is in the leader's log.
void Inbox::commit_change_before(std::uint64_t now, const RaftMessage& message) {
  if (!parts_.options.guards.keeps_members) return;
  const MemoryLog& log = parts_.log;
  const auto& append = std::get<AppendRequest>(message.what);
  if (append.entries.empty() || !is_configuration(append.entries.front())) return;
  const bool is_equal = append.previous_index <= log.last() && append.previous_index != 0 &&
                        log.term_of(append.previous_index) == append.previous_term;
  if (message.term < parts_.raft.term() || !is_equal) return;
  const LogIndex index = parts_.raft.changing_index();
  if (index == 0 || index > append.previous_index) return;
  const RaftEntry* const found = log.entry(index);
  // The library would read behind the end of other bytes.
  if (found == nullptr || !is_configuration(*found)) {
    return parts_.steps.fail("entry " + std::to_string(index) +
                             " is no configuration, as the library says");
  }
  const RaftEntry kept = *found;
  parts_.steps.commit_configuration(now, index, kept);
}

/// For the library it is a heartbeat that has this entry as its previous one. Its reply stays here:
/// the leader has sent no append that it would be for.
void Inbox::take_notice(std::uint64_t now, const RaftMessage& message) {
  const RaftLibrary& raft = parts_.raft;
  const MemoryLog& log = parts_.log;
  const CommitNotice& notice = std::get<CommitNotice>(message.what);
  if (raft.is_leader() || message.term != raft.term() || raft.leader() != message.from ||
      log.is_installing()) {
    return;
  }
  // An equal term at an index means an equal log up to it.
  if (notice.index <= log.commit() || log.term_of(notice.index) != notice.index_term) return;
  RaftMessage heartbeat = message;
  heartbeat.what = AppendRequest{.previous_index = notice.index,
                                 .previous_term = notice.index_term,
                                 .commit = notice.index,
                                 .echo = 0,
                                 .entries = {}};
  parts_.outbox.set_muted(true);
  parts_.steps.receive(now, heartbeat);
  parts_.outbox.set_muted(false);
}

}  // namespace semel::replication
