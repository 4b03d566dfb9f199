// The part of the replicated log that the core keeps in memory, and its positions: the newest
// snapshot's, entries up to the newest, and how far they are committed and applied.
//
//   Invariants: 1 <= first <= snapshot.index + 1 <= last + 1. So no entry is missing behind the
//   snapshot; those before it are kept for members that were away for a short time.
//   applied <= committed <= last, unless a snapshot is being installed.
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

  [[nodiscard]] LogIndex commit() const noexcept { return committed_; }
  [[nodiscard]] LogIndex applied() const noexcept { return applied_; }
  /// A snapshot of another node is to take the place of all: until restart().
  [[nodiscard]] bool is_installing() const noexcept { return is_installing_; }

  // --- entries --------------------------------------------------------------------------------
  /// Once: what a start has found.
  void begin(SnapshotId snapshot, LogIndex first, const std::vector<RaftEntry>& entries) {
    SEMEL_ASSERT(entries_.empty() && snapshot_.index == 0 && applied_ == 0);
    snapshot_ = std::move(snapshot);
    applied_ = committed_ = snapshot_.index;
    first_ = first;
    entries_.assign(entries.begin(), entries.end());
    check_entries();
  }
  /// Entries from `first` on take the place of those that are there.
  void replace(LogIndex first, const std::vector<RaftEntry>& entries) {
    SEMEL_ASSERT(first >= first_ && first <= last() + 1);
    while (last() >= first) entries_.pop_back();
    entries_.insert(entries_.end(), entries.begin(), entries.end());
    check_entries();
  }
  /// A newer snapshot of entries that are here. Of those in it the last `trailing` are kept.
  void cut(const SnapshotId& snapshot, std::size_t trailing) {
    SEMEL_ASSERT(snapshot.index >= snapshot_.index);
    snapshot_ = snapshot;
    const LogIndex keep = snapshot.index - std::min<LogIndex>(trailing, snapshot.index);
    for (; first_ <= keep && !entries_.empty(); ++first_) entries_.pop_front();
    check_entries();
  }
  void begin_install() noexcept { is_installing_ = true; }
  /// A snapshot of another node takes the place of all.
  void restart(const SnapshotId& snapshot) {
    SEMEL_ASSERT(is_installing_);
    is_installing_ = false;
    snapshot_ = snapshot;
    applied_ = snapshot.index;
    committed_ = std::max(committed_, snapshot.index);
    persisted_ = 0;
    entries_.clear();
    first_ = snapshot.index + 1;
    check_entries();
  }

  // --- positions ------------------------------------------------------------------------------
  /// A smaller index than before changes nothing.
  void note_commit(LogIndex index) noexcept { committed_ = std::max(committed_, index); }
  /// The next entry is applied now.
  void note_applied() noexcept {
    SEMEL_ASSERT(applied_ < committed_);
    ++applied_;
  }
  /// All up to `index`, which has `term`, is on the disk. RaftSteps reports it to the library.
  void note_persisted(LogIndex index, Term term) noexcept {
    persisted_ = index;
    persisted_term_ = term;
  }
  [[nodiscard]] bool has_persisted() const noexcept { return persisted_ != 0; }
  /// For the library, once; 0: nothing. An entry that was replaced since is not on the disk.
  [[nodiscard]] LogIndex take_persisted() noexcept {
    const LogIndex index = std::exchange(persisted_, 0);
    const RaftEntry* const found = entry(index);
    return found == nullptr || found->term != persisted_term_ ? 0 : index;
  }
  /// Between two events.
  void check_invariants() const noexcept {
    check_entries();
    if (is_installing_) return;
    SEMEL_ASSERT(applied_ <= committed_);
    SEMEL_ASSERT(committed_ <= last());
  }

 private:
  void check_entries() const noexcept {
    SEMEL_ASSERT(first_ >= 1 && first_ <= snapshot_.index + 1);
    SEMEL_ASSERT(snapshot_.index <= last());
  }

  SnapshotId snapshot_{};
  LogIndex first_ = 1;
  std::deque<RaftEntry> entries_;  // from first_ on
  LogIndex applied_ = 0;
  LogIndex committed_ = 0;  // the largest that was seen
  LogIndex persisted_ = 0;  // reported, and not yet told to the library; 0: nothing
  Term persisted_term_ = 0;
  bool is_installing_ = false;
};

}  // namespace semel::replication
