#include <algorithm>

#include "storage/log/stopwatch.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::Signal;

Storage::Storage(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Storage::~Storage() {
  // A child closes, unlocks and writes nothing of its parent's.
  if (impl_ != nullptr && impl_->is_forked()) static_cast<void>(impl_.release());
}

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
std::size_t Storage::group_bytes_max() const noexcept {
  return impl_->group_bytes_max();
}
void Storage::spilled(Ticket cut, Ticket kept) {
  if (impl_->is_forked()) return;
  impl_->spilled(cut, kept);
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
Status Storage::backup(const std::string& directory) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->backup(directory);
}
StorageStats Storage::stats() const {
  return impl_->stats();
}
Millis Storage::busy_for() const noexcept {
  return impl_->busy_for();
}

Storage::Impl::~Impl() {
  stop_.store(true, std::memory_order_release);  // mo: release, with the signals
  if (log_ != nullptr) log_->stop();
  sync_wanted_.raise();
  crossed_.raise();
  if (drainer_.joinable()) drainer_.join();
  const bool began = syncer_.joinable();
  if (began) syncer_.join();
  if (rewriter_.joinable()) rewriter_.join();
  // The last round may have come before the last old segment went. As long as there is one, the
  // mark speaks of the process before this one; where the time of this one ended must be known,
  // too. mo: acquire [storage.failed], and see drain_old()
  if (began && !failed_.load(std::memory_order_acquire)) {
    if (old_left_.load(std::memory_order_acquire)) {  // mo: as above
      storage::Description is = archive_->description();
      is.anchor = anchor_now();
      static_cast<void>(archive_->describe(is));  // if it fails, that of the start counts
    } else {
      mark_content_.line_ms = 0;  // what time it is, is news now
      write_mark();
      static_cast<void>(mark_->sync());  // the same for the mark
    }
  }
  if (log_ != nullptr) log_->remove_unused();
}

Ticket Storage::Impl::append(std::span<const Mutation> group) {
  for (const Mutation& mutation : group) {
    if (mutation.type == Mutation::Type::db_map) [[unlikely]]
      note_map(mutation);
  }
  if (joins_.any()) [[unlikely]]
    return append_beside_joins(group);
  return or_failed(log_->append(group, line_, clock_.now()));
}

/// A log that took nothing of a change that has been made already can take nothing any more.
Ticket Storage::Impl::or_failed(Ticket ticket) {
  // mo: acquire, with the signal: at the end it is stopped, and nobody waits
  if (ticket == 0 && !stop_.load(std::memory_order_acquire)) [[unlikely]] {
    set_failed("a change was larger than what the log had room for, and no room came within " +
               std::to_string(options_.confirm_within.count()) + " ms; open the storage again");
  }
  return ticket;
}

Status Storage::Impl::wait(Ticket ticket, Durability level) {
  if (level == Durability::memory) return Done{};
  if (level == Durability::quorum) return Error{ErrorCode::refused, "this storage has no replicas"};
  // Before the failure is looked at: a join that is not seen any more has failed before, if it has.
  const bool joins = joins_.any();
  if (storage::Join* const own = joins ? joins_.own() : nullptr; own != nullptr) {
    own->level = std::max(own->level, level);
    return Done{};  // the join waits, for all that was changed in it
  }
  // mo: acquire [storage.failed]
  if (failed_.load(std::memory_order_acquire) || ticket == 0) return unknown();
  if (level == Durability::logged && !joins) return Done{};
  return wait_until_settled(ticket, level);
}

/// Who only looks is not held up: it brings nothing.
void Storage::Impl::pace() {
  // A join waits when it ends, for all that was changed in it.
  if (log_->is_crowded() && !(joins_.any() && joins_.own() != nullptr)) wait_for_room();
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

Status Storage::Impl::wait_until_settled(Ticket ticket, Durability level) {
  if (is_settled(ticket, level)) {
    // mo: acquire [storage.failed]
    return failed_.load(std::memory_order_acquire) ? Status{unknown()} : Done{};
  }
  const bool syncs = level == Durability::synced;
  const storage::Stopwatch time;
  if (syncs) want(ticket);
  Status status = Done{};
  for (;;) {
    const std::uint32_t seen = rounds_.seen();
    const bool settled = is_settled(ticket, level);
    if (failed_.load(std::memory_order_acquire)) status = unknown();  // mo: [storage.failed]
    if (settled || !status) break;
    const Millis left = options_.confirm_within - time.passed();
    if (left <= Millis{0}) {
      status = Error{ErrorCode::outcome_unknown,
                     "the disk took longer than confirm_within = " +
                         std::to_string(options_.confirm_within.count()) + " ms"};
      break;
    }
    if (syncs) want_joined(ticket);
    rounds_.wait(seen, left, syncs && !joins_.any() ? rounds_for(ticket) : Signal::everybody);
  }
  return status;
}

/// The bits of the rounds that may be the one for this ticket. A third of 64 callers come while a
/// round is under way that is not theirs; to be woken by it they would pay as for their own.
std::uint32_t Storage::Impl::rounds_for(Ticket ticket) const noexcept {
  // mo: acquire [storage.round]: in this order. The target is that of this round or of the next;
  // of a later one only if one has ended meanwhile, and then nobody sleeps.
  const std::uint32_t round = round_.load(std::memory_order_acquire);
  const bool covered = ticket <= target_.load(std::memory_order_acquire);
  const std::uint32_t first = covered ? round : round + 1;
  return bit_of_round(first) | bit_of_round(first + 1);
}

bool Storage::Impl::is_settled(Ticket ticket, Durability level) const noexcept {
  if (level != Durability::logged && level != Durability::synced) return true;
  if (joins_.hold(ticket, level)) {
    // mo: acquire [storage.failed]
    return joins_.own() != nullptr || failed_.load(std::memory_order_acquire);
  }
  // mo: acquire [storage.synced] [storage.failed]
  return level == Durability::logged || synced_.load(std::memory_order_acquire) >= ticket ||
         failed_.load(std::memory_order_acquire);
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
  if (is_settled(ticket, level)) return then(wait(ticket, level));
  {
    const std::lock_guard lock{mutex_};
    // Whoever answers takes the mutex after the round, the join, or the failure.
    if (!is_settled(ticket, level) && waiting_.size() < limits::callbacks_max) {
      waiting_.push_back({ticket, level, std::move(then)});
      then = nullptr;
    }
  }
  if (then != nullptr) return then(wait(ticket, level));
  if (level == Durability::synced) {
    want(ticket);
    want_joined(ticket);
  }
}

StorageStats Storage::Impl::stats() const {
  StorageStats stats;
  const storage::Place tail = log_->tail();
  stats.bytes = tail - log_begin_;
  // mo: relaxed: a recent figure.
  const storage::Place synced = synced_.load(std::memory_order_relaxed);
  stats.bytes_unsynced = tail > synced ? tail - synced : 0;
  stats.bytes_log = log_->file_bytes();
  stats.accepting = accepts_writes();
  // mo: relaxed: a recent figure
  stats.failed = failed_.load(std::memory_order_relaxed) || archive_->is_stuck();
  {
    const std::lock_guard lock{mutex_};
    stats.trouble = failure_.empty() ? trouble_ : failure_;
    stats.syncs = syncs_;
    stats.mutations_drained = mutations_drained_;
    stats.mutations_ended = mutations_ended_;
    stats.rewrites = rewrites_;
  }
  if (!stats.accepting && stats.trouble.empty()) stats.trouble = "the log is full";
  stats.bytes_files = archive_->bytes() + joined_files().bytes();
  return stats;
}

}  // namespace semel
