#include "storage/sync/syncer.hpp"

#include <rocksdb/db.h>

#include <utility>

#include "base/assert.hpp"
#include "storage/archive/rocks_guard.hpp"
#include "storage/archive/rocks_status.hpp"

namespace semel::storage {

namespace {

/// A failed sync counts as one also where its text finds no memory: a second sync would report
/// success.
template <class Sync>
Status synced_by(Sync&& sync) noexcept {
  try {
    return sync();
  } catch (...) {
    return Error{ErrorCode::storage_failed, no_memory};
  }
}

}  // namespace

void Syncer::run() noexcept {
  name_thread("semel:sync");
  constexpr Millis try_again{50};  // without memory
  Signal& signal = progress_.signal();
  Stopwatch since_interval;
  for (;;) {
    const std::uint32_t seen = signal.seen();
    const bool last = health_.is_closing();
    // Callbacks run here, because the thread that failed may hold locks they need.
    if (health_.has_failed() && !std::exchange(failure_reported_, true)) waiters_.complete();
    const bool wanted = progress_.is_requested() || joined_.is_sync_requested();
    const Millis left = context_.options.sync_every - since_interval.passed();
    const bool of_interval = last || left <= Millis{0};
    if (wanted || of_interval) {
      if (of_interval) since_interval.restart();
      if (wanted) progress_.count_request();
      const Synced synced = sync_round(of_interval);
      if (synced == Synced::never || last) return;
      if (synced == Synced::later) signal.wait(signal.seen(), try_again);
    } else {
      signal.wait(seen, left);
    }
  }
}

Syncer::Synced Syncer::fail(const Error& error) noexcept {
  health_.fail(error);
  waiters_.complete();
  return Synced::never;
}

/// Syncs RocksDB's log. With assertions, as in Debian's RocksDB, SyncWAL() ends the process once a
/// write to its log has failed, no matter which thread wrote: a user of the database, or the thread
/// that removes ended commits. (A synced write of nothing would be refused instead; but where
/// memory has ended in a write before it, it would wait for ever.)
Syncer::Synced Syncer::sync_joined() noexcept {
  const Archive& archive = files_.archive();
  bool begun = false;
  const Status status = synced_by([&] {
    return archive.guarded([&] {
      begun = true;
      const rocksdb::Status done = archive.has_error()
                                       ? rocksdb::Status::IOError("a write has failed before")
                                       : files_.archive().database().SyncWAL();
      return done.ok() ? Status{Done{}} : error_of(done, context_.options.directory + "/rocksdb");
    });
  });
  if (status) return Synced::yes;
  if (!begun && !archive.is_broken()) {
    health_.count_starved();
    return Synced::later;
  }
  return fail(status.error());
}

/// Only up to the first reserved but unwritten offset: its record is written later and must not
/// count as synced.
LogOffset Syncer::next_target() const noexcept {
  const LogOffset before = progress_.synced();
  const LogOffset tail = log_.tail();
  LogOffset target = log_.written().written(before, tail);
  // At the end, and after a failure, a reserved offset may stay unwritten.
  while (target == before && tail != before && !health_.is_closing() && !health_.has_failed()) {
    std::this_thread::yield();  // let the thread that reserved the first offset run
    target = log_.written().written(before, tail);
  }
  SEMEL_ASSERT(before <= target && target <= tail);
  return target;
}

/// never: the disk has failed. later: there was no memory, and nothing was begun.
Syncer::Synced Syncer::sync_round(bool of_interval) noexcept {
  const WorkTimer::Scope at_work{at_work_};
  // Before the target is read: the followers of a joined commit are in the journal then.
  const bool joined = joined_.begin_sync();
  // RocksDB may abort a process that syncs its log after an error.
  if (joined && !health_.has_failed()) {
    if (const Synced synced = sync_joined(); synced != Synced::yes) return synced;
  }
  const LogOffset target = next_target();
  const bool appended = target != progress_.synced();
  if (appended) {
    progress_.begin_round(target);
    const Stopwatch time;
    if (const Status status = synced_by([&] { return log_.written().sync(target); }); !status) {
      return fail(status.error());
    }
    progress_.smooth_round(time.seconds());
  }
  if (joined) joined_.end_sync();
  if (joined || appended) waiters_.complete(progress_.publish(target));
  static_cast<void>(checkpoints_.write());  // if it fails, the next round tries again
  if (!of_interval) return Synced::yes;
  if (const Status status = synced_by([&] { return checkpoints_.sync(); }); !status) {
    return fail(status.error());
  }
  return Synced::yes;
}

}  // namespace semel::storage
