// What a replica says for the operator's log.
#include <cstdlib>

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
