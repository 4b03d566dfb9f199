#include "replication/parts/proposer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {

bool Proposer::may_propose() const noexcept {
  const RaftLibrary& raft = parts_.core.raft();
  return raft.is_leader() && !raft.is_handing_over();
}

void Proposer::propose_waiting() {
  Proposals& proposals = parts_.proposals;
  ConsensusCore& core = parts_.core;
  const Proposals::Figures figures = proposals.figures();
  if ((figures.ready == 0 && figures.held == 0) || parts_.host.is_ended()) return;
  if (!may_propose()) {
    parts_.forwarder.forward_proposals();
    return proposals.refuse_waiting(ErrorCode::not_leader, now());
  }
  // What former leaders have left is applied first: its time is not known before, and an entry with
  // an earlier one stops every replica, each time that it is opened.
  if (figures.entries == 0 && core.log().applied() < core.log().last()) return;
  while (proposals.figures().ready != 0 && !proposals.is_full()) {
    const std::uint64_t here = now();
    const std::int64_t unix_ms = parts_.time.next(has_entries());
    const LogIndex index = core.log().last() + 1;
    auto bytes = std::make_shared<const std::string>(
        proposals.begin_entry(index, core.raft().term(), unix_ms, here));
    const Result<LogIndex> taken = core.propose(here, std::move(bytes));
    SEMEL_ASSERT(!taken.ok() || *taken == index);
    const Status status = taken.ok() ? Status{Done{}} : Status{taken.error()};
    if (!proposals.end_entry(index, status, here)) return;
  }
}

void Proposer::tick() {
  parts_.proposals.begin_life(now());
  propose_time();
  begin_level();
}

/// Time is what entries say it is: an idle group's records end by this one.
void Proposer::propose_time() {
  constexpr std::uint64_t every_ms = 1'000;
  const Proposals::Figures proposals = parts_.proposals.figures();
  if (!may_propose() || proposals.entries != 0 || proposals.ready != 0 ||
      now() < proposals.entry_at + every_ms ||
      parts_.state.engine().stats().records_with_ttl == 0) {
    return;
  }
  queue_time();
}

/// The first entry of a new group.
void Proposer::begin_level() {
  const std::optional<FeatureLevel> level = parts_.members.level_to_begin(now());
  if (!level) return;
  parts_.proposals.add_own({FeatureLevelCommand{*level}}, nullptr,
                           {.repeats = true, .is_numbered = false}, now());
}

void Proposer::queue_time() {
  parts_.proposals.add_own({TimeCommand{}}, nullptr, {.is_numbered = false}, now());
}

LogIndex Proposer::renew_time() {
  if (!may_propose()) return 0;
  if (parts_.time.behind() <= parts_.options.heartbeat.count() ||
      parts_.state.engine().stats().records_with_ttl == 0) {
    return 0;
  }
  const Proposals::Figures proposals = parts_.proposals.figures();
  if (proposals.entries == 0 && proposals.ready == 0) {
    queue_time();
    propose_waiting();
  }
  return parts_.proposals.figures().newest_entry;
}

void Proposer::tell_idle() {
  ConsensusCore& core = parts_.core;
  if (parts_.host.is_ended() || !core.raft().is_leader() || has_entries()) return;
  if (told_ == core.log().commit()) return;
  told_ = core.log().commit();
  for (const Member& each : core.raft().members()) {
    if (each.id != parts_.options.node_id) core.tell_commit(each.id);
  }
}

void Proposer::check_invariants() const noexcept {
  SEMEL_ASSERT(told_ <= parts_.core.log().commit());
}

}  // namespace semel::replication
