// What a storage does about its cold store: checks and binds it. Backups are in storage_backup.cpp.
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

}  // namespace semel
