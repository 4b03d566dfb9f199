#include "replication/parts/snapshots.hpp"

#include <unistd.h>

#include <utility>

namespace semel::replication {

Snapshots::Snapshots(const Parts& parts, Hooks hooks, LogIndex newest, std::uint64_t newest_bytes)
    : parts_(parts),
      hooks_(std::move(hooks)),
      schedule_(parts.options.snapshot_every_bytes, newest, newest_bytes),
      worker_(parts.options, parts.disk, parts.state, hooks_.work_done) {}

/// What an entry that is applied now is, for a snapshot that is cut behind it.
SnapshotId Snapshots::mark_of(LogIndex index) const {
  const ConsensusCore& core = parts_.core;
  return {index, core.log().term_of(index), core.applied_members().index,
          core.applied_members().members};
}

void Snapshots::applies(LogIndex index, std::uint64_t entry_bytes) {
  worker_.note([&] { return mark_of(index); });
  schedule_.applied(entry_bytes);
}

void Snapshots::consider() {
  if (worker_.is_busy() || fetching_) return;
  const LogIndex applied = parts_.core.log().applied();
  if (!schedule_.is_due(applied, parts_.core.must_apply_more())) return;
  schedule_.begin();
  if (!worker_.take(mark_of(applied))) schedule_.no_thread();
}

void Snapshots::finish(std::uint64_t now) {
  const SnapshotWorker::Outcome outcome = worker_.finish();
  const auto* const checked = std::get_if<SnapshotChecked>(&outcome);
  if (checked != nullptr && checked->status) return hooks_.must_reopen();
  if (checked != nullptr) {
    fetching_.reset();
    hooks_.report(ReplicaEvent::What::snapshot_failed,
                  "a snapshot was not taken: " + checked->status.error().message());
  }
  if (unchecked_) check(*std::exchange(unchecked_, std::nullopt));
  if (checked == nullptr) taken(std::get<SnapshotTaken>(outcome), now);
}

void Snapshots::taken(const SnapshotTaken& taken, std::uint64_t now) {
  if (!taken.front.ok()) {
    schedule_.failed();
    return hooks_.report(ReplicaEvent::What::snapshot_failed,
                         "a snapshot could not be written: " + taken.front.error().message());
  }
  const SnapshotId& id = taken.front->id;
  schedule_.taken(id.index, taken.bytes);
  ConsensusCore& core = parts_.core;
  std::size_t trailing = 0;
  for (std::uint64_t kept = 0; id.index > trailing; ++trailing) {
    const RaftEntry* const entry = core.log().entry(id.index - trailing);
    if (entry == nullptr) break;
    kept += entry->data->size();
    if (kept > parts_.options.trailing_bytes) break;
  }
  core.snapshot_taken(now, id, trailing);
  if (core.log().first() > 1) parts_.writer.forget(core.log().first() - 1);
  hooks_.report(ReplicaEvent::What::snapshot, "snapshot of entry " + std::to_string(id.index) +
                                                  ", " + std::to_string(taken.bytes) + " bytes");
}

std::optional<std::string> Snapshots::path_of(LogIndex index, Term term) const {
  const std::string path = parts_.options.directory + "/" + snapshot_name({index, term, 0, {}});
  return access(path.c_str(), R_OK) == 0 ? std::optional{path} : std::nullopt;
}

// --- from another node --------------------------------------------------------------------------

bool Snapshots::fetch(const RaftMessage& offer) {
  const SnapshotId id = std::get<SnapshotOffer>(offer.what).snapshot;
  if (offer.term < parts_.core.raft().term() || id.index <= parts_.core.log().commit())
    return false;
  if (fetching_ && fetching_->index == id.index && fetching_->term == id.term) return true;
  fetching_ = id;
  const std::string path = parts_.options.directory + "/" + snapshot_name(id) + ".part";
  const std::string entry = std::to_string(id.index);
  hooks_.report(ReplicaEvent::What::snapshot,
                "node " + std::to_string(offer.from) + " sends the snapshot of entry " + entry);
  parts_.transport.fetch(offer.from, id.index, id.term, path,
                         [this, id, path, entry](const std::string& error) {
                           if (error.empty()) return check({id, path});
                           hooks_.report(ReplicaEvent::What::snapshot_failed,
                                         "the snapshot of entry " + entry + ": " + error);
                           fetching_.reset();  // the leader offers it again: the rest is fetched
                         });
  return true;
}

/// The loop does not wait for its worker.
void Snapshots::check(const Fetched& fetched) {
  fetching_ = fetched.id;
  if (worker_.is_busy()) {
    unchecked_ = fetched;
  } else if (!worker_.check(fetched.id, fetched.path)) {
    fetching_.reset();  // the leader offers it again
  }
}

}  // namespace semel::replication
