// The part of the replicated log that the core keeps in memory: the newest snapshot's position, and
// entries up to the newest.
//
//   Invariant: 1 <= first <= snapshot.index + 1 <= last + 1. So no entry is missing behind the
//   snapshot; those before it are kept for members that were away for a short time.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "replication/core/message.hpp"

namespace semel::replication {

/// Belongs to one thread.
class MemoryLog {
 public:
  [[nodiscard]] LogIndex first() const noexcept { return first_; }
  [[nodiscard]] LogIndex last() const noexcept { return first_ + entries_.size() - 1; }
  /// Null: it is not here.
  [[nodiscard]] const RaftEntry* entry(LogIndex index) const noexcept {
    return index < first_ || index > last() ? nullptr : &entries_[index - first_];
  }
  /// Of an entry, or of the snapshot; 0: not known.
  [[nodiscard]] Term term_of(LogIndex index) const noexcept {
    if (const RaftEntry* const found = entry(index)) return found->term;
    return index != 0 && index == snapshot_.index ? snapshot_.term : 0;
  }
  /// Its index is 0: there is none.
  [[nodiscard]] const SnapshotId& snapshot() const noexcept { return snapshot_; }

  /// Once: what a start has found.
  void begin(SnapshotId snapshot, LogIndex first, const std::vector<RaftEntry>& entries) {
    SEMEL_ASSERT(entries_.empty() && snapshot_.index == 0);
    snapshot_ = std::move(snapshot);
    first_ = first;
    entries_.assign(entries.begin(), entries.end());
    check_invariants();
  }
  /// Entries from `first` on take the place of those that are there.
  void replace(LogIndex first, const std::vector<RaftEntry>& entries) {
    SEMEL_ASSERT(first >= first_ && first <= last() + 1);
    while (last() >= first) entries_.pop_back();
    entries_.insert(entries_.end(), entries.begin(), entries.end());
    check_invariants();
  }
  /// A newer snapshot of entries that are here. Of those in it the last `trailing` are kept.
  void cut(const SnapshotId& snapshot, std::size_t trailing) {
    SEMEL_ASSERT(snapshot.index >= snapshot_.index);
    snapshot_ = snapshot;
    const LogIndex keep = snapshot.index - std::min<LogIndex>(trailing, snapshot.index);
    for (; first_ <= keep && !entries_.empty(); ++first_) entries_.pop_front();
    check_invariants();
  }
  /// A snapshot of another node takes the place of all.
  void restart(const SnapshotId& snapshot) {
    snapshot_ = snapshot;
    entries_.clear();
    first_ = snapshot.index + 1;
    check_invariants();
  }
  void check_invariants() const noexcept {
    SEMEL_ASSERT(first_ >= 1 && first_ <= snapshot_.index + 1);
    SEMEL_ASSERT(snapshot_.index <= last());
  }

 private:
  SnapshotId snapshot_{};
  LogIndex first_ = 1;
  std::deque<RaftEntry> entries_;  // from first_ on
};

}  // namespace semel::replication
