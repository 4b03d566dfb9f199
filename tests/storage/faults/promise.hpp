// What a storage has promised to those who worked on it, so what its next process must find.
#pragma once

#include <algorithm>

#include "tests/storage/faults/ledger.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {

class Promise {
 public:
  Ledger ledger;

  /// Of a new storage, for the keys of so many threads. `keeps_all`: for as_of().
  void begin(unsigned threads, bool keeps_all) {
    ledger = new_ledger(threads);
    for (auto& [key, history] : ledger) {
      if (keeps_all) history.keep_all();
    }
    closed();
    largest_epoch_ = 0;
  }
  void handed_out(Epoch epoch) noexcept { largest_epoch_ = std::max(largest_epoch_, epoch); }
  /// A process has worked and was closed.
  void closed() noexcept { horizon_ = synced_ = marked_ = Timestamp::max(); }
  /// A process has worked and ended at `cut`, or could write nothing from then on. What was
  /// acknowledged at `logged` by `interval` before that is on the disk, all the rest was written,
  /// and what was acknowledged at `memory` later was not.
  void ended(Timestamp cut, Millis interval, Durability level) noexcept {
    horizon_ = level == Durability::memory ? cut : Timestamp::max();
    cut_ = cut;
    interval_ = interval;
    synced_ = marked_ = cut - interval;
  }
  /// Of a copy of it, made beside a process that works, from `begun` to `unix_ms`.
  [[nodiscard]] Promise as_of(Timestamp begun, std::int64_t unix_ms) const {
    Promise made = *this;
    for (auto& [key, history] : made.ledger) history.as_of(begun, unix_ms);
    made.closed();
    return made;
  }
  /// All that was written has reached the disk.
  void settled() noexcept { synced_ = horizon_; }
  /// History::outlive_boot() of all.
  void outlive_boot() {
    for (auto& [key, history] : ledger) history.outlive_boot();
  }
  /// Power went, too.
  void lost_power() noexcept { horizon_ = synced_; }
  void note(const Found& found) noexcept {
    if (found.oldest_lost == Timestamp{} || cut_ - found.oldest_lost <= oldest_lost_) return;
    oldest_lost_ = cut_ - found.oldest_lost;
    interval_at_it_ = interval_;
  }

  /// What was acknowledged until then must be there.
  [[nodiscard]] Timestamp horizon() const noexcept { return horizon_; }
  [[nodiscard]] Epoch largest_epoch() const noexcept { return largest_epoch_; }
  /// What was acknowledged until then is known to its mark as synced, so nothing of it may be
  /// missing without a word.
  [[nodiscard]] Timestamp marked() const noexcept { return marked_; }
  /// Age of the oldest acknowledgement that a cut took, and what was promised then.
  [[nodiscard]] Millis oldest_lost() const noexcept { return oldest_lost_; }
  [[nodiscard]] Millis interval_at_it() const noexcept { return interval_at_it_; }

 private:
  Timestamp horizon_ = Timestamp::max();
  Timestamp synced_ = Timestamp::max();  // the horizon if power goes before the next one works
  Timestamp marked_ = Timestamp::max();
  Timestamp cut_{};
  Millis interval_{0};
  Millis oldest_lost_{0};
  Millis interval_at_it_{0};
  Epoch largest_epoch_ = 0;
};

}  // namespace semel::faults
