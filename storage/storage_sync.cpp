// The thread that syncs: one msync for all who wait, and one a while for those who do not.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "storage/archive/rocks_status.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

void Storage::Impl::run_syncer() {
  storage::Stopwatch since_interval;
  for (;;) {
    const std::uint32_t seen = sync_wanted_.seen();
    const bool last = stop_.load(std::memory_order_acquire);  // mo: acquire, with the signal
    // mo: acquire [storage.failed]: whoever has failed may hold what the callbacks want.
    if (failed_.load(std::memory_order_acquire) && !std::exchange(told_failure_, true)) {
      answer_waiting();
    }
    // mo: seq_cst [storage.wanted]
    const bool wanted =
        wanted_.load(std::memory_order_seq_cst) > synced_.load(std::memory_order_seq_cst) ||
        joins_.wants_sync();
    const Millis left = options_.sync_every - since_interval.passed();
    const bool of_interval = last || left <= Millis{0};
    if (wanted || of_interval) {
      if (of_interval) since_interval.restart();
      if (wanted) wanted_rounds_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure
      if (!sync_round(of_interval) || last) return;
    } else {
      sync_wanted_.wait(seen, left);
    }
  }
}

/// False: the disk has failed.
bool Storage::Impl::sync_round(bool of_interval) {
  const storage::WorkMark::Scope at_work{sync_round_};
  const bool joined = joins_.begin_sync();  // before the target: what follows a join is in the log
  // mo: acquire [storage.failed]: RocksDB may abort the process that syncs a log after an error.
  if (joined && !failed_.load(std::memory_order_acquire)) {
    if (const rocksdb::Status status = archive_->database().SyncWAL(); !status.ok()) {
      fail(storage::error_of(status, options_.directory + "/rocksdb"));
      return false;
    }
  }
  // A place that is taken and not written yet ends what this round may promise: whoever writes it
  // later must not find it counted as synced.
  // mo: relaxed: only this thread sets it.
  const storage::Place before = synced_.load(std::memory_order_relaxed);
  const storage::Place tail = log_->tail();
  storage::Place target = log_->written(before, tail);
  // mo: acquire, with the signal: at the end, and after a failure, a place may stay unwritten
  while (target == before && tail != before && !stop_.load(std::memory_order_acquire) &&
         !failed_.load(std::memory_order_acquire)) {  // mo: acquire [storage.failed]
    std::this_thread::yield();                        // whoever took the first place shall go on
    target = log_->written(before, tail);
  }
  const bool appended = target != before;
  if (appended) {
    target_.store(target, std::memory_order_release);  // mo: release [storage.round]: first
    round_.fetch_add(1, std::memory_order_release);    // mo: release [storage.round]
    if (Status status = log_->sync(target); !status) {
      fail(status.error());
      return false;
    }
  }
  if (joined) joins_.end_sync();
  if (joined || appended) answer(target);
  write_mark();
  if (!of_interval || !std::exchange(mark_unsynced_, false)) return true;
  if (Status status = mark_->sync(); !status) {
    fail(status.error());
    return false;
  }
  return true;
}

void Storage::Impl::answer(storage::Place synced) {
  // mo: seq_cst [storage.synced] [storage.wanted]
  synced_.store(synced, std::memory_order_seq_cst);
  {
    const std::lock_guard lock{mutex_};
    ++syncs_;
  }
  // mo: relaxed: only this thread sets it.
  answer_waiting(bit_of_round(round_.load(std::memory_order_relaxed)));
}

/// Everybody whose round, or join, has ended.
void Storage::Impl::answer_waiting(std::uint32_t rounds) {
  rounds_.raise(rounds);
  std::vector<Waiting> done;
  std::string failure;
  storage::Place left = 0;
  {
    const std::lock_guard lock{mutex_};
    const auto first = std::partition(
        waiting_.begin(), waiting_.end(),
        [&](const Waiting& waiting) { return !is_settled(waiting.ticket, waiting.level); });
    std::move(first, waiting_.end(), std::back_inserter(done));
    waiting_.erase(first, waiting_.end());
    failure = failure_;
    for (const Waiting& waiting : waiting_) {
      if (waiting.level == Durability::synced) left = std::max(left, waiting.ticket);
    }
  }
  want_joined(left);
  for (Waiting& waiting : done) {
    if (failure.empty()) {
      waiting.then(Done{});
    } else {
      waiting.then(Error{ErrorCode::outcome_unknown, failure});
    }
  }
}

void Storage::Impl::write_mark() noexcept {
  // As long as segments of an earlier process are there, its mark says what they must hold.
  if (old_left_.load(std::memory_order_acquire)) return;  // mo: acquire: see drain_old()
  storage::MarkContent content = mark_content_;
  content.storage_id = storage_id_;
  content.format = storage::format_version;
  content.segment_bytes = log_->segment_bytes();
  content.begin = log_begin_;
  // Before the tail: what is whole is at most that.
  content.whole = log_->whole();
  content.tail = log_->used();
  content.synced = synced_.load(std::memory_order_relaxed);  // mo: relaxed: of this thread
  // mo: acquire: what was drained is in the files
  content.drained = drained_.load(std::memory_order_acquire);
  content.rocks_sequence =
      rocks_sequence_.load(std::memory_order_acquire);  // mo: acquire: as above
  const Timestamp now = clock_.now();
  content.line_ms = static_cast<std::int64_t>(line_.to_line(now));
  content.engine_ms = now.time_since_epoch().count();
  content.unix_ms = clock_.unix_ms();
  std::memset(content.boot_id, 0, sizeof content.boot_id);
  boot_id_.copy(content.boot_id, sizeof content.boot_id - 1);
  // Nothing but the time has changed: a storage that is not used lets the disk sleep.
  constexpr std::int64_t time_at_least_every_ms = 60'000;
  // A wall clock that was set must not count as time that passed after the next boot.
  const bool is_stepped = std::abs((content.unix_ms - content.line_ms) -
                                   (mark_content_.unix_ms - mark_content_.line_ms)) > 1'000;
  const bool is_news =
      content.begin != mark_content_.begin || content.tail != mark_content_.tail ||
      content.whole != mark_content_.whole || content.synced != mark_content_.synced ||
      content.drained != mark_content_.drained ||
      content.rocks_sequence != mark_content_.rocks_sequence ||
      content.line_ms - mark_content_.line_ms >= time_at_least_every_ms || is_stepped;
  if (!is_news) return;
  mark_content_ = content;
  mark_->write(mark_content_);
  mark_unsynced_ = true;
}

void Storage::Impl::fail(const Error& error) {
  set_failed(error.detail);
  answer_waiting();
}

void Storage::Impl::set_failed(const std::string& why) {
  // After a failed sync nobody knows what the disk holds, and asking again would be told that all
  // is well. Nothing is acknowledged any more until the storage is opened anew.
  {
    const std::lock_guard lock{mutex_};
    if (failure_.empty()) failure_ = why;
    failed_.store(true, std::memory_order_release);  // mo: release [storage.failed]
  }
  // Who waits for room in the log would wait for ever; what it brings is not acknowledged anyway.
  log_->stop();
  sync_wanted_.raise();
  rounds_.raise();
}

}  // namespace semel
