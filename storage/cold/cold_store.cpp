#include "storage/cold/cold_store.hpp"

#include <utility>

#include "storage/cold/cold_format.hpp"
#include "storage/cold/cold_loading.hpp"

namespace semel::storage {

Result<std::unique_ptr<RocksColdStore>> RocksColdStore::open(const ColdSettings& settings) {
  if (settings.filter_bits < 8 || settings.filter_bits > 32) {
    return Error{ErrorCode::bad_option,
                 "filter_bits = " + std::to_string(settings.filter_bits) + ", range 8..32"};
  }
  std::unique_ptr<RocksColdStore> store{new RocksColdStore{settings}};
  SEMEL_CHECK(store->identity_.read(*settings.database, store->flushes_));
  SEMEL_TRY(loaded, load_parts(store->files_, store->clock_.current()));
  store->identity_.note_version(loaded.largest_version);
  store->identity_.note_generation(loaded.newest_generation);
  store->spill_.begin_behind(loaded.last_part);
  store->catalogs_.publish(std::move(loaded.catalog));
  store->catalogs_.reclaim();
  store->files_.compact_facts();
  return store;
}

Status RocksColdStore::attach(unsigned shard_count, RankOf rank_of) {
  SEMEL_CHECK(identity_.attach(shard_count));
  reader_.attach(std::move(rank_of));
  return Done{};
}

Status RocksColdStore::follow_clock(const StorageClock& clock) {
  const base::MutexLock lock{files_.writes};
  SEMEL_TRY(next, files_.follow_clock(clock, clock_.current()));
  const Millis by{next.offset_ms() - clock_.current().offset_ms()};
  if (by == Millis{0}) return Done{};
  clock_.move(next);
  catalogs_.publish(moved_by(*catalogs_.now(), by));
  return Done{};
}

Status RocksColdStore::backup(const std::string& directory, const std::function<Status()>& first) {
  const base::MutexLock lock{files_.writes};
  SEMEL_CHECK(first());
  return files_.copy_to(directory);
}

Status RocksColdStore::keep_flushes() {
  // An older state must not be written over a newer one.
  const base::MutexLock lock{files_.writes};
  return files_.put(store_facts_key(StoreFacts::flushes), flushes_.encode());
}

void RocksColdStore::flush(std::uint8_t db, Version below) noexcept {
  flushes_.raise(db, below);
  // mo: release [cold_store.stamp]: earlier answers must be looked up again.
  stamp_.fetch_add(1, std::memory_order_release);
  const std::shared_ptr<const Catalog> now = catalogs_.now();
  for (const Generation& generation : now->generations) {
    for (const auto& part : generation.parts()) {
      if (part->facts.largest_version >= below) continue;
      for (unsigned step = 0; step < DueCounts::steps; ++step) {
        if (part->living.at(db & 15, step) != 0) part->living.set(db & 15, step, 0);
      }
    }
  }
}

void RocksColdStore::reveal() {
  spill_.reveal();
  // mo: release [cold_store.stamp]: a lookup that sees the new count repeats its search and finds
  // the part.
  stamp_.fetch_add(1, std::memory_order_release);
}

// --- figures ----------------------------------------------------------------------------------

std::size_t RocksColdStore::memory_bytes() const {
  std::size_t total = settings_.cache_bytes + files_.readers_bytes();
  const std::shared_ptr<const Catalog> seen = catalogs_.now();
  for (const Generation& generation : seen->generations) {
    for (const auto& part : generation.parts()) total += part->filter.bytes() + sizeof(ColdPart);
  }
  return total;
}

ColdStats RocksColdStore::stats() const {
  ColdStats stats;
  const std::shared_ptr<const Catalog> seen = catalogs_.now();
  for (const Generation& generation : seen->generations) {
    if (!generation.parts().empty()) ++stats.generations;
    for (const auto& part : generation.parts()) {
      ++stats.parts;
      stats.records += part->facts.records;
      stats.filter_bytes += part->filter.bytes();
      stats.disk_bytes += part->disk_bytes;
    }
  }
  stats.memory_bytes = memory_bytes();
  reader_.add_to(stats);
  return stats;
}

}  // namespace semel::storage
