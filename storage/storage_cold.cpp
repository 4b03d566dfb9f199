#include "storage/storage_cold.hpp"

#include <string>

#include "storage/cold/cold_bond.hpp"

namespace semel::storage {

Status check_cold(const StoredFiles& files, const std::string& directory, const ColdStore* cold) {
  const Description& is = files.archive().description();
  const std::string why =
      misfit({is.storage_id, is.cold, is.cold_token}, cold == nullptr ? ColdMark{} : cold->mark(),
             cold == nullptr ? ColdBond{} : cold->bond());
  if (why.empty()) return Done{};
  return Error{ErrorCode::storage_damaged, directory + ": " + why};
}

/// Each step is synced: see storage/cold/cold_bond.hpp. Never holds the mutex of the files while it
/// calls the store: a backup holds the store still and then takes the mutex.
Status bind_cold(StoredFiles& files, const Context& context, ColdStore* cold) {
  std::uint64_t before = 0;
  std::uint64_t storage_id = 0;
  {
    const base::MutexLock lock{files.mutex};
    SEMEL_CHECK(check_cold(files, context.options.directory, cold));
    before = files.archive().description().cold_token;
    storage_id = files.archive().description().storage_id;
  }
  // Without a store nothing has left. What happens until there is one again is not known to it, so
  // none fits that has a token.
  const std::uint64_t token = cold == nullptr ? 0 : random_id();
  if (cold == nullptr && before == 0) return Done{};
  if (cold != nullptr) {
    SEMEL_CHECK(cold->follow_clock({storage_id, context.durable_clock.offset_ms()}));
    SEMEL_CHECK(cold->bind({storage_id, token, before, true}));
  }
  {
    const base::MutexLock lock{files.mutex};
    SEMEL_CHECK(files.describe([&](Description& next) { next.cold_token = token; }));
  }
  return cold == nullptr ? Status{Done{}} : cold->bind({storage_id, token, 0, false});
}

}  // namespace semel::storage
