#include "replication/parts/replica_time.hpp"

#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "replication/parts/loop_host.hpp"

namespace semel::replication {

ReplicaTime::ReplicaTime(const Parts& parts, KeptTime kept,
                         const std::optional<SnapshotId>& snapshot)
    : parts_(parts), freshness_(base::random_number()), kept_(std::move(kept)) {
  const std::int64_t state_ms = parts_.state.unix_ms();
  clock_.begin(state_ms == 1 ? 0 : state_ms, parts_.wall.unix_ms(), here(),
               parts_.options.clock_ahead_max.count());
  if (const auto& known = kept_.found()) clock_.recall(*known, kept_.is_of_this_boot(), here());
  if (snapshot) clock_.saw(state_ms, here(), snapshot->term);
}

std::uint64_t ReplicaTime::now() const noexcept {
  return millis_of(parts_.wall);
}

// --- messages and entries -----------------------------------------------------------------------

void ReplicaTime::stamp(RaftMessage& message) {
  const ConsensusCore& core = parts_.core;
  clock_.tell(message, core.raft().is_leader(), here());
  if (auto* const reply = std::get_if<AppendReply>(&message.what)) {
    reply->mark = freshness_.mark(now());
  }
  if (auto* const append = std::get_if<AppendRequest>(&message.what)) {
    append->mark = freshness_.mark_of(message.to, message.term, core.leadership().heard_at(now()));
  }
}

/// The winner of an election has heard a majority.
void ReplicaTime::hear(const RaftMessage& message) {
  clock_.hear(message, parts_.core.raft().term(), here());
  if (!std::holds_alternative<AppendRequest>(message.what)) return;
  keep();
  show();
}

ReplicaTime::MarkNote ReplicaTime::mark_in(const RaftMessage& message) noexcept {
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

void ReplicaTime::take_mark(const MarkNote& note) {
  const RaftLibrary& raft = parts_.core.raft();
  if (note.mark != 0 && note.term == raft.term()) {
    if (note.is_reply && raft.is_leader()) {
      freshness_.replied(note.from, note.term, note.mark, now());
    }
    if (!note.is_reply && raft.leader() == note.from) {
      const auto asked_at = freshness_.came(note.mark, note.commit);
      if (asked_at && note.unix_ms != 0) {
        clock_.bound(note.unix_ms, static_cast<std::int64_t>(*asked_at), note.term);
      }
    }
  }
  show_fresh();
}

/// A leader before level 4 says the time by its entries alone. Of many that come together only the
/// newest says what time it is for it.
void ReplicaTime::note_applied(LogIndex index, Term term) noexcept {
  const ConsensusCore& core = parts_.core;
  const std::int64_t at = here();
  clock_.saw(parts_.state.unix_ms(), at, term);
  const bool is_followed =
      term == core.raft().term() && !core.raft().is_leader() && index == core.log().commit();
  if (is_followed) clock_.follow(parts_.state.unix_ms(), at, term);
}

// --- of a leader --------------------------------------------------------------------------------

/// What former leaders have left is applied first: until then its time is not known.
void ReplicaTime::lead(bool has_entries) {
  const ConsensusCore& core = parts_.core;
  const Term term = core.raft().term();
  if (!core.raft().is_leader() || !clock_.has_to_lead(term)) return;
  if (has_entries || core.log().applied() < core.log().last()) return;
  const Configuration members = core.raft().members();
  const auto is_voter = [](const Member& each) { return each.role == MemberRole::voter; };
  clock_.lead(term,
              static_cast<std::size_t>(std::count_if(members.begin(), members.end(), is_voter)));
  show();
}

std::int64_t ReplicaTime::next(bool has_entries) {
  lead(has_entries);
  return clock_.next(here(), parts_.wall.unix_ms());
}

std::int64_t ReplicaTime::behind() const noexcept {
  return clock_.at(here()) - parts_.state.unix_ms();
}

// --- what others see ----------------------------------------------------------------------------

void ReplicaTime::tick() {
  const ConsensusCore& core = parts_.core;
  freshness_.leads(core.leadership().heard_at(now()), core.log().commit());
  show_fresh();
}

void ReplicaTime::show() noexcept {
  const std::int64_t at = here();
  parts_.shown.set_offset(clock_.at(at) - at);
}

void ReplicaTime::show_fresh() noexcept {
  const std::uint64_t at = freshness_.fresh_at(parts_.core.log().applied());
  const bool is_current = at != 0 && clock_.is_close();
  const std::uint64_t until = is_current ? at + answer_patience(parts_.options) : 0;
  parts_.shown.set_current_until(static_cast<std::int64_t>(until));
}

void ReplicaTime::keep() {
  if (!kept_.is_open()) return;
  const auto known = clock_.to_keep(here(), parts_.wall.unix_ms());
  if (!known) return;
  // Not here: where a file system is stalled a write waits, and a leader must be heard.
  parts_.writer.run_after_write([this, content = *known] { kept_.write(content); });
}

std::int64_t ReplicaTime::off_by() const noexcept {
  return clock_.off_by(here(), parts_.wall.unix_ms());
}

}  // namespace semel::replication
