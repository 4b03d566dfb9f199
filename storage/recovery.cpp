#include "storage/recovery.hpp"

#include <optional>

#include "semel/engine_host.hpp"
#include "storage/log/claim_namespaces.hpp"
#include "storage/start/opening.hpp"
#include "storage/storage_cold.hpp"

namespace semel::storage {

Result<RecoveryReport> Recovery::run(Engine& engine,
                                     const std::function<void(const RecoveryProgress&)>& progress) {
  SEMEL_CHECK(bind_cold(files_, context_, engine.host().cold_store()));
  base::MutexLock lock{files_.mutex};
  std::uint64_t total = files_.bytes();
  for (const OldSegment& segment : files_.old_segments()) total += segment.end - segment.begin;
  engine.host().expect_restores(total);
  Restoring restoring{context_,
                      files_.earlier(),
                      map_,
                      engine,
                      {files_.old_segments(), files_.archive().description().floor, total},
                      progress};
  if (Status read = restoring.read_all(files_.archive()); !read) restoring.fail(read.error());
  if (Status applied = restoring.restore_deltas(); !applied) restoring.fail(applied.error());
  if (restoring.needs_second_pass()) {
    restoring.begin_second_pass();
    if (Status read = restoring.read_all(files_.archive()); !read) restoring.fail(read.error());
  }
  if (Status restored = restoring.restore_holds(); !restored) restoring.fail(restored.error());
  lock.unlock();
  if (restoring.has_remote_holds()) {
    if (Status status = keep_remote_leases(engine); !status) restoring.fail(status.error());
  }
  Result<RecoveryReport> result = restoring.result();
  if (!result) return result;
  lock.lock();
  Description is = files_.archive().description();
  SEMEL_CHECK(check_namespaces(result->unknown_namespaces, is));
  record_life(context_, is, log_begin_);
  SEMEL_CHECK(files_.archive().describe(is));
  lock.unlock();
  live_.attach(engine, engine.host().journal() == &journal_ && !files_.has_joined());
  files_.set_recovered();
  requests_.signal().raise();
  SEMEL_CHECK(fold_memos(engine));
  return result;
}

/// Claims without the terms of their namespace: a caller that declares it anew, in another database
/// say, would be granted finished work again.
Status Recovery::check_namespaces(const std::map<std::string, std::uint64_t>& unknown,
                                  Description& is) const {
  is.knows_namespaces = is.knows_namespaces || unknown.empty();
  const StorageOptions& options = context_.options;
  if (unknown.empty() || !is.knows_namespaces || options.accept_unknown_namespaces) return Done{};
  return Error{ErrorCode::storage_damaged,
               options.directory + ": " + describe_unknown(unknown) +
                   "; to open it all the same, set accept_unknown_namespaces, and declare them as "
                   "they were before anything is claimed"};
}

/// Of a storage that an earlier release has written: a kill in between leaves claims that have been
/// folded and others that have not, and the next start goes on.
Status Recovery::fold_memos(Engine& engine) {
  {
    const base::MutexLock lock{files_.mutex};
    if (files_.archive().description().has_folded_memos) return Done{};
  }
  SEMEL_TRY(folded, semel::fold_memos(engine));
  if (engine.host().journal() != &journal_) return Done{};  // nothing was written down
  if (folded != 0) SEMEL_CHECK(engine.confirm(Durability::synced));
  const base::MutexLock lock{files_.mutex};
  return files_.describe([](Description& next) { next.has_folded_memos = true; });
}

/// The lease of a remote owner starts again, so its record now ends later than its span on disk. It
/// is written again: otherwise the span could end before the lease, and after another restart the
/// claim would be free. This runs after everything is restored, so that an older hold does not
/// replace a later completion. The new record is synced: by the time of this process the replaced
/// hold counts as ended, and after a power cut only synced records are left.
Status Recovery::keep_remote_leases(Engine& engine) {
  const std::string& directory = context_.options.directory;
  if (!log_.extent().has_begun()) {
    // A hold that was read may have been completed since, and then nothing has to be written.
    bool is_any_held = false;
    SEMEL_CHECK(engine.host().snapshot(
        [&](const Mutation& mutation) { is_any_held = is_any_held || is_remote_hold(mutation); }));
    if (!is_any_held) return Done{};
    // Until run() has returned nothing is dropped that has ended, so a wait costs no lease.
    const Millis at_most = context_.options.confirm_within;
    if (!requests_.await_begun(at_most)) {
      return Error{ErrorCode::storage_failed,
                   directory + ": leases of remote owners have to be written down, and for " +
                       std::to_string(at_most.count()) +
                       " ms there was no room: " + requests_.trouble()};
    }
  }
  std::optional<Ticket> newest;
  SEMEL_CHECK(engine.host().snapshot([&](const Mutation& mutation) {
    if (is_remote_hold(mutation)) newest = journal_.append({&mutation, 1});
  }));
  // A failed append has set the storage to failed, and the wait returns that error.
  const Status synced = newest ? journal_.wait(*newest, Durability::synced) : Done{};
  if (synced) return Done{};
  return Error{
      ErrorCode::storage_failed,
      directory + ": leases of remote owners are not written down: " + synced.error().detail};
}

}  // namespace semel::storage
