// Opening a cold store: its description, its parts and their filters.
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <functional>

#include "base/coding.hpp"
#include "base/random.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_bond.hpp"
#include "storage/cold/cold_store.hpp"

namespace semel::storage {

rocksdb::ColumnFamilyOptions cold_family_options(std::size_t cache_bytes) {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = std::size_t{1} << 20;  // holds flushed versions only
  options.disable_auto_compactions = true;  // parts do not overlap, and are deleted as whole files
  options.compression = rocksdb::CompressionType::kLZ4Compression;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 2048;  // a bucket is larger, so each has its own block
  table.block_cache = rocksdb::NewLRUCache(cache_bytes);
  table.format_version = 5;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Result<std::unique_ptr<RocksColdStore>> RocksColdStore::open(const ColdSettings& settings) {
  if (settings.filter_bits < 8 || settings.filter_bits > 32) {
    return Error{ErrorCode::bad_option,
                 "filter_bits = " + std::to_string(settings.filter_bits) + ", range 8..32"};
  }
  std::unique_ptr<RocksColdStore> store{new RocksColdStore{settings}};
  SEMEL_TRY(bond, read_bond(*settings.database));
  {
    const base::MutexLock lock{store->mutex_};
    store->bond_ = bond;
  }
  SEMEL_CHECK(store->read_store_facts());
  SEMEL_CHECK(store->load_parts());
  store->files_.compact_facts();
  return store;
}

Status RocksColdStore::attach(unsigned shard_count, RankOf rank_of) {
  if (shard_count_ != 0 && shard_count_ != shard_count) {
    return Error{ErrorCode::bad_option, "shard_count = " + std::to_string(shard_count) +
                                            ", the cold store was made with " +
                                            std::to_string(shard_count_)};
  }
  rank_of_ = std::move(rank_of);
  if (shard_count_ == shard_count && format_ == cold_format_version) return Done{};
  shard_count_ = shard_count;
  format_ = cold_format_version;
  std::string bytes;
  for (const std::uint64_t word : {cold_format_version, std::uint64_t{shard_count_}, seed_}) {
    base::put_fixed(bytes, word);
  }
  const base::MutexLock lock{files_.writes};
  return files_.put(store_facts_key(StoreFacts::description), bytes);
}

ColdBond RocksColdStore::bond() const {
  const base::MutexLock lock{mutex_};
  return bond_;
}

Status RocksColdStore::bind(const ColdBond& bond) {
  const base::MutexLock writes{files_.writes};
  SEMEL_CHECK(files_.be_writable(0));
  SEMEL_CHECK(files_.change([&](rocksdb::DB& database) { return write_bond(database, bond); }));
  const base::MutexLock lock{mutex_};
  bond_ = bond;
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

ColdMark RocksColdStore::mark() const noexcept {
  const base::MutexLock lock{mutex_};
  return {cold_id(seed_), generation_};
}

Status RocksColdStore::keep_flushes() {
  // An older state must not be written over a newer one.
  const base::MutexLock lock{files_.writes};
  return files_.put(store_facts_key(StoreFacts::flushes), flushes_.encode());
}

Status RocksColdStore::read_store_facts() {
  SEMEL_TRY(is, read_cold_description(files_.database(), files_.family()));
  seed_ = is.format == 0 ? base::random_number() : is.seed;
  if (is.format == 0) return Done{};
  format_ = is.format;
  shard_count_ = is.shard_count;
  {
    const base::MutexLock lock{mutex_};
    generation_ = is.generation;
  }
  std::string bytes;
  const rocksdb::Status status = files_.get(store_facts_key(StoreFacts::flushes), bytes);
  if (status.IsNotFound()) return Done{};
  if (!status.ok()) return error_of(status, "cold store");
  if (!flushes_.decode(bytes)) {
    return Error{ErrorCode::storage_damaged, "the cold store's flushes are not complete"};
  }
  first_version_ = std::max(first_version_, flushes_.largest() + 1);
  return Done{};
}

Result<std::shared_ptr<ColdPart>> RocksColdStore::read_part(rocksdb::Iterator& at,
                                                            std::uint64_t number) {
  const auto damaged = [&] {
    return Error{ErrorCode::storage_damaged, "cold part " + std::to_string(number)};
  };
  PartFacts facts;
  Bytes counts;
  const std::string known = at.value().ToString();
  if (at.key() != cold_key(number, ColdKey::facts, 0) ||
      !decode_facts(known, clock_.current(), facts, counts) || facts.number != number) {
    return damaged();
  }
  auto part = std::make_shared<ColdPart>(facts);
  if (!part->filter.ok()) return Error{ErrorCode::memory_full, "filter of a cold part"};
  if (!decode_counts(counts, *part)) return damaged();
  std::size_t loaded = 0;
  for (at.Next(); at.Valid(); at.Next()) {
    const rocksdb::Slice key = at.key();
    if (cold_part_of(key.ToStringView()) != number) break;
    if (key[8] != static_cast<char>(ColdKey::filter)) break;
    if (!part->filter.put_back(loaded, {at.value().data(), at.value().size()})) return damaged();
    loaded += at.value().size();
  }
  if (loaded != part->filter.bytes()) return damaged();
  part->revealed.store(true, std::memory_order_relaxed);  // mo: relaxed: not shared yet
  return part;
}

Status RocksColdStore::load_parts() {
  files_.remove_leftovers();
  rocksdb::DB& database = files_.database();
  rocksdb::ColumnFamilyHandle& family = *files_.family();
  auto fresh = std::make_shared<Catalog>();
  std::vector<std::shared_ptr<ColdPart>> parts;
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at{database.NewIterator(options, &family)};
  for (at->Seek(cold_key(1, ColdKey::facts, 0)); at->Valid();) {
    const std::uint64_t number = cold_part_of(at->key().ToStringView()).value_or(0);
    if (number == 0) return Error{ErrorCode::storage_damaged, "a key of the cold store"};
    SEMEL_TRY(part, read_part(*at, number));
    next_part_ = number + 1;
    {
      const base::MutexLock lock{mutex_};
      generation_ = std::max(generation_, part->facts.generation);
    }
    first_version_ = std::max(first_version_, part->facts.largest_version + 1);
    parts.push_back(std::move(part));
    at->Seek(cold_key(number + 1, ColdKey::facts, 0));
  }
  if (!at->status().ok()) return error_of(at->status(), "cold store");
  std::vector<rocksdb::LiveFileMetaData> files;
  database.GetLiveFilesMetaData(&files);
  for (const auto& part : parts) {
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.column_family_name != family.GetName()) continue;
      if (cold_part_of(file.smallestkey) == part->facts.number) part->disk_bytes = file.size;
    }
    auto& all = fresh->generations;
    if (all.empty() || all.front().number() != part->facts.generation) {
      all.emplace(all.begin(), part->facts.generation);
    }
    if (all.size() > cold_generations_max) {
      return Error{
          ErrorCode::storage_damaged,
          "cold store: more than " + std::to_string(cold_generations_max) + " generations"};
    }
    all.front().add(part);
  }
  catalogs_.publish(std::move(fresh));
  catalogs_.reclaim();
  return Done{};
}

}  // namespace semel::storage
