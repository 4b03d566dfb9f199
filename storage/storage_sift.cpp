// What need not be drained: mutations that a later one has replaced, and what has ended.
//
// 1. Ask the engine for each mutation of a batch. Its table names a newer record only if the
//    mutation of that record is in the log (Engine::superseded).
// 2. Read the tail of the log: the newer mutations are before it.
// 3. Wait until the log is synced up to there.
// 4. Only then write files and release the segments.
//
// A backup copies the files without the log, so nothing is dropped while one is made (KeepsAll).
//
// A crash at any step leaves either the older mutation in its segment or the newer one synced in
// the log. The newer one does not end before the older one could be forgotten, so nothing older
// than both can come back.
#include <array>

#include "storage/storage_impl.hpp"

namespace semel {

/// Joined commits are visible in the table before RocksDB has them, so their databases drop
/// nothing.
bool Storage::Impl::may_drop() const noexcept {
  // mo: relaxed: only a wish; each is checked again, or is final
  return drops_.load(std::memory_order_relaxed) && !stop_.load(std::memory_order_relaxed) &&
         !failed_.load(std::memory_order_relaxed) && !lost_one_.load(std::memory_order_relaxed) &&
         !rewrite_ends_.load(std::memory_order_relaxed);  // mo: relaxed: as above
}

std::uint32_t Storage::Impl::superseded(std::span<const Candidate> candidates) {
  if (!may_drop() || !engine_mutex_.try_lock_shared()) return 0;
  const base::SharedLock engine{engine_mutex_, std::adopt_lock};
  std::array<HeldMutation, Engine::superseded_max> asked;
  std::array<std::uint8_t, Engine::superseded_max> index{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const storage::MutationExtent& extent = candidates[i].extent;
    const bool is_record =
        extent.type == Mutation::Type::put || extent.type == Mutation::Type::erase;
    if (!is_record || extent.kind == Kind::name_space || extent.db >= limits::db_count) continue;
    index[count] = static_cast<std::uint8_t>(i);
    asked[count++] = {extent.db, extent.key, extent.version,
                      durable_clock_.from_durable_ms(extent.keep_until_ms)};
  }
  std::uint32_t dropped = 0;
  if (engine_ != nullptr && count != 0) {
    const std::uint32_t found = engine_->superseded({asked.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      if ((found >> i & 1) != 0) dropped |= std::uint32_t{1} << index[i];
    }
    // A record that somebody has restored since is in the table, and not in the log.
    if (engine_->restores() != restores_) dropped = 0;
  }
  // mo: acquire [storage.lost]
  return lost_one_.load(std::memory_order_acquire) ? 0 : dropped;
}

/// Sorts the candidates into those that go to files and those that need not be kept.
void Storage::Impl::sift(DrainBatch& batch) {
  if (batch.candidates.empty()) return;
  const std::uint64_t now_ms = durable_now();
  const std::uint32_t dropped = batch.drops ? superseded(batch.candidates) : 0;
  std::string wide;
  for (std::size_t i = 0; i < batch.candidates.size(); ++i) {
    const Candidate& candidate = batch.candidates[i];
    if ((dropped >> i & 1) != 0) {
      ++batch.superseded;
      continue;
    }
    ++batch.mutations;
    Bytes bytes = candidate.bytes;
    if (candidate.base != nullptr) {  // files have the full form alone
      wide.clear();
      if (!storage::widen(bytes, *candidate.base, wide)) batch.damaged = true;
      bytes = wide;
    }
    batch.blobs.add(storage::span_of(candidate.extent.keep_until_ms, now_ms, options_.span),
                    candidate.offset, bytes);
  }
  batch.candidates.clear();
}

/// Returns when the mutations because of which others were dropped are synced. Errors: those of
/// syncing; closing.
Status Storage::Impl::sync_successors() {
  // They are sealed, so they lie in segments that are there. A record behind those may wait for a
  // segment that this thread has yet to make or to release.
  const storage::LogOffset to = std::min(log_->tail(), log_->room());
  request_sync(to);
  for (;;) {
    const std::uint32_t seen = waiters_signal_.seen();
    // mo: acquire [storage.failed]
    if (failed_.load(std::memory_order_acquire)) return unknown();
    // mo: acquire [storage.synced]
    if (synced_.load(std::memory_order_acquire) >= to) return Done{};
    // mo: acquire [storage.stop]: the syncing thread may have ended
    if (stop_.load(std::memory_order_acquire)) {
      return Error{ErrorCode::closing, options_.directory};
    }
    SEMEL_CHECK(prepare_segments());
    waiters_signal_.wait(seen, Millis{5});
  }
}

// --- what has ended ------------------------------------------------------------------------------

std::uint64_t Storage::Impl::ended_now() const noexcept {
  const std::uint64_t now_ms = durable_now();
  // mo: acquire [storage.recovered]
  return recovered_.load(std::memory_order_acquire) ? now_ms : std::min(now_ms, ended_before_ms_);
}

/// Before what has ended is dropped: the next process must know that this one has lived so long. A
/// hold of a remote owner that had not ended by the last time on disk gets its lease again, unless
/// its release is still there.
Status Storage::Impl::record_time() {
  // Until then nothing is dropped that had not ended by the last time on disk.
  // mo: acquire [storage.recovered]
  if (!recovered_.load(std::memory_order_acquire)) return Done{};
  storage::Description next = archive_->description();
  next.anchor = anchor_now();
  return archive_->describe(next);
}

Status Storage::Impl::forget_ended() {
  // Recovery reads what ended while no process ran.
  if (!recovered_.load(std::memory_order_acquire))
    return Done{};  // mo: acquire [storage.recovered]
  const storage::SpanNumber running = storage::running_span(durable_now());
  constexpr std::uint64_t steps = 12;  // in a span: its files leave soon after its end
  if (running < running_span_ + static_cast<std::uint64_t>(options_.span.count()) / steps) {
    return Done{};
  }
  const base::MutexLock lock{archive_mutex_};
  // An idle disk may sleep: nothing is written unless a span has ended.
  SEMEL_TRY(has_ended, archive_->has_ended(running));
  SEMEL_CHECK(archive_->guarded([&]() -> Status {
    SEMEL_TRY(joined, joined_files().has_ended(running));
    has_ended = has_ended || joined;
    return Done{};
  }));
  if (has_ended) {
    SEMEL_CHECK(record_time());
    SEMEL_CHECK(archive_->forget(running));
    SEMEL_CHECK(archive_->guarded([&] { return joined_files().forget(running); }));
  }
  running_span_ = running;
  return Done{};
}

}  // namespace semel
