// The public face of a storage: each call that could write is refused in a forked child, and goes
// to the part that does it.
#include <algorithm>
#include <functional>

#include "storage/recovery.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

Storage::Storage(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Storage::~Storage() {
  // A forked child must not close, unlock or write what its parent owns: it leaks the pointer.
  if (impl_ != nullptr && impl_->is_forked()) static_cast<void>(impl_.release());
}

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions& options, const Clock& clock) {
  return Impl::open(options, clock, {});
}

Version Storage::first_version() const noexcept {
  return impl_->context_.first_version;
}
Result<RecoveryReport> Storage::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  Impl& of = *impl_;
  storage::Recovery recovery{of.context_, of.log_,      of.files_, of.map_,
                             of.engine_,  of.requests_, *this,     of.checkpoints_.log_begin()};
  return recovery.run(engine, progress);
}
Ticket Storage::append(std::span<const Mutation> group) {
  if (impl_->is_forked()) return 0;
  return impl_->append(group);
}
bool Storage::keeps_trail(const Mutation& delta) const noexcept {
  return !impl_->is_forked() && impl_->keeps_trail(delta);
}
void Storage::pace() {
  if (impl_->is_forked()) return;
  impl_->pace();
}
Status Storage::wait(Ticket ticket, Durability level) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->waiters_.wait(ticket, level);
}
void Storage::when(Ticket ticket, Durability level, Function<void(Status)> then) {
  if (impl_->is_forked()) return then(Error{ErrorCode::forked, {}});
  impl_->waiters_.when(ticket, level, std::move(then));
}
Ticket Storage::newest() const {
  return impl_->log_.tail();
}
bool Storage::defer(Function<void()>& then) {
  return impl_->joined_.defer(then);
}
bool Storage::accepts_writes() const noexcept {
  if (impl_->is_forked()) return false;
  return !impl_->health_.has_failed() && impl_->log_.extent().accepts();
}
bool Storage::accepts_frees() const noexcept {
  if (impl_->is_forked()) return false;
  return !impl_->health_.has_failed() && impl_->log_.extent().accepts_frees();
}
std::size_t Storage::group_bytes_max() const noexcept {
  return impl_->log_.group_bytes_max();
}
bool Storage::may_spill() const noexcept {
  return impl_->files_.is_recovered();
}
void Storage::spilled(Ticket cut, Ticket kept, const ColdMark& cold) {
  if (impl_->is_forked()) return;
  impl_->spilled(cut, kept, cold);
}
void Storage::engine_ends() noexcept {
  if (impl_->is_forked()) return;
  impl_->engine_.detach();
}
Status Storage::drain() {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->requests_.drain();
}
Status Storage::drop_ended() {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->drop_ended();
}
Status Storage::rewrite(Engine& engine) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->rewriter_.rewrite(engine);
}
Result<BackupReport> Storage::backup(const std::string& directory, const BackupOptions& options) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->backups_.make(directory, options);
}
Result<BackupReport> Storage::backup(const std::string& directory, ColdStore& cold,
                                     const BackupOptions& options) {
  if (impl_->is_forked()) return Error{ErrorCode::forked, {}};
  return impl_->backups_.make(directory, cold, options);
}
StorageStats Storage::stats() const {
  return impl_->stats();
}
Millis Storage::busy_for() const noexcept {
  return std::max(impl_->syncer_.busy_for(), impl_->drainer_.busy_for());
}

}  // namespace semel
