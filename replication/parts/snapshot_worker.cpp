#include "replication/parts/snapshot_worker.hpp"

#include <unistd.h>

#include <new>
#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {

SnapshotWorker::~SnapshotWorker() {
  if (thread_.joinable()) thread_.join();
}

/// A thread of ours must not end the process for want of memory: the outcome that stands is that.
template <class Work>
bool SnapshotWorker::begin(Work&& work) {
  SEMEL_ASSERT(!is_busy_);
  if (thread_.joinable()) thread_.join();
  try {
    thread_ = std::thread{[this, work] {
      storage::name_thread("semel-snapshot");
      storage::yield_to_others();
      try {
        work();
      } catch (const std::bad_alloc&) {
      }
      done_();
    }};
  } catch (const std::system_error&) {
    return false;
  }
  is_busy_ = true;
  return true;
}

bool SnapshotWorker::take(const SnapshotId& newest) {
  {
    const base::MutexLock lock{mutex_};
    marks_.assign(1, newest);
    is_marking_ = true;
    check_invariants();
  }
  outcome_.emplace<SnapshotTaken>();
  if (begin([this] { write(std::get<SnapshotTaken>(outcome_)); })) return true;
  static_cast<void>(end_marking(0));
  return false;
}

bool SnapshotWorker::check(const SnapshotId& id, const std::string& path) {
  outcome_.emplace<SnapshotChecked>();
  return begin(
      [this, id, path] { std::get<SnapshotChecked>(outcome_).status = read_and_name(id, path); });
}

SnapshotWorker::Outcome SnapshotWorker::finish() {
  SEMEL_ASSERT(is_busy_);
  is_busy_ = false;
  static_cast<void>(end_marking(0));  // where memory ended before the snapshot began
  return std::move(outcome_);
}

/// What the entry at `index` is; index 0: it is not among those that were noted.
SnapshotId SnapshotWorker::end_marking(LogIndex index) {
  const base::MutexLock lock{mutex_};
  check_invariants();
  is_marking_ = false;
  SnapshotId found;
  for (SnapshotId& each : marks_) {
    if (each.index == index) found = std::move(each);
  }
  marks_.clear();
  return found;
}

void SnapshotWorker::write(SnapshotTaken& taken) {
  const Status written = write_state(taken);
  if (!written) taken.front = written.error();
}

Status SnapshotWorker::write_state(SnapshotTaken& taken) {
  std::unique_ptr<SnapshotWriter> writer;
  SnapshotFront front;
  Status written{semel::Done{}};
  const auto begin = [&](const ReplicaState& state) {
    front.cluster_id = options_.cluster_id;
    front.state = state;
    front.id = end_marking(state.applied);
    SEMEL_ASSERT(front.id.index == state.applied);
    auto made = SnapshotWriter::create(disk_, options_.directory, front);
    if (made.ok()) {
      writer = *std::move(made);
    } else {
      written = made.error();
    }
  };
  SEMEL_CHECK(state_.snapshot(begin, [&](const Mutation& mutation) {
    if (written) written = writer->add(mutation);
  }));
  SEMEL_CHECK(written);
  SEMEL_TRY(path, writer->finish());
  taken.bytes = writer->bytes();
  SEMEL_TRY(names, find_snapshots(options_.directory));
  for (const std::string& other : names.others) {
    // The file of a snapshot that is being fetched is newer, and has another name.
    if (other < snapshot_name(front.id))
      SEMEL_CHECK(disk_.remove(options_.directory + "/" + other));
  }
  taken.front = std::move(front);
  return semel::Done{};
}

Status SnapshotWorker::read_and_name(const SnapshotId& id, const std::string& path) {
  Status checked = read_snapshot(
      path,
      [&](const SnapshotFront& front) -> Status {
        if (front.cluster_id == options_.cluster_id && front.id.index == id.index &&
            front.id.term == id.term) {
          return semel::Done{};
        }
        return Error{ErrorCode::storage_damaged, path + " is another snapshot"};
      },
      [](std::span<const Mutation>) { return Status{semel::Done{}}; });
  if (checked) checked = disk_.sync_file(path);
  if (checked) checked = disk_.rename(path, options_.directory + "/" + snapshot_name(id));
  if (!checked) unlink(path.c_str());
  return checked;
}

/// Invariant: marks_ is empty unless is_marking_.
void SnapshotWorker::check_invariants() const noexcept {
  SEMEL_ASSERT(is_marking_ || marks_.empty());
}

}  // namespace semel::replication
