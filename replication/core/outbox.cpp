#include "replication/core/outbox.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/raft_shim.h"

namespace semel::replication {

Status Outbox::send(const raft_shim_message& message) {
  const auto& [options, raft, log, leadership, effects] = parts_;
  RaftMessage out{.from = options.id, .to = message.peer, .term = message.term, .what = {}};
  if (is_muted_) {
    SEMEL_ASSERT(message.type == raft_shim_type_append_reply);
    return Done{};
  }
  switch (message.type) {
    case raft_shim_type_append:
      return send_append(message, std::move(out));
    case raft_shim_type_append_reply:
      out.what = AppendReply{.rejected = message.index,
                             .last_index = message.second,
                             .echo = leadership.echo_for(message.peer)};
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
      if (options.guards.shows_real_term && message.pre_vote && !message.yes) {
        out.term = std::max(out.term, raft.term());
      }
      break;
    case raft_shim_type_snapshot:
      // It may have been taken again since the library looked.
      if (log.snapshot().index != message.index) return Done{};
      out.what = SnapshotOffer{.snapshot = log.snapshot(), .manifest = nullptr};
      break;
    case raft_shim_type_timeout_now:
      // It may arrive after the transfer was given up: another leader then, at any time.
      leadership.give_lease_up();
      out.what = TimeoutNow{.last_index = message.index, .last_term = message.index_term};
      // The library sends it with the first reply to an append, once; while others are under way
      // the receiver ignores it, and the transfer is given up an election timeout later.
      if (options.guards.holds_timeout_now && raft.match(message.peer) < message.index) {
        held_ = std::move(out);
        return Done{};
      }
      break;
    default:
      return Error{ErrorCode::storage_damaged, "consensus: the library sends a message of type " +
                                                   std::to_string(message.type)};
  }
  effects.send(std::move(out));
  return Done{};
}

void Outbox::send_held() {
  if (!held_) return;
  const RaftLibrary& raft = parts_.raft;
  if (!raft.is_leader() || held_->term != raft.term() || !raft.is_handing_over()) {
    return held_.reset();
  }
  if (raft.match(held_->to) < std::get<TimeoutNow>(held_->what).last_index) return;
  parts_.effects.send(*std::move(held_));
  held_.reset();
}

AppendRequest Outbox::append_after(LogIndex index, Term term, LogIndex commit) const {
  return {.previous_index = index,
          .previous_term = term,
          .commit = commit,
          .echo = sent_at_,
          .entries = {}};
}

/// In parts, if the entries have many bytes: each is an append of its own.
Status Outbox::send_append(const raft_shim_message& message, RaftMessage head) {
  AppendRequest part = append_after(message.index, message.index_term, message.second);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message.count; ++i) {
    const LogIndex index = message.index + 1 + i;
    const RaftEntry* const found = parts_.log.entry(index);
    if (found == nullptr) {
      return Error{ErrorCode::storage_damaged, "consensus: the library sends entry " +
                                                   std::to_string(index) +
                                                   ", which is not in the log"};
    }
    if (!part.entries.empty() && bytes + found->data->size() > parts_.options.message_bytes_max) {
      RaftMessage out = head;
      const LogIndex previous = part.previous_index + part.entries.size();
      const Term previous_term = part.entries.back().term;
      out.what = std::move(part);
      parts_.effects.send(std::move(out));
      part = append_after(previous, previous_term, message.second);
      bytes = 0;
    }
    bytes += found->data->size();
    part.entries.push_back(*found);
  }
  head.what = std::move(part);
  parts_.effects.send(std::move(head));
  return Done{};
}

}  // namespace semel::replication
