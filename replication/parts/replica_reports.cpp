#include "replication/parts/replica_reports.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "replication/core/configuration_codec.hpp"

namespace semel::replication {

using What = ReplicaEvent::What;

void ReplicaReports::say(What what, Term term, const std::string& text) const noexcept {
  if (!to_) return;
  try {
    to_({what, term, text});
  } catch (...) {  // a log line that is missing must not end a node
  }
}

void ReplicaReports::look(const Facts& facts, const std::function<std::string()>& what_waits) {
  if (facts.is_disk_full != is_full_) {
    is_full_ = facts.is_disk_full;
    say(is_full_ ? What::disk_full : What::disk_has_space, facts.term,
        is_full_ ? "the disk is full: this node acknowledges nothing until there is space"
                 : "the disk has space again");
  }
  try {
    look_at_disk(facts);
    look_at_group(facts, what_waits);
  } catch (const std::bad_alloc&) {  // as say()
  }
  look_at_clock(facts);
}

void ReplicaReports::look_at_disk(const Facts& facts) {
  constexpr std::uint64_t slow_ms = 1'000;
  // A full disk has an event of its own.
  const bool is_writing = facts.is_disk_writing && !facts.is_disk_full;
  switch (disk_.look(facts.now, is_writing, facts.syncs, slow_ms)) {
    case StallWatch::Turn::begins:
      say(What::disk_slow, facts.term,
          "for " + std::to_string(disk_.stalled_ms()) +
              " ms the disk has not taken what is written");
      break;
    case StallWatch::Turn::ends:
      if (facts.is_disk_full) break;
      say(What::disk_in_time, facts.term,
          "the disk takes what is written, after " + std::to_string(disk_.stalled_ms()) + " ms");
      break;
    case StallWatch::Turn::none:
      break;
  }
}

void ReplicaReports::look_at_group(const Facts& facts,
                                   const std::function<std::string()>& what_waits) {
  switch (group_.look(facts.now, facts.has_work, facts.applied, facts.patience_ms)) {
    case StallWatch::Turn::begins:
      say(What::stalled, facts.term,
          "for " + std::to_string(group_.stalled_ms()) +
              " ms nothing was applied here: " + what_waits());
      break;
    case StallWatch::Turn::ends:
      say(What::goes_on, facts.term,
          "what waited goes on, after " + std::to_string(group_.stalled_ms()) + " ms");
      break;
    case StallWatch::Turn::none:
      break;
  }
}

void ReplicaReports::look_at_clock(const Facts& facts) {
  constexpr std::int64_t off_ms = 60'000;
  if (!facts.clock_off_ms) return;
  // Half of it to end: a clock at the border is not reported each second.
  const bool is_off = std::abs(*facts.clock_off_ms) > (is_clock_off_ ? off_ms / 2 : off_ms);
  if (is_off == is_clock_off_) return;
  is_clock_off_ = is_off;
  say(is_off ? What::clock_off : What::clock_right, facts.term,
      "the wall clock is " + std::to_string(*facts.clock_off_ms) + " ms from the group's time");
}

void ReplicaReports::say_members(Term term, Bytes configuration) {
  const auto members = decode_configuration(configuration);
  if (!members.ok()) return;
  std::string text;
  for (const Member& each : *members) {
    text += (text.empty() ? "" : "; ") + std::to_string(each.id) +
            (each.role == MemberRole::voter ? " voter " : " standby ") + each.address;
  }
  if (text == members_) return;
  members_ = text;
  say(What::members, term, text);
}

}  // namespace semel::replication
