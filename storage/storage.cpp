// The public face of a storage: each call that could write is refused in a forked child, and goes
// to the part that does it.
#include <algorithm>

#include "storage/storage_impl.hpp"

namespace semel {

Storage::Storage(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {
  impl_->set_journal(*this);
}
Storage::~Storage() {
  // A forked child must not close, unlock or write what its parent owns: it leaks the pointer.
  if (impl_ != nullptr && impl_->is_forked()) static_cast<void>(impl_.release());
}

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions& options, const Clock& clock) {
  return Impl::open(options, clock, {});
}

Version Storage::first_version() const noexcept {
  return impl_->first_version_;
}
Result<RecoveryReport> Storage::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  return impl_->recover(engine, progress);
}
Ticket Storage::append(std::span<const Mutation> group) {
  if (impl_->is_forked()) return 0;
  return impl_->append(group);
}
void Storage::pace() {
  if (impl_->is_forked()) return;
  impl_->pace();
}
Status Storage::wait(Ticket ticket, Durability level) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->wait(ticket, level);
}
void Storage::when(Ticket ticket, Durability level, std::function<void(Status)> then) {
  if (impl_->is_forked()) return then(Error{ErrorCode::forked, {}});
  impl_->when(ticket, level, std::move(then));
}
Ticket Storage::newest() const {
  return impl_->newest();
}
bool Storage::defer(std::function<void()>& then) {
  return impl_->defer(then);
}
bool Storage::accepts_writes() const noexcept {
  if (impl_->is_forked()) return false;
  return impl_->accepts_writes();
}
bool Storage::accepts_frees() const noexcept {
  if (impl_->is_forked()) return false;
  return impl_->accepts_frees();
}
std::size_t Storage::group_bytes_max() const noexcept {
  return impl_->log_->group_bytes_max();
}
bool Storage::may_spill() const noexcept {
  return impl_->is_recovered();
}
void Storage::spilled(Ticket cut, Ticket kept, const ColdMark& cold) {
  if (impl_->is_forked()) return;
  impl_->spilled(cut, kept, cold);
}
void Storage::engine_ends() noexcept {
  if (impl_->is_forked()) return;
  impl_->engine_ends();
}
Status Storage::drain() {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->drain();
}
Status Storage::drop_ended() {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->drop_ended();
}
Status Storage::rewrite(Engine& engine) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->rewrite(engine);
}
Result<BackupReport> Storage::backup(const std::string& directory, const BackupOptions& options) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->backup(directory, options);
}
Result<BackupReport> Storage::backup(const std::string& directory, ColdStore& cold,
                                     const BackupOptions& options) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->backup(directory, cold, options);
}
StorageStats Storage::stats() const {
  return impl_->stats();
}
Millis Storage::busy_for() const noexcept {
  return std::max(impl_->sync_round_.busy_for(), impl_->drain_round_.busy_for());
}

Storage::Impl::~Impl() {
  stop_.store(true, std::memory_order_release);  // mo: release [storage.stop]
  if (log_ != nullptr) log_->stop();
  sync_signal_.raise();
  drain_signal_.raise();
  if (drainer_.joinable()) drainer_.join();
  const bool began = syncer_.joinable();
  if (began) syncer_.join();
  if (rewriter_.joinable()) rewriter_.join();
  // The last round may have ended before the last old segment was drained. While one is left, the
  // checkpoint belongs to the earlier process, so the durable clock of this one is saved in the
  // description.
  // mo: acquire [storage.failed]
  if (began && !failed_.load(std::memory_order_acquire)) {
    if (old_left_.load(std::memory_order_acquire)) {  // mo: acquire [storage.old_left]
      save_clock();
    } else {
      checkpoint_content_.line_ms = 0;        // forces a new checkpoint
      static_cast<void>(write_checkpoint());  // if it fails, the one before counts
      try {
        static_cast<void>(checkpoint_->sync());  // the same for the checkpoint
      } catch (...) {
      }
    }
  }
  if (log_ != nullptr) log_->remove_unused();
}

/// If it fails, the clock of the start counts.
void Storage::Impl::save_clock() noexcept {
  // mo: acquire [storage.recovered]: see record_life()
  if (!recovered_.load(std::memory_order_acquire)) return;
  try {
    storage::Description is = archive_->description();
    is.anchor = anchor_now();
    static_cast<void>(archive_->describe(is));
  } catch (...) {
  }
}

StorageStats Storage::Impl::stats() const {
  StorageStats stats;
  const storage::LogOffset tail = log_->tail();
  stats.bytes = tail - log_begin_;
  // mo: relaxed: a recent figure.
  const storage::LogOffset synced = synced_.load(std::memory_order_relaxed);
  stats.bytes_unsynced = tail > synced ? tail - synced : 0;
  stats.bytes_log = log_->file_bytes();
  stats.accepting = accepts_writes();
  // mo: relaxed: a recent figure
  stats.failed = failed_.load(std::memory_order_relaxed) || archive_->is_stuck();
  {
    const base::MutexLock lock{mutex_};
    if (!drain_status_) stats.trouble = drain_status_.error().detail;
    if (!sync_status_) stats.trouble = sync_status_.error().detail;
    stats.syncs = syncs_;
    stats.mutations_drained = mutations_drained_;
    stats.mutations_ended = mutations_ended_;
    stats.mutations_superseded = mutations_superseded_;
    stats.rewrites = rewrites_;
  }
  // mo: relaxed: statistics, both
  stats.starved = starved_.load(std::memory_order_relaxed);
  stats.callbacks_threw = callbacks_threw_.load(std::memory_order_relaxed);
  if (!stats.accepting && stats.trouble.empty()) stats.trouble = "the log is full";
  stats.bytes_files = file_bytes();
  stats.database = archive_->stats();
  return stats;
}

}  // namespace semel
