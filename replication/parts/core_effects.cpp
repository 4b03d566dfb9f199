#include "replication/parts/core_effects.hpp"

#include <utility>

#include "base/assert.hpp"
#include "replication/core/configuration_codec.hpp"
#include "replication/core/consensus_core.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/parts/forwarder.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/members.hpp"
#include "replication/parts/replica_time.hpp"
#include "replication/parts/replica_view.hpp"
#include "replication/parts/snapshots.hpp"
#include "replication/state/state_machine.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {
namespace {

/// The members that it names. None: it names none.
std::vector<NodeId> members_of(const RaftEntry& entry) {
  std::vector<NodeId> ids;
  if (entry.type != EntryType::configuration) return ids;
  const auto members = decode_configuration(*entry.data);
  if (!members.ok()) return ids;
  for (const Member& each : *members) ids.push_back(each.id);
  return ids;
}

}  // namespace

Status CoreEffects::save_vote(Term term, NodeId voted_for) {
  vote_.term = term;
  vote_.voted_for = voted_for;
  return file_->write_and_sync(vote_);
}

void CoreEffects::append(LogIndex first, std::vector<RaftEntry> entries) {
  for (const RaftEntry& each : entries) {
    if (each.type == EntryType::configuration) parts_.members->note_change();
  }
  parts_.writer->append(first, std::move(entries));
}

void CoreEffects::send(RaftMessage message) {
  parts_.time->stamp(message);
  parts_.transport->send(message);
}

Result<std::vector<Answer>> CoreEffects::apply_to_state(LogIndex index, const RaftEntry& entry) {
  StateMachine& state = parts_.state;
  if (entry.type == EntryType::command) {
    Result<std::vector<Answer>> answers = state.apply(index, *entry.data);
    parts_.time->note_applied(index, entry.term);
    return answers;
  }
  SEMEL_CHECK(state.skip(index, members_of(entry)));
  if (entry.type == EntryType::configuration) parts_.view->note_members(*entry.data);
  return std::vector<Answer>{};
}

void CoreEffects::apply(LogIndex index, const RaftEntry& entry) {
  parts_.snapshots->applies(index, entry.data->size());
  const FeatureLevel level = parts_.state.level();
  Result<std::vector<Answer>> answers = apply_to_state(index, entry);
  parts_.time->show();
  if (parts_.state.level() != level) parts_.view->note_level(parts_.state.level());
  parts_.proposals.answer(index, entry.term, answers, millis_of(parts_.wall));
  if (answers.ok()) return parts_.forwarder->note_applied(index);
  // Its state is that of no index. It must not answer reads, and begins anew from a snapshot.
  parts_.host.stop_with("entry " + std::to_string(index) + ": " + answers.error().detail);
}

void CoreEffects::install(const SnapshotOffer&) {
  SEMEL_ASSERT(false);  // it is fetched, and taken by open()
}

void CoreEffects::changed() {
  const std::uint64_t now = millis_of(parts_.wall);
  parts_.view->note_role();
  if (!parts_.core->raft().is_leader()) {
    parts_.proposals.lose_entries(now);
    parts_.reads.lose(now);
  }
  parts_.members->note_change();  // the leader judges their logs
  parts_.forwarder->lose_of_others(parts_.core->raft().leader());
  parts_.view->show();
}

void CoreEffects::failed(const Error& error) {
  parts_.host.stop_with(error.detail);
}

}  // namespace semel::replication
