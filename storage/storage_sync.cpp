// The syncing thread: one msync for all waiters, and one for each interval without waiters.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

namespace {

/// A failed sync counts as one also where its text finds no memory: a second sync would report
/// success.
template <class Sync>
Status synced_by(Sync&& sync) noexcept {
  try {
    return sync();
  } catch (...) {
    return Error{ErrorCode::storage_failed, storage::no_memory};
  }
}

}  // namespace

void Storage::Impl::run_syncer() noexcept {
  storage::name_thread("semel:sync");
  constexpr Millis try_again{50};  // without memory
  storage::Stopwatch since_interval;
  for (;;) {
    const std::uint32_t seen = sync_signal_.seen();
    const bool last = stop_.load(std::memory_order_acquire);  // mo: acquire [storage.stop]
    // mo: acquire [storage.failed]: callbacks run here, because the thread that failed may hold
    // locks they need.
    if (failed_.load(std::memory_order_acquire) && !std::exchange(failure_reported_, true)) {
      complete_waiters();
    }
    // mo: seq_cst [storage.wanted]
    const bool wanted =
        requested_.load(std::memory_order_seq_cst) > synced_.load(std::memory_order_seq_cst) ||
        joined_commits_.is_sync_requested();
    const Millis left = options_.sync_every - since_interval.passed();
    const bool of_interval = last || left <= Millis{0};
    if (wanted || of_interval) {
      if (of_interval) since_interval.restart();
      if (wanted)
        requested_rounds_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure
      const Synced synced = sync_round(of_interval);
      if (synced == Synced::never || last) return;
      if (synced == Synced::later) sync_signal_.wait(sync_signal_.seen(), try_again);
    } else {
      sync_signal_.wait(seen, left);
    }
  }
}

/// Syncs RocksDB's log. With assertions, as in Debian's RocksDB, SyncWAL() ends the process once a
/// write to its log has failed, whoever has written: the user of the database, or the thread that
/// lets ended commits go. (A synced write of nothing would be refused instead; but where memory has
/// ended in a write before it, it would wait for ever.)
Storage::Impl::Synced Storage::Impl::sync_joined() noexcept {
  bool begun = false;
  const Status status = synced_by([&] {
    return archive_->guarded([&] {
      begun = true;
      const rocksdb::Status done = archive_->has_error()
                                       ? rocksdb::Status::IOError("a write has failed before")
                                       : archive_->database().SyncWAL();
      return done.ok() ? Status{Done{}} : storage::error_of(done, options_.directory + "/rocksdb");
    });
  });
  if (status) return Synced::yes;
  if (!begun && !archive_->is_broken()) {
    count_starved();
    return Synced::later;
  }
  fail(status.error());
  return Synced::never;
}

/// never: the disk has failed. later: there was no memory, and nothing was begun.
Storage::Impl::Synced Storage::Impl::sync_round(bool of_interval) noexcept {
  const storage::WorkTimer::Scope at_work{sync_round_};
  // Before the target is read: the followers of a joined commit are in the log then.
  const bool joined = joined_commits_.begin_sync();
  // mo: acquire [storage.failed]: RocksDB may abort a process that syncs its log after an error.
  if (joined && !failed_.load(std::memory_order_acquire)) {
    if (const Synced synced = sync_joined(); synced != Synced::yes) return synced;
  }
  // Sync only up to the first reserved but unwritten offset: its record is written later and must
  // not count as synced.
  // mo: relaxed: only this thread sets it.
  const storage::LogOffset before = synced_.load(std::memory_order_relaxed);
  const storage::LogOffset tail = log_->tail();
  storage::LogOffset target = log_->written(before, tail);
  // mo: acquire [storage.stop]: at the end, and after a failure, a reserved offset may stay
  // unwritten
  while (target == before && tail != before && !stop_.load(std::memory_order_acquire) &&
         !failed_.load(std::memory_order_acquire)) {  // mo: acquire [storage.failed]
    std::this_thread::yield();  // let the thread that reserved the first offset run
    target = log_->written(before, tail);
  }
  const bool appended = target != before;
  if (appended) {
    target_.store(target, std::memory_order_release);  // mo: release [storage.round]: first
    round_.fetch_add(1, std::memory_order_release);    // mo: release [storage.round]
    const storage::Stopwatch time;
    if (const Status status = synced_by([&] { return log_->sync(target); }); !status) {
      fail(status.error());
      return Synced::never;
    }
    smooth_round(time.seconds());
  }
  if (joined) joined_commits_.end_sync();
  if (joined || appended) publish_synced(target);
  static_cast<void>(write_checkpoint());  // if it fails, the next round tries again
  if (!of_interval || !std::exchange(checkpoint_unsynced_, false)) return Synced::yes;
  if (const Status status = synced_by([&] { return checkpoint_->sync(); }); !status) {
    fail(status.error());
    return Synced::never;
  }
  return Synced::yes;
}

void Storage::Impl::smooth_round(double seconds) noexcept {
  // mo: relaxed: a figure, which only this thread sets
  const double before = round_seconds_.load(std::memory_order_relaxed);
  const double after = before == 0 ? seconds : (7 * before + seconds) / 8;
  round_seconds_.store(after, std::memory_order_relaxed);  // mo: relaxed: as above
}

void Storage::Impl::publish_synced(storage::LogOffset synced) noexcept {
  // mo: relaxed: only this thread sets it
  SEMEL_ASSERT(synced_.load(std::memory_order_relaxed) <= synced && synced <= log_->tail());
  // mo: seq_cst [storage.synced] [storage.wanted]
  synced_.store(synced, std::memory_order_seq_cst);
  {
    const base::MutexLock lock{mutex_};
    ++syncs_;
  }
  // mo: relaxed: only this thread sets it.
  complete_waiters(bit_of_round(round_.load(std::memory_order_relaxed)));
}

/// Wakes waiters of these rounds, and runs the callbacks of resolved ones.
void Storage::Impl::complete_waiters(std::uint32_t rounds) noexcept {
  waiters_signal_.raise(rounds);
  std::list<Waiter> done;
  bool failed = false;
  storage::LogOffset left = 0;
  {
    const base::MutexLock lock{mutex_};
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      const auto waiting = at++;
      if (is_resolved(waiting->ticket, waiting->level)) {
        done.splice(done.end(), waiters_, waiting);
      } else if (waiting->level == Durability::synced) {
        left = std::max(left, waiting->ticket);
      }
    }
    failed = !sync_status_;
  }
  request_joined_sync(left);
  for (Waiter& waiting : done) {
    try {
      waiting.then(failed ? Status{unknown()} : Done{});
    } catch (...) {
      // Its exception must not end the answers of others, nor this thread.
      callbacks_threw_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    }
  }
}

bool Storage::Impl::write_checkpoint() noexcept {
  // While segments of an earlier process are left, its checkpoint says what they must hold.
  if (old_left_.load(std::memory_order_acquire)) return true;  // mo: acquire [storage.old_left]
  // Until everything is recovered, its time says what had ended while that process ran. If it wrote
  // none, it left nothing.
  // mo: acquire [storage.recovered]
  if (last_checkpoint_.sequence != 0 && !recovered_.load(std::memory_order_acquire)) return true;
  storage::CheckpointContent content = checkpoint_content_;
  content.storage_id = storage_id_;
  content.format = storage::format_version;
  content.segment_bytes = log_->segment_bytes();
  content.begin = log_begin_;
  // Read before the tail, so that it is not behind it.
  content.whole = log_->whole();
  content.tail = log_->used();
  content.synced = synced_.load(std::memory_order_relaxed);  // mo: relaxed: of this thread
  // mo: acquire [storage.drained]: the files hold what was drained
  content.drained = drained_.load(std::memory_order_acquire);
  content.rocks_sequence =
      rocks_sequence_.load(std::memory_order_acquire);  // mo: acquire [storage.rocks_sequence]
  SEMEL_ASSERT(content.begin <= content.synced && content.synced <= log_->tail());
  SEMEL_ASSERT(content.whole <= log_->tail() && content.drained <= log_->tail());
  const storage::ClockReading at = storage::read_clocks(clock_);
  content.line_ms = line_ms(at);
  content.engine_ms = at.now.time_since_epoch().count();
  content.unix_ms = at.unix_ms;
  std::memset(content.boot_id, 0, sizeof content.boot_id);
  boot_id_.copy(content.boot_id, sizeof content.boot_id - 1);
  // If only the time has changed, write rarely: the disk of an idle storage may sleep.
  constexpr std::int64_t time_at_least_every_ms = 60'000;
  // A step of the wall clock is recorded at once: after the next boot it must not count as time
  // that passed.
  const bool is_stepped =
      std::abs((content.unix_ms - content.line_ms) -
               (checkpoint_content_.unix_ms - checkpoint_content_.line_ms)) > 1'000;
  const bool is_news =
      content.begin != checkpoint_content_.begin || content.tail != checkpoint_content_.tail ||
      content.whole != checkpoint_content_.whole || content.synced != checkpoint_content_.synced ||
      content.drained != checkpoint_content_.drained ||
      content.rocks_sequence != checkpoint_content_.rocks_sequence ||
      content.line_ms - checkpoint_content_.line_ms >= time_at_least_every_ms || is_stepped;
  if (!is_news) return true;
  if (!checkpoint_->write(content)) return false;
  checkpoint_content_ = content;
  checkpoint_unsynced_ = true;
  return true;
}

void Storage::Impl::fail(const Error& error) noexcept {
  set_failed(error);
  complete_waiters();
}

void Storage::Impl::set_failed(const Error& error) noexcept {
  // After a failed sync the contents of the disk are unknown, and a second sync would report
  // success. Nothing is acknowledged until the storage is opened again.
  {
    const base::MutexLock lock{mutex_};
    if (sync_status_) {
      try {
        sync_status_ = error;
      } catch (...) {
        sync_status_ = Error{error.code, storage::no_memory};
      }
    }
    failed_.store(true, std::memory_order_release);  // mo: release [storage.failed]
  }
  // Release writers that wait for a segment; their changes are not acknowledged anyway.
  log_->stop();
  sync_signal_.raise();
  waiters_signal_.raise();
}

}  // namespace semel
