// What a storage does about its cold store: binds it, and copies it with a backup.
#include <filesystem>

#include "storage/cold/cold_bond.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

/// Of records that were spilled the cold store has the only copy. Without it finished work would be
/// granted again.
Status Storage::Impl::check_cold(const ColdStore* cold) const {
  const storage::Description& is = archive_->description();
  const std::string why = storage::misfit({is.storage_id, is.cold, is.cold_token},
                                          cold == nullptr ? ColdMark{} : cold->mark(),
                                          cold == nullptr ? ColdBond{} : cold->bond());
  if (why.empty()) return Done{};
  return Error{ErrorCode::storage_damaged, options_.directory + ": " + why};
}

/// Each step is synced: see storage/cold/cold_bond.hpp. Never holds archive_mutex_ while it calls
/// the store: a backup holds the store still and then takes archive_mutex_.
Status Storage::Impl::bind_cold(ColdStore* cold) {
  std::uint64_t before = 0;
  std::uint64_t storage_id = 0;
  {
    const base::MutexLock lock{archive_mutex_};
    SEMEL_CHECK(check_cold(cold));
    before = archive_->description().cold_token;
    storage_id = archive_->description().storage_id;
  }
  // Without a store nothing has left. What happens until there is one again is not known to it, so
  // none fits that has a token.
  const std::uint64_t token = cold == nullptr ? 0 : storage::random_id();
  if (cold == nullptr && before == 0) return Done{};
  if (cold != nullptr) SEMEL_CHECK(cold->bind({storage_id, token, before, true}));
  {
    const base::MutexLock lock{archive_mutex_};
    storage::Description is = archive_->description();
    is.cold_token = token;
    SEMEL_CHECK(archive_->describe(is));
  }
  return cold == nullptr ? Status{Done{}} : cold->bind({storage_id, token, 0, false});
}

Result<BackupReport> Storage::Impl::backup(const std::string& directory,
                                           const BackupOptions& options) {
  // Only with a cold store: a rewrite of files, which there is none of then, holds the mutex long.
  if (is_recovered() && is_tiered_.load(std::memory_order_relaxed)) {  // mo: relaxed: set before
    const base::SharedLock engine{engine_mutex_};                      // it does not end meanwhile
    if (engine_ != nullptr) return backup_with(directory, *engine_->cold_store(), options);
  }
  {
    const base::MutexLock lock{archive_mutex_};
    SEMEL_CHECK(check_cold(nullptr));
  }
  return backup_files(directory, options);
}

Result<BackupReport> Storage::Impl::backup(const std::string& directory, ColdStore& cold,
                                           const BackupOptions& options) {
  const base::SharedLock engine{engine_mutex_};  // that would write to its own store meanwhile
  if (engine_ != nullptr && engine_->cold_store() != &cold) {
    return Error{ErrorCode::bad_option, "another cold store than that of the engine"};
  }
  return backup_with(directory, cold, options);
}

/// The store is held still first: all that is in it was appended before, so it is in the files that
/// are copied then, and nothing becomes void without being in the copy of the store.
Result<BackupReport> Storage::Impl::backup_with(const std::string& directory, ColdStore& cold,
                                                const BackupOptions& options) {
  {
    const base::MutexLock lock{archive_mutex_};
    SEMEL_CHECK(check_cold(&cold));
  }
  std::optional<BackupReport> report;
  Status status = cold.backup(directory + "/cold", [&]() -> Status {
    SEMEL_TRY(made, backup_files(directory, options));
    report = std::move(made);
    return Done{};
  });
  if (status && report) return *std::move(report);
  if (report) {
    std::error_code code;  // what stays is refused: its cold store is missing
    std::filesystem::remove_all(directory, code);
  }
  if (!status) return status.error();
  return Error{ErrorCode::storage_failed, directory + ": the cold store made no backup"};
}

}  // namespace semel
