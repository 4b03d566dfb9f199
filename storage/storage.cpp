#include <algorithm>

#include "storage/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

Storage::Storage(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Storage::~Storage() = default;

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions& options, const Clock& clock) {
  auto impl = std::make_unique<Impl>(options, clock);
  SEMEL_TRY(opened, impl->open());
  static_cast<void>(opened);
  return std::unique_ptr<Storage>{new Storage{std::move(impl)}};
}

Version Storage::first_version() const noexcept {
  return impl_->first_version();
}
Result<RecoveryReport> Storage::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  return impl_->recover(engine, progress);
}
Ticket Storage::append(std::span<const Mutation> group) {
  return impl_->append(group);
}
Status Storage::wait(Ticket ticket, Durability level) {
  return impl_->wait(ticket, level);
}
void Storage::when(Ticket ticket, Durability level, std::function<void(Status)> then) {
  impl_->when(ticket, level, std::move(then));
}
Ticket Storage::newest() const {
  return impl_->newest();
}
bool Storage::accepts_writes() const noexcept {
  return impl_->accepts_writes();
}
std::size_t Storage::group_bytes_max() const noexcept {
  return impl_->group_bytes_max();
}
void Storage::engine_ends() noexcept {
  impl_->engine_ends();
}
Status Storage::drain() {
  return impl_->drain();
}
Status Storage::drop_ended() {
  return impl_->drop_ended();
}
Status Storage::rewrite(Engine& engine) {
  return impl_->rewrite(engine);
}
Status Storage::backup(const std::string& directory) {
  return impl_->backup(directory);
}
StorageStats Storage::stats() const {
  return impl_->stats();
}

Storage::Impl::~Impl() {
  stop_.store(true, std::memory_order_release);  // mo: release, with the signals
  if (log_ != nullptr) log_->stop();
  sync_wanted_.raise();
  crossed_.raise();
  if (drainer_.joinable()) drainer_.join();
  if (syncer_.joinable()) syncer_.join();
  if (rewriter_.joinable()) rewriter_.join();
  if (log_ != nullptr) log_->remove_unused();
}

Ticket Storage::Impl::append(std::span<const Mutation> group) {
  return log_->append(group, line_, clock_.now());
}

Status Storage::Impl::wait(Ticket ticket, Durability level) {
  if (level == Durability::memory) return Done{};
  if (level == Durability::quorum) return Error{ErrorCode::refused, "this storage has no replicas"};
  if (log_->is_crowded()) wait_for_room();
  // mo: acquire [storage.failed]
  if (failed_.load(std::memory_order_acquire) || ticket == 0) return unknown();
  return level == Durability::logged ? Done{} : wait_for_sync(ticket);
}

Error Storage::Impl::unknown() const {
  const std::lock_guard lock{mutex_};
  return {ErrorCode::outcome_unknown, failure_};
}

/// Callers that write faster than the disk wait here, where they hold nothing, and not to be
/// refused later. If draining is in trouble that would not help.
void Storage::Impl::wait_for_room() {
  const storage::Stopwatch time;
  while (log_->is_crowded() && time.passed() < options_.confirm_within) {
    const std::uint32_t seen = rounds_.seen();
    {
      const std::lock_guard lock{mutex_};
      if (!trouble_.empty() || !failure_.empty()) return;
    }
    rounds_.wait(seen, Millis{20});
  }
}

Status Storage::Impl::wait_for_sync(Ticket ticket) {
  // mo: acquire [storage.synced], here and below
  if (synced_.load(std::memory_order_acquire) >= ticket) return Done{};
  const storage::Stopwatch time;
  waiters_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a figure for gather()
  want(ticket);
  Status status = Done{};
  for (;;) {
    const std::uint32_t seen = rounds_.seen();
    if (synced_.load(std::memory_order_acquire) >= ticket) break;  // mo: as above
    // mo: acquire [storage.failed]
    if (failed_.load(std::memory_order_acquire)) {
      status = unknown();
      break;
    }
    const Millis left = options_.confirm_within - time.passed();
    if (left <= Millis{0}) {
      status = Error{ErrorCode::outcome_unknown,
                     "the disk took longer than confirm_within = " +
                         std::to_string(options_.confirm_within.count()) + " ms"};
      break;
    }
    rounds_.wait(seen, left);
  }
  waiters_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed: as above
  return status;
}

void Storage::Impl::want(Ticket ticket) {
  // mo: seq_cst [storage.wanted], here and below: our wish is seen, or the round is.
  storage::Place before = wanted_.load(std::memory_order_seq_cst);
  while (before < ticket &&
         !wanted_.compare_exchange_weak(before, ticket, std::memory_order_seq_cst)) {
  }
  // Somebody whose wish is not answered yet has woken the syncing thread already.
  if (before <= synced_.load(std::memory_order_seq_cst)) sync_wanted_.raise();
}

void Storage::Impl::when(Ticket ticket, Durability level, std::function<void(Status)> then) {
  // mo: acquire [storage.synced] [storage.failed]
  if (level != Durability::synced || synced_.load(std::memory_order_acquire) >= ticket ||
      failed_.load(std::memory_order_acquire)) {
    return then(wait(ticket, level));
  }
  {
    const std::lock_guard lock{mutex_};
    // Whoever answers takes the mutex after the round, and fail() after the failure.
    // mo: acquire [storage.synced] [storage.failed]
    if (synced_.load(std::memory_order_acquire) < ticket &&
        !failed_.load(std::memory_order_acquire) && waiting_.size() < limits::callbacks_max) {
      waiting_.push_back({ticket, std::move(then)});
      then = nullptr;
    }
  }
  if (then != nullptr) return then(wait(ticket, level));
  want(ticket);
}

StorageStats Storage::Impl::stats() const {
  StorageStats stats;
  const storage::Place tail = log_->tail();
  stats.bytes = tail - log_begin_;
  // mo: relaxed: a recent figure.
  const storage::Place synced = synced_.load(std::memory_order_relaxed);
  stats.bytes_unsynced = tail > synced ? tail - synced : 0;
  stats.bytes_log = log_->room() - log_->oldest() * log_->segment_bytes();
  stats.accepting = accepts_writes();
  stats.failed = failed_.load(std::memory_order_relaxed);  // mo: relaxed: a recent figure
  {
    const std::lock_guard lock{mutex_};
    stats.trouble = failure_.empty() ? trouble_ : failure_;
    stats.syncs = syncs_;
    stats.mutations_drained = mutations_drained_;
    stats.mutations_ended = mutations_ended_;
    stats.rewrites = rewrites_;
  }
  if (!stats.accepting && stats.trouble.empty()) stats.trouble = "the log is full";
  stats.bytes_files = archive_->bytes();
  return stats;
}

}  // namespace semel
