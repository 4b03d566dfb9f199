#include "replication/core/applier.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/configuration_codec.hpp"

namespace semel::replication {

void Applier::begin_at(const SnapshotId& snapshot) {
  members_ = {snapshot.configuration, snapshot.configuration_index};
}

void Applier::apply_committed(std::uint64_t now) {
  MemoryLog& log = parts_.log;
  while (has_more()) {
    const RaftEntry* const next = log.entry(log.applied() + 1);
    if (next == nullptr) {
      return parts_.steps.fail("entry " + std::to_string(log.applied() + 1) +
                               " is committed and not in the log");
    }
    if (entries_left_ == 0 || bytes_left_ == 0) return;
    --entries_left_;
    bytes_left_ -= std::min(bytes_left_, next->data->size());
    log.note_applied();
    const LogIndex index = log.applied();
    const RaftEntry kept = *next;  // the step of a configuration may change the log
    if (kept.type == EntryType::configuration && !apply_configuration(now, kept)) return;
    parts_.effects.apply(index, kept);
  }
}

bool Applier::apply_configuration(std::uint64_t now, const RaftEntry& entry) {
  Result<Configuration> members = decode_configuration(*entry.data);
  if (!members) {
    parts_.steps.fail(members.error());
    return false;
  }
  const LogIndex index = parts_.log.applied();
  members_ = {*std::move(members), index};
  parts_.steps.commit_configuration(now, index, entry);
  return !parts_.steps.has_failed();
}

void Applier::check_invariants() const noexcept {
  SEMEL_ASSERT(parts_.log.is_installing() || members_.index <= parts_.log.applied());
}

}  // namespace semel::replication
