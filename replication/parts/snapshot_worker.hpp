// The thread that writes a snapshot of the state, or checks one that has come from another node.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "base/mutex.hpp"
#include "replication/log/snapshot_file.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/state/state_machine.hpp"

namespace semel::replication {

struct SnapshotTaken {
  Result<SnapshotFront> front = Error{ErrorCode::memory_full, {}};
  std::uint64_t bytes = 0;
};
struct SnapshotChecked {
  Status status = Error{ErrorCode::memory_full, {}};
};

/// One work at a time. Belongs to one thread, but for its own.
class SnapshotWorker {
 public:
  using Outcome = std::variant<SnapshotTaken, SnapshotChecked>;

  /// `done`: called on the worker's thread at the end of each work; finish() is to follow. It must
  /// not throw. All must outlive this.
  SnapshotWorker(const ReplicaOptions& options, storage::Disk& disk, StateMachine& state,
                 std::function<void()> done)
      : options_(options), disk_(disk), state_(state), done_(std::move(done)) {}
  /// Waits for the end of the work.
  ~SnapshotWorker();
  SnapshotWorker(const SnapshotWorker&) = delete;
  SnapshotWorker& operator=(const SnapshotWorker&) = delete;

  /// From the begin of a work to finish().
  [[nodiscard]] bool is_busy() const noexcept { return is_busy_; }
  /// Writes a snapshot of the state. It is cut behind `newest`, which is applied now, or behind an
  /// entry that note() names before. False: there is no thread for it.
  [[nodiscard]] bool take(const SnapshotId& newest);
  /// Reads all of the file, and gives it its name: one that only looks right must not take the
  /// place of the state. False: as above.
  [[nodiscard]] bool check(const SnapshotId& id, const std::string& path);
  /// Before each entry that is applied: calls `id_of` for it if a snapshot may be cut behind it.
  template <class IdOf>
  void note(IdOf&& id_of) {
    const base::MutexLock lock{mutex_};
    if (is_marking_) marks_.push_back(id_of());
  }
  /// After `done`.
  [[nodiscard]] Outcome finish();

 private:
  template <class Work>
  [[nodiscard]] bool begin(Work&& work);
  void write(SnapshotTaken& taken);
  [[nodiscard]] Status write_state(SnapshotTaken& taken);
  [[nodiscard]] SnapshotId end_marking(LogIndex index);
  [[nodiscard]] Status read_and_name(const SnapshotId& id, const std::string& path);
  void check_invariants() const noexcept SEMEL_REQUIRES(mutex_);

  const ReplicaOptions& options_;
  storage::Disk& disk_;
  StateMachine& state_;
  const std::function<void()> done_;
  bool is_busy_ = false;
  Outcome outcome_;  // of the worker's thread until done_, then of finish()
  base::Mutex mutex_;
  bool is_marking_ SEMEL_GUARDED_BY(mutex_) = false;
  std::deque<SnapshotId> marks_ SEMEL_GUARDED_BY(mutex_);  // ascending
  std::thread thread_;
};

}  // namespace semel::replication
