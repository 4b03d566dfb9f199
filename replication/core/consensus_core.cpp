#include "replication/core/consensus_core.hpp"

#include <string>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/configuration_codec.hpp"

namespace semel::replication {
namespace {

Status check_stored(const StoredState& stored) {
  const LogIndex last = stored.first + stored.entries.size() - 1;
  if (stored.first == 0 || (!stored.snapshot && stored.first != 1) ||
      (stored.snapshot && (stored.first > stored.snapshot->index + 1 ||
                           last < stored.snapshot->index || stored.snapshot->term == 0 ||
                           stored.snapshot->configuration_index > stored.snapshot->index))) {
    return Error{ErrorCode::bad_option,
                 "entries " + std::to_string(stored.first) + " to " + std::to_string(last) +
                     " do not continue the snapshot of " +
                     std::to_string(stored.snapshot ? stored.snapshot->index : 0)};
  }
  for (const RaftEntry& each : stored.entries) {
    if (each.type != EntryType::configuration) continue;
    SEMEL_CHECK(decode_configuration(*each.data));
  }
  return Done{};
}

}  // namespace

ConsensusCore::ConsensusCore(const ConsensusOptions& options, ConsensusEffects& effects,
                             RaftLibrary raft)
    : options_(options),
      raft_(std::move(raft)),
      leadership_({options_, raft_, log_, effects}),
      outbox_({options_, raft_, log_, leadership_, effects}),
      steps_({raft_, log_, leadership_, outbox_, effects}),
      applier_({options_, log_, steps_, effects}),
      inbox_({options_, raft_, log_, leadership_, outbox_, steps_, applier_}) {}

Result<std::unique_ptr<ConsensusCore>> ConsensusCore::make(const ConsensusOptions& options,
                                                           ConsensusEffects& effects) {
  SEMEL_TRY(raft, RaftLibrary::make(options));
  return std::unique_ptr<ConsensusCore>{new ConsensusCore{options, effects, std::move(raft)}};
}

// --- an event -----------------------------------------------------------------------------------

void ConsensusCore::begin(std::uint64_t now) {
  SEMEL_ASSERT(!is_busy_);  // an effect has called the core
  is_busy_ = true;
  outbox_.begin_event(now);
  applier_.begin_event();
}

void ConsensusCore::after(std::uint64_t now) {
  bool has_more = true;
  while (has_more && !has_failed()) {
    steps_.report_persisted(now);
    begin_term(now);
    applier_.apply_committed(now);
    // A candidate that became the leader can take the report now.
    has_more = steps_.can_report_persisted();
  }
  if (!has_failed()) outbox_.send_held();
  check_invariants();
  is_busy_ = false;
}

void ConsensusCore::check_invariants() const noexcept {
  if (has_failed()) return;
  log_.check_invariants();
  applier_.check_invariants();
  leadership_.check_invariants();
}

bool ConsensusCore::can_lead() const noexcept {
  return !has_failed() && raft_.is_leader() && !raft_.is_handing_over();
}

/// A leader without an entry of its term does not know which entries are committed.
void ConsensusCore::begin_term(std::uint64_t now) {
  if (!can_lead() || log_.term_of(log_.last()) == raft_.term()) return;
  const Status begun = steps_.submit_barrier(now);
  if (!begun && !has_failed()) {
    steps_.fail("a leader cannot begin its term: " + begun.error().detail);
  }
}

// --- events -------------------------------------------------------------------------------------

Status ConsensusCore::start(std::uint64_t now, StoredState stored) {
  SEMEL_ASSERT(!is_busy_ && log_.last() == 0 && log_.applied() == 0);
  SEMEL_CHECK(check_stored(stored));
  // One that has never voted has promised nothing.
  inbox_.begin(now, stored.term > 1);
  log_.begin(stored.snapshot.value_or(SnapshotId{}), stored.first, stored.entries);
  if (stored.snapshot) applier_.begin_at(*stored.snapshot);
  begin(now);
  const Status started = steps_.start(now, stored);
  if (!started) {
    is_busy_ = false;
    return started;
  }
  after(now);
  return Done{};
}

void ConsensusCore::tick(std::uint64_t now) {
  if (has_failed()) return;
  begin(now);
  steps_.tick(now);
  if (!has_failed()) leadership_.probe_again();
  after(now);
}

void ConsensusCore::apply_more(std::uint64_t now) {
  if (has_failed()) return;
  begin(now);
  after(now);
}

void ConsensusCore::receive(std::uint64_t now, RaftMessage message) {
  if (has_failed() || !inbox_.fits(message)) return;
  begin(now);
  inbox_.take(now, message);
  after(now);
}

void ConsensusCore::persisted(std::uint64_t now, LogIndex index, Term term) {
  if (has_failed()) return;
  begin(now);
  log_.note_persisted(index, term);
  after(now);
}

Result<LogIndex> ConsensusCore::propose(std::uint64_t now, SharedData data) {
  if (!can_lead()) return Error{ErrorCode::not_leader, {}};
  if (options_.guards.bounds_uncommitted &&
      log_.last() - log_.commit() >= options_.uncommitted_max) {
    return Error{ErrorCode::log_busy, {}};
  }
  begin(now);
  const Status submitted = steps_.submit(now, EntryType::command, std::move(data));
  const LogIndex index = log_.last();
  after(now);
  if (!submitted) return Error{submitted.error().code, {}};
  return index;
}

void ConsensusCore::snapshot_taken(std::uint64_t now, const SnapshotId& snapshot,
                                   std::size_t trailing) {
  // A snapshot that was installed in between is newer.
  if (has_failed() || log_.is_installing() || snapshot.index <= log_.snapshot().index) return;
  begin(now);
  SEMEL_ASSERT(snapshot.index <= log_.applied() && log_.term_of(snapshot.index) == snapshot.term);
  steps_.snapshot_taken(now, snapshot, trailing);
  after(now);
}

void ConsensusCore::installed(std::uint64_t now, const SnapshotId& snapshot) {
  if (has_failed()) return;
  begin(now);
  log_.restart(snapshot);
  applier_.begin_at(snapshot);
  steps_.installed(now, snapshot);
  after(now);
}

Status ConsensusCore::change(std::uint64_t now, const MemberChange& change) {
  if (has_failed()) return Error{ErrorCode::not_leader, {}};
  SEMEL_TRY(plan, (MemberChanges{options_, raft_, log_}.plan(change)));
  if (const NodeId id = plan.catches_up; id != 0) {
    begin(now);
    steps_.catch_up(now, id);
    // It is seen to have caught up when it takes an entry more; without one it never is.
    if (!has_failed()) static_cast<void>(steps_.submit_barrier(now));
    after(now);
    return Error{ErrorCode::refused, "node " + std::to_string(id) + " begins to catch up"};
  }
  if (!plan.members) return Done{};
  SEMEL_TRY(data, encode_configuration(*plan.members));
  begin(now);
  const Status submitted = steps_.submit(now, EntryType::configuration, std::move(data));
  after(now);
  if (submitted) return Done{};
  return Error{ErrorCode::refused, "members are as they were: " + submitted.error().detail};
}

Status ConsensusCore::transfer(std::uint64_t now, NodeId id) {
  if (!can_lead()) return Error{ErrorCode::not_leader, {}};
  begin(now);
  const Status begun = steps_.transfer(now, id);
  after(now);
  return begun;
}

Result<std::uint64_t> ConsensusCore::read(std::uint64_t now) {
  if (!leadership_.knows_decided()) return Error{ErrorCode::not_leader, {}};
  begin(now);
  const std::uint64_t round = leadership_.begin_round();
  is_busy_ = false;
  return round;
}

}  // namespace semel::replication
