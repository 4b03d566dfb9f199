// The group's time on this node, and how current it is.
#include <algorithm>

#include "replication/node/replica_loop.hpp"

namespace semel::replication {

void ReplicaLoop::show_time() noexcept {
  const auto here = static_cast<std::int64_t>(now());
  group_time_.set_offset(clock_.at(here) - here);
}

void ReplicaLoop::keep_time() {
  if (!kept_time_.is_open()) return;
  const auto known = clock_.to_keep(static_cast<std::int64_t>(now()), unix_ms());
  if (!known) return;
  // Not here: where a file system is stalled a write waits, and a leader must be heard.
  writer_->run_after_write([this, content = *known] { kept_time_.write(content); });
}

/// What former leaders have left is applied first: until then its time is not known.
void ReplicaLoop::lead_time() {
  if (!core_->raft().is_leader() || !clock_.has_to_lead(core_->raft().term())) return;
  if (proposals_.figures().newest_entry != 0 || core_->log().applied() < core_->log().last())
    return;
  const Configuration members = core_->raft().members();
  const auto is_voter = [](const Member& each) { return each.role == MemberRole::voter; };
  clock_.lead(core_->raft().term(),
              static_cast<std::size_t>(std::count_if(members.begin(), members.end(), is_voter)));
  show_time();
}

/// Of an entry of this node, which leads.
std::int64_t ReplicaLoop::next_time() {
  lead_time();
  return clock_.next(static_cast<std::int64_t>(now()), unix_ms());
}

ReplicaLoop::MarkNote ReplicaLoop::mark_in(const RaftMessage& message) noexcept {
  MarkNote note{.from = message.from, .term = message.term, .unix_ms = 0};
  if (const auto* const append = std::get_if<AppendRequest>(&message.what)) {
    note.mark = append->mark;
    note.commit = append->commit;
    note.unix_ms = append->unix_ms;
  } else if (const auto* const reply = std::get_if<AppendReply>(&message.what)) {
    note.is_reply = true;
    note.mark = reply->mark;
  }
  return note;
}

void ReplicaLoop::take_mark(const MarkNote& note) {
  if (note.is_reply) members_->note_reply(note.from, note.term);
  if (note.mark != 0 && note.term == core_->raft().term()) {
    if (note.is_reply && core_->raft().is_leader()) {
      freshness_.replied(note.from, note.term, note.mark, now());
    }
    if (!note.is_reply && core_->raft().leader() == note.from) {
      const auto asked_at = freshness_.came(note.mark, note.commit);
      if (asked_at && note.unix_ms != 0) {
        clock_.bound(note.unix_ms, static_cast<std::int64_t>(*asked_at), note.term);
      }
    }
  }
  show_fresh();
}

void ReplicaLoop::show_fresh() noexcept {
  const std::uint64_t at = freshness_.fresh_at(core_->log().applied());
  const bool is_current = at != 0 && clock_.is_close();
  group_time_.set_current_until(is_current ? static_cast<std::int64_t>(at + answer_patience()) : 0);
}

/// While entries are under way, the next append has the commit index. Otherwise waiters and readers
/// at a follower would see decided entries up to a heartbeat later.
void ReplicaLoop::tell_idle() {
  if (is_ended_ || !core_->raft().is_leader() || proposals_.figures().newest_entry != 0) return;
  if (told_ == core_->log().commit()) return;
  told_ = core_->log().commit();
  for (const Member& each : core_->raft().members()) {
    if (each.id != options_.node_id) core_->tell_commit(each.id);
  }
}

}  // namespace semel::replication
