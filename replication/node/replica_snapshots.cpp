// Snapshots of the state: written beside the loop, sent to who needs one, fetched and checked.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <new>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "replication/node/replica_loop.hpp"

namespace semel::replication {

namespace asio = boost::asio;

namespace {

/// What `work` gives: a thread of ours must not end the process for want of memory.
template <class T, class Work>
Result<T> unless_memory_ends(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::memory_full, {}};
  }
}

}  // namespace

/// What an entry that is applied now is, for a snapshot that is cut behind it.
SnapshotId ReplicaLoop::mark_of(LogIndex index) const {
  return {index, core_->term_of(index), core_->applied_members_index(), core_->applied_members()};
}

void ReplicaLoop::end_marking() {
  const base::MutexLock lock{mutex_};
  is_marking_ = false;
  marks_.clear();
}

void ReplicaLoop::consider_snapshot() {
  if (is_snapping_ || fetching_ || is_ended_ || core_->applied() == snapshot_index_) return;
  // As much as the last one has: then all of them together write no more than the log does.
  const std::uint64_t enough = std::max(options_.snapshot_every_bytes, snapshot_bytes_);
  if (log_bytes_ < enough) return;
  // A node that has begun anew has to catch up first, unless it never does.
  if (core_->must_apply_more() && log_bytes_ < 4 * enough) return;
  take_snapshot();
}

void ReplicaLoop::take_snapshot() {
  if (worker_.joinable()) worker_.join();
  is_snapping_ = true;
  cut_bytes_ = log_bytes_;
  {
    const base::MutexLock lock{mutex_};
    marks_.assign(1, mark_of(core_->applied()));
    is_marking_ = true;
  }
  try {
    worker_ = std::thread{[this] {
      storage::name_thread("semel-snapshot");
      storage::yield_to_others();
      std::uint64_t bytes = 0;
      const Result<SnapshotFront> taken =
          unless_memory_ends<SnapshotFront>([&] { return write_snapshot(bytes); });
      post_surely([this, taken, bytes] {
        if (!is_ended_) snapshot_done(taken, bytes);
      });
    }};
  } catch (const std::system_error&) {
    end_marking();
    is_snapping_ = false;  // later
    log_bytes_ = 0;
  }
}

Result<SnapshotFront> ReplicaLoop::write_snapshot(std::uint64_t& bytes) {
  std::unique_ptr<SnapshotWriter> writer;
  SnapshotFront front;
  Status written{semel::Done{}};
  const auto begin = [&](const ReplicaState& state) {
    front.cluster_id = options_.cluster_id;
    front.state = state;
    {
      const base::MutexLock lock{mutex_};
      is_marking_ = false;
      for (const SnapshotId& each : marks_) {
        if (each.index == state.applied) front.id = each;
      }
      marks_.clear();
    }
    SEMEL_ASSERT(front.id.index == state.applied);
    auto made = SnapshotWriter::create(disk_, options_.directory, front);
    if (made.ok()) {
      writer = *std::move(made);
    } else {
      written = made.error();
    }
  };
  const Status read = state_->snapshot(begin, [&](const Mutation& mutation) {
    if (written) written = writer->add(mutation);
  });
  end_marking();
  SEMEL_CHECK(read);
  SEMEL_CHECK(written);
  SEMEL_TRY(path, writer->finish());
  bytes = writer->bytes();
  SEMEL_TRY(names, find_snapshots(options_.directory));
  for (const std::string& other : names.others) {
    // The file of a snapshot that is being fetched is newer, and has another name.
    if (other < snapshot_name(front.id))
      SEMEL_CHECK(disk_.remove(options_.directory + "/" + other));
  }
  return front;
}

void ReplicaLoop::snapshot_done(const Result<SnapshotFront>& taken, std::uint64_t bytes) {
  is_snapping_ = false;
  end_marking();  // also where memory ended before the snapshot did
  if (after_snapshot_) std::exchange(after_snapshot_, nullptr)();
  if (!taken.ok()) {
    report(ReplicaEvent::What::snapshot_failed,
           "a snapshot could not be written: " + taken.error().message());
    log_bytes_ = log_bytes_ / 2;  // it is tried again
    return;
  }
  const SnapshotId& id = taken->id;
  snapshot_bytes_ = bytes;
  snapshot_index_ = id.index;
  SEMEL_ASSERT(log_bytes_ >= cut_bytes_);
  log_bytes_ -= cut_bytes_;  // at the least: some more may be in it
  std::size_t trailing = 0;
  for (std::uint64_t kept = 0; id.index > trailing; ++trailing) {
    const RaftEntry* const entry = core_->entry(id.index - trailing);
    if (entry == nullptr) break;
    kept += entry->data->size();
    if (kept > options_.trailing_bytes) break;
  }
  core_->snapshot_taken(now(), id, trailing);
  if (core_->first() > 1) writer_->forget(core_->first() - 1);
  report(ReplicaEvent::What::snapshot,
         "snapshot of entry " + std::to_string(id.index) + ", " + std::to_string(bytes) + " bytes");
  show();
}

std::optional<std::string> ReplicaLoop::snapshot_path(LogIndex index, Term term) {
  const std::string path = options_.directory + "/" + snapshot_name({index, term, 0, {}});
  return access(path.c_str(), R_OK) == 0 ? std::optional{path} : std::nullopt;
}

// --- from another node -------------------------------------------------------------------

void ReplicaLoop::fetch_snapshot(const RaftMessage& message) {
  const SnapshotId id = std::get<SnapshotOffer>(message.what).snapshot;
  const bool is_older = message.term < core_->term() || id.index <= core_->commit();
  if (is_older) return core_->receive(now(), message);  // it answers what it has
  if (fetching_ && fetching_->index == id.index && fetching_->term == id.term) return;
  fetching_ = id;
  const std::string path = options_.directory + "/" + snapshot_name(id) + ".part";
  report(ReplicaEvent::What::snapshot, "node " + std::to_string(message.from) +
                                           " sends the snapshot of entry " +
                                           std::to_string(id.index));
  transport_->fetch(message.from, id.index, id.term, path,
                    [this, id, path](const std::string& error) {
                      if (error.empty()) return check_fetched(id, path);
                      report(ReplicaEvent::What::snapshot_failed,
                             "the snapshot of entry " + std::to_string(id.index) + ": " + error);
                      fetching_.reset();  // the leader offers it again, and the rest is fetched
                    });
}

/// All of it is read once: a file that only looks right must not take the place of the state.
void ReplicaLoop::check_fetched(const SnapshotId& id, const std::string& path) {
  if (is_snapping_) {  // the loop does not wait for its worker
    after_snapshot_ = [this, id, path] { check_fetched(id, path); };
    return;
  }
  if (worker_.joinable()) worker_.join();
  try {
    worker_ = std::thread{[this, id, path] {
      storage::name_thread("semel-snapshot");
      storage::yield_to_others();
      const Result<semel::Done> checked =
          unless_memory_ends<semel::Done>([&] { return take_over(id, path); });
      post_surely([this, checked] {
        if (!is_ended_) fetched(checked);
      });
    }};
  } catch (const std::system_error&) {
    fetching_.reset();  // the leader offers it again
  }
}

Status ReplicaLoop::take_over(const SnapshotId& id, const std::string& path) {
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

void ReplicaLoop::fetched(const Status& checked) {
  fetching_.reset();
  if (!checked) {
    return report(ReplicaEvent::What::snapshot_failed,
                  "a snapshot was not taken: " + checked.error().message());
  }
  {
    const base::MutexLock lock{mutex_};
    status_.needs_reopen = true;
  }
  stop_with("a snapshot has come: it takes the place of the state when the replica is opened");
}

}  // namespace semel::replication
