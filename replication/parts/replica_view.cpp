#include "replication/parts/replica_view.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "replication/core/consensus_core.hpp"
#include "replication/log/log_writer.hpp"
#include "replication/parts/forwarder.hpp"
#include "replication/parts/loop_host.hpp"
#include "replication/parts/members.hpp"
#include "replication/parts/replica_time.hpp"
#include "replication/parts/snapshots.hpp"
#include "replication/state/state_machine.hpp"
#include "replication/transport/peer_transport.hpp"

namespace semel::replication {

ReplicaView::ReplicaView(const ReplicaParts& parts)
    : parts_(parts), reports_(parts.options.report) {}

Term ReplicaView::term() const noexcept {
  return parts_.core == nullptr ? 0 : parts_.core->raft().term();
}

// --- the status ---------------------------------------------------------------------------------

void ReplicaView::show() {
  const RaftLibrary& raft = parts_.core->raft();
  const MemoryLog& log = parts_.core->log();
  const LogWriter& writer = *parts_.writer;
  const bool leads = raft.is_leader();
  ReplicaStatus is;
  is.role = parts_.host.is_ended() ? Role::follower : raft.role();
  is.term = raft.term();
  is.leader = leads ? parts_.options.node_id : raft.leader();
  is.commit = log.commit();
  is.applied = log.applied();
  is.first = log.first();
  is.last = log.last();
  is.snapshot = parts_.snapshots->newest();
  is.members = raft.members();
  for (const Member& each : is.members) {
    if (each.id == is.leader) is.leader_address = each.address;
    if (leads) is.matches[each.id] = raft.match(each.id);
  }
  is.peers = parts_.transport->stats();
  is.elections = elections_;
  is.syncs = writer.syncs();
  is.leader_commit = std::max(parts_.members->leader_commit(), is.commit);
  is.level = parts_.state.level();
  is.level_newest = parts_.options.level;
  is.is_changing_members = raft.is_changing_members();
  is.is_fetching = parts_.snapshots->is_fetching();
  is.log_bytes = writer.disk_bytes();
  is.totals = parts_.transport->totals();
  is.disk_is_full = writer.is_full();
  is.stalled_ms = reports_.stalled_ms();
  is.clock_off_ms = parts_.time->off_by();
  parts_.time->show();
  status_.set(std::move(is));
}

void ReplicaView::note_role() {
  const RaftLibrary& raft = parts_.core->raft();
  const bool leads = raft.is_leader();
  if (leads && !status_.leads()) ++elections_;
  status_.set_leads(leads);
  say(ReplicaEvent::What::role, leads ? "this node leads"
                                : raft.leader() != 0
                                    ? "node " + std::to_string(raft.leader()) + " leads"
                                    : "no leader is known");
}

// --- for the operator's log ---------------------------------------------------------------------

void ReplicaView::say(ReplicaEvent::What what, const std::string& text) const noexcept {
  reports_.say(what, term(), text);
}

void ReplicaView::note_members(Bytes configuration) {
  reports_.say_members(term(), configuration);
}

void ReplicaView::report_changes() {
  const RaftLibrary& raft = parts_.core->raft();
  const MemoryLog& log = parts_.core->log();
  const LogWriter& writer = *parts_.writer;
  const bool leads = raft.is_leader();
  const bool has_leader = leads || raft.leader() != 0;
  const Proposals::Figures proposals = parts_.proposals.figures();
  // A forwarded read does not advance the applied index.
  const bool waits =
      proposals.entries + proposals.ready + proposals.held + parts_.forwarder->proposals() != 0;
  ReplicaReports::Facts facts;
  facts.now = millis_of(parts_.wall);
  facts.term = raft.term();
  facts.is_disk_full = writer.is_full();
  facts.is_disk_writing = writer.is_writing();
  facts.syncs = writer.syncs();
  // Without a leader everything waits, which `role` has said.
  facts.has_work = (leads && log.applied() < log.last()) || (has_leader && waits);
  facts.applied = log.applied();
  facts.patience_ms = answer_patience(parts_.options);
  // Before its first entry the group's time is not known here.
  if (log.applied() != 0 && has_leader) facts.clock_off_ms = parts_.time->off_by();
  reports_.look(facts, [this] { return what_waits(); });
}

std::string ReplicaView::what_waits() const {
  const RaftLibrary& raft = parts_.core->raft();
  const MemoryLog& log = parts_.core->log();
  const Proposals::Figures proposals = parts_.proposals.figures();
  std::string text = std::to_string(proposals.commands) + " commands are under way, " +
                     std::to_string(parts_.forwarder->proposals()) + " were forwarded, " +
                     std::to_string(proposals.ready) + " wait, " + std::to_string(proposals.held) +
                     " have no number; last entry " + std::to_string(log.last()) +
                     ", on the disk " + std::to_string(raft.stored()) + ", committed " +
                     std::to_string(log.commit()) + ", applied " + std::to_string(log.applied());
  if (!proposals.has_life) text += ", this node has no number of its own yet";
  const std::map<NodeId, PeerStats> peers = parts_.transport->stats();
  for (const Member& each : raft.members()) {
    if (each.id == parts_.options.node_id) continue;
    text += "; node " + std::to_string(each.id);
    if (raft.is_leader()) text += " has " + std::to_string(raft.match(each.id));
    const auto found = peers.find(each.id);
    const bool is_connected = found != peers.end() && found->second.is_connected;
    text += is_connected ? ", connected" : ", not connected";
  }
  return text;
}

}  // namespace semel::replication
