// Messages from and to peers, with the guards that judge messages.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/core/raft_shim.h"
#include "replication/core/shim_convert.hpp"

namespace semel::replication {

// --- out ------------------------------------------------------------------------------------

void ConsensusCore::send(const raft_shim_message& message) {
  RaftMessage out{.from = options_.id, .to = message.peer, .term = message.term, .what = {}};
  if (is_muted_) {
    SEMEL_ASSERT(message.type == raft_shim_type_append_reply);
    return;
  }
  switch (message.type) {
    case raft_shim_type_append:
      return send_append(message, std::move(out));
    case raft_shim_type_append_reply:
      out.what = AppendReply{.rejected = message.index,
                             .last_index = message.second,
                             .echo = echo_term_ == term() && leader() == message.peer ? echo_ : 0};
      break;
    case raft_shim_type_vote:
      out.what = VoteRequest{.last_index = message.index,
                             .last_term = message.index_term,
                             .disrupts_leader = message.yes,
                             .is_pre_vote = message.pre_vote};
      break;
    case raft_shim_type_vote_reply:
      out.what = VoteReply{.is_granted = message.yes, .is_pre_vote = message.pre_vote};
      // A candidate with a longer log and an older term would never learn why it is refused.
      if (options_.guards.shows_real_term && message.pre_vote && !message.yes) {
        out.term = std::max(out.term, term());
      }
      break;
    case raft_shim_type_snapshot:
      // It may have been taken again since the library looked.
      if (log_.snapshot().index != message.index) return;
      out.what = SnapshotOffer{.snapshot = log_.snapshot(), .manifest = nullptr};
      break;
    case raft_shim_type_timeout_now:
      // It may arrive after the transfer was given up: another leader then, at any time.
      no_lease_term_ = term();
      out.what = TimeoutNow{.last_index = message.index, .last_term = message.index_term};
      // The library sends it with the first reply to an append, once; while others are under way
      // the receiver ignores it, and the transfer is given up an election timeout later.
      if (options_.guards.holds_timeout_now && match(message.peer) < message.index) {
        held_ = std::move(out);
        return;
      }
      break;
    default:
      return fail("the library sends a message of type " + std::to_string(message.type));
  }
  effects_.send(std::move(out));
}

void ConsensusCore::send_held() {
  if (!held_) return;
  if (!is_leader() || held_->term != term() || !is_handing_over()) return held_.reset();
  if (match(held_->to) < std::get<TimeoutNow>(held_->what).last_index) return;
  effects_.send(*std::move(held_));
  held_.reset();
}

/// In parts, if the entries have many bytes: each is an append of its own.
void ConsensusCore::send_append(const raft_shim_message& message, RaftMessage head) {
  AppendRequest part{.previous_index = message.index,
                     .previous_term = message.index_term,
                     .commit = message.second,
                     .echo = sent_at_,
                     .entries = {}};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message.count; ++i) {
    const LogIndex index = message.index + 1 + i;
    const RaftEntry* const found = log_.entry(index);
    if (found == nullptr) {
      return fail("the library sends entry " + std::to_string(index) + ", which is not in the log");
    }
    if (!part.entries.empty() && bytes + found->data->size() > options_.message_bytes_max) {
      RaftMessage out = head;
      const LogIndex previous = part.previous_index + part.entries.size();
      const Term previous_term = part.entries.back().term;
      out.what = std::move(part);
      effects_.send(std::move(out));
      part = {.previous_index = previous,
              .previous_term = previous_term,
              .commit = message.second,
              .echo = sent_at_,
              .entries = {}};
      bytes = 0;
    }
    bytes += found->data->size();
    part.entries.push_back(*found);
  }
  head.what = std::move(part);
  effects_.send(std::move(head));
}

// --- in -------------------------------------------------------------------------------------

/// Whether the library, whose assertions are compiled out, can take it.
bool ConsensusCore::fits(const RaftMessage& message) const {
  if (message.from == 0 || message.from == options_.id || message.to != options_.id ||
      message.term == 0) {
    return false;
  }
  const bool is_leaders = std::holds_alternative<AppendRequest>(message.what) ||
                          std::holds_alternative<SnapshotOffer>(message.what);
  // There is one leader a term.
  if (is_leaders && is_leader() && message.term == term()) return false;
  if (const auto* append = std::get_if<AppendRequest>(&message.what)) {
    if ((append->previous_index == 0) != (append->previous_term == 0)) return false;
    Term before = append->previous_term;
    for (const RaftEntry& each : append->entries) {
      if (each.data == nullptr || each.term < before || each.term == 0 ||
          each.term > message.term) {
        return false;
      }
      if (each.type == EntryType::configuration && !decode(*each.data)) return false;
      before = each.term;
    }
  }
  if (const auto* offer = std::get_if<SnapshotOffer>(&message.what)) {
    const SnapshotId& snapshot = offer->snapshot;
    return snapshot.index != 0 && snapshot.term != 0 && snapshot.term <= message.term &&
           snapshot.configuration_index <= snapshot.index && encode(snapshot.configuration).ok();
  }
  // Progress is kept for members alone.
  const bool is_reply = std::holds_alternative<AppendReply>(message.what);
  return !is_reply || !is_leader() || member(message.from) != nullptr;
}

void ConsensusCore::receive(std::uint64_t now, RaftMessage message) {
  if (failed_ || !fits(message)) return;
  begin(now);
  take(now, message);
  after(now);
}

void ConsensusCore::take(std::uint64_t now, RaftMessage& message) {
  if (std::holds_alternative<ReadProbe>(message.what)) return answer_probe(message);
  if (std::holds_alternative<ReadReply>(message.what)) return count_probe(message);
  if (std::holds_alternative<CommitNotice>(message.what)) return take_notice(now, message);
  if (std::holds_alternative<AppendRequest>(message.what)) return take_append(now, message);
  // It forgot its leader when it stopped, and another vote within the time of that leader's lease
  // would let two nodes lead.
  if (std::holds_alternative<VoteRequest>(message.what) && sits_out_) {
    if (now < started_ + static_cast<std::uint64_t>(options_.election.count())) return;
    sits_out_ = false;
  }
  if (auto* offer = std::get_if<SnapshotOffer>(&message.what)) {
    if (installing_) return;
    offered_ = *offer;
  }
  if (const auto* reply = std::get_if<AppendReply>(&message.what)) {
    // Of a message from before: the library would go back behind what it knows to be there, and
    // never send that member an entry again.
    const bool is_stale = is_leader() && message.term == term() && reply->rejected != 0 &&
                          reply->rejected <= match(message.from);
    if (options_.guards.drops_stale_rejections && is_stale) return;
  }
  give(now, message);
  offered_.reset();
  note_echo(message);
}

void ConsensusCore::take_append(std::uint64_t now, RaftMessage& message) {
  auto& append = std::get<AppendRequest>(message.what);
  if (options_.guards.trims_compacted && !installing_ &&
      append.previous_index < log_.snapshot().index) {
    // Entries that the snapshot has are committed, so they are equal. The library does not know
    // their terms any more.
    const LogIndex known = log_.snapshot().index - append.previous_index;
    const std::size_t drop = std::min<std::uint64_t>(known, append.entries.size());
    append.entries.erase(append.entries.begin(),
                         append.entries.begin() + static_cast<std::ptrdiff_t>(drop));
    append.previous_index = log_.snapshot().index;
    append.previous_term = log_.snapshot().term;
  }
  if (installing_) append.entries.clear();
  // The library notes a configuration at the index of the first entry of its message.
  while (options_.guards.splits_configurations && !failed_) {
    const auto is_configuration = [](const RaftEntry& entry) {
      return entry.type == EntryType::configuration;
    };
    if (append.entries.size() < 2) break;
    const auto next =
        std::find_if(append.entries.begin() + 1, append.entries.end(), is_configuration);
    if (next == append.entries.end()) break;
    RaftMessage part = message;
    auto& first = std::get<AppendRequest>(part.what);
    first.entries.assign(append.entries.begin(), next);
    append.previous_index += first.entries.size();
    append.previous_term = first.entries.back().term;
    append.entries.erase(append.entries.begin(), next);
    commit_configuration_before(now, part);
    if (failed_) return;
    give(now, part);
    apply_committed(now);
  }
  if (failed_) return;
  commit_configuration_before(now, message);
  if (failed_) return;
  give(now, message);
  note_echo(message);
}

/// The library knows one configuration that is not committed, and for a second one it forgets the
/// first. When the second is dropped with its leader, it would go back behind both. A leader makes
/// a second one only when the first is committed; so that is, if it is in the leader's log.
void ConsensusCore::commit_configuration_before(std::uint64_t now, const RaftMessage& message) {
  if (!options_.guards.keeps_members) return;
  const auto& append = std::get<AppendRequest>(message.what);
  if (append.entries.empty() || append.entries.front().type != EntryType::configuration) return;
  const bool is_equal = append.previous_index <= log_.last() && append.previous_index != 0 &&
                        log_.term_of(append.previous_index) == append.previous_term;
  if (message.term < term() || !is_equal) return;
  const LogIndex index = raft_shim_uncommitted_configuration(shim_.get());
  if (index == 0 || index > append.previous_index) return;
  const RaftEntry* const found = log_.entry(index);
  // The library would read behind the end of other bytes.
  if (found == nullptr || found->type != EntryType::configuration) {
    return fail("entry " + std::to_string(index) + " is no configuration, as the library says");
  }
  const RaftEntry kept = *found;
  static_cast<void>(commit_configuration(now, index, kept));
}

void ConsensusCore::give(std::uint64_t now, const RaftMessage& message) {
  const Member* const known = member(message.from);
  const std::string address = known == nullptr ? std::to_string(message.from) : known->address;
  raft_shim_message in{};
  in.peer = message.from;
  in.address = address.c_str();
  in.term = message.term;
  std::vector<raft_shim_entry> entries;
  ShimMembers members;
  std::vector<RaftEntry> own;
  if (const auto* vote = std::get_if<VoteRequest>(&message.what)) {
    in.type = raft_shim_type_vote;
    in.index = vote->last_index;
    in.index_term = vote->last_term;
    in.yes = vote->disrupts_leader;
    in.pre_vote = vote->is_pre_vote;
  } else if (const auto* voted = std::get_if<VoteReply>(&message.what)) {
    in.type = raft_shim_type_vote_reply;
    in.yes = voted->is_granted;
    in.pre_vote = voted->is_pre_vote;
  } else if (const auto* append = std::get_if<AppendRequest>(&message.what)) {
    in.type = raft_shim_type_append;
    in.index = append->previous_index;
    in.index_term = append->previous_term;
    in.second = append->commit;
    own = append->entries;
    entries = to_shim(own);
    in.entries = entries.data();
    in.count = entries.size();
  } else if (const auto* reply = std::get_if<AppendReply>(&message.what)) {
    in.type = raft_shim_type_append_reply;
    in.index = reply->rejected;
    in.second = reply->last_index;
  } else if (const auto* offer = std::get_if<SnapshotOffer>(&message.what)) {
    in.type = raft_shim_type_snapshot;
    in.snapshot = to_shim(offer->snapshot, members);
  } else if (const auto* timeout = std::get_if<TimeoutNow>(&message.what)) {
    in.type = raft_shim_type_timeout_now;
    in.index = timeout->last_index;
    in.index_term = timeout->last_term;
  }
  SEMEL_ASSERT(in.type != 0);
  raft_shim_update update;
  const int error = raft_shim_receive(shim_.get(), now, &in, &update);
  carry_out(error, update, own);
}

const Member* ConsensusCore::member(NodeId id) const {
  member_of_ = members();
  const auto found = std::find_if(member_of_.begin(), member_of_.end(),
                                  [&](const Member& each) { return each.id == id; });
  return found == member_of_.end() ? nullptr : &*found;
}

}  // namespace semel::replication
