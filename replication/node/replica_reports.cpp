// What a replica says for the operator's log.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "replication/node/replica_loop.hpp"

namespace semel::replication {

void ReplicaLoop::report(ReplicaEvent::What what, const std::string& text) const noexcept {
  if (!options_.report) return;
  try {
    options_.report({what, core_ == nullptr ? vote_.term : core_->term(), text});
  } catch (...) {  // a log line that is missing must not end a node
  }
}

void ReplicaLoop::on_event(Event event, const std::string& what) {
  report(event == Event::refused ? ReplicaEvent::What::peer_refused
                                 : ReplicaEvent::What::peer_unreachable,
         what);
}

void ReplicaLoop::report_changes() {
  using What = ReplicaEvent::What;
  constexpr std::int64_t off_ms = 60'000;
  if (writer_->is_full() != full_reported_) {
    full_reported_ = !full_reported_;
    report(full_reported_ ? What::disk_full : What::disk_has_space,
           full_reported_ ? "the disk is full: this node acknowledges nothing until there is space"
                          : "the disk has space again");
  }
  report_stalls();
  const std::int64_t off = clock_.off_by(static_cast<std::int64_t>(now()), unix_ms());
  // Half of it to end: a clock at the border is not reported each second.
  const bool is_off = std::abs(off) > (off_reported_ ? off_ms / 2 : off_ms);
  // Before its first entry the group's time is not known here.
  if (core_->applied() == 0 || (core_->leader() == 0 && !core_->is_leader())) return;
  if (is_off != off_reported_) {
    off_reported_ = is_off;
    report(is_off ? What::clock_off : What::clock_right,
           "the wall clock is " + std::to_string(off) + " ms from the group's time");
  }
}

void ReplicaLoop::report_stalls() {
  try {
    report_disk_stall();
    report_group_stall();
  } catch (const std::bad_alloc&) {  // as report()
  }
}

void ReplicaLoop::report_disk_stall() {
  using What = ReplicaEvent::What;
  constexpr std::uint64_t slow_ms = 1'000;
  // A full disk has an event of its own.
  const bool writes = writer_->is_writing() && !writer_->is_full();
  switch (disk_watch_.look(now(), writes, writer_->syncs(), slow_ms)) {
    case StallWatch::Turn::begins:
      report(What::disk_slow, "for " + std::to_string(disk_watch_.stalled_ms()) +
                                  " ms the disk has not taken what is written");
      break;
    case StallWatch::Turn::ends:
      if (writer_->is_full()) break;
      report(What::disk_in_time, "the disk takes what is written, after " +
                                     std::to_string(disk_watch_.stalled_ms()) + " ms");
      break;
    case StallWatch::Turn::none:
      break;
  }
}

void ReplicaLoop::report_group_stall() {
  using What = ReplicaEvent::What;
  // Without a leader everything waits, which `role` has said.
  const bool leads = core_->is_leader();
  const Proposals::Figures proposals = proposals_.figures();
  // A forwarded read does not move what is applied here.
  const bool waits =
      proposals.entries + proposals.ready + proposals.held + forwards_.proposals() != 0;
  const bool has_work =
      (leads && core_->applied() < core_->last()) || ((leads || core_->leader() != 0) && waits);
  switch (group_watch_.look(now(), has_work, core_->applied(), answer_patience())) {
    case StallWatch::Turn::begins:
      report(What::stalled, "for " + std::to_string(group_watch_.stalled_ms()) +
                                " ms nothing was applied here: " + what_waits());
      break;
    case StallWatch::Turn::ends:
      report(What::goes_on,
             "what waited goes on, after " + std::to_string(group_watch_.stalled_ms()) + " ms");
      break;
    case StallWatch::Turn::none:
      break;
  }
}

/// And for whom: entries for this node's disk or for other nodes, commands for entries.
std::string ReplicaLoop::what_waits() const {
  const Proposals::Figures proposals = proposals_.figures();
  std::string text = std::to_string(proposals.commands) + " commands are under way, " +
                     std::to_string(forwards_.proposals()) + " were forwarded, " +
                     std::to_string(proposals.ready) + " wait, " + std::to_string(proposals.held) +
                     " have no number; last entry " + std::to_string(core_->last()) +
                     ", on the disk " + std::to_string(core_->stored()) + ", committed " +
                     std::to_string(core_->commit()) + ", applied " +
                     std::to_string(core_->applied());
  if (!proposals_.figures().has_life) text += ", this node has no number of its own yet";
  const std::map<NodeId, PeerStats> peers = transport_->stats();
  for (const Member& each : core_->members()) {
    if (each.id == options_.node_id) continue;
    text += "; node " + std::to_string(each.id);
    if (core_->is_leader()) text += " has " + std::to_string(core_->match(each.id));
    const auto found = peers.find(each.id);
    const bool is_connected = found != peers.end() && found->second.is_connected;
    text += is_connected ? ", connected" : ", not connected";
  }
  return text;
}

void ReplicaLoop::report_members(Bytes configuration) {
  const auto members = ConsensusCore::decode(configuration);
  if (!members.ok()) return;
  std::string text;
  for (const Member& each : *members) {
    text += (text.empty() ? "" : "; ") + std::to_string(each.id) +
            (each.role == MemberRole::voter ? " voter " : " standby ") + each.address;
  }
  if (text == members_reported_) return;
  members_reported_ = text;
  report(ReplicaEvent::What::members, text);
}

}  // namespace semel::replication
