#include "storage/cold/cold_loading.hpp"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_format.hpp"

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

namespace {

Result<std::shared_ptr<ColdPart>> read_part(rocksdb::Iterator& at, std::uint64_t number,
                                            const DurableClock& clock) {
  const auto damaged = [&] {
    return Error{ErrorCode::storage_damaged, "cold part " + std::to_string(number)};
  };
  PartFacts facts;
  Bytes counts;
  const std::string known = at.value().ToString();
  if (at.key() != cold_key(number, ColdKey::facts, 0) ||
      !decode_facts(known, clock, facts, counts) || facts.number != number) {
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

}  // namespace

Result<LoadedParts> load_parts(const ColdFiles& files, const DurableClock& clock) {
  files.remove_leftovers();
  rocksdb::DB& database = files.database();
  rocksdb::ColumnFamilyHandle& family = *files.family();
  LoadedParts loaded;
  auto fresh = std::make_shared<Catalog>();
  std::vector<std::shared_ptr<ColdPart>> parts;
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at{database.NewIterator(options, &family)};
  for (at->Seek(cold_key(1, ColdKey::facts, 0)); at->Valid();) {
    const std::uint64_t number = cold_part_of(at->key().ToStringView()).value_or(0);
    if (number == 0) return Error{ErrorCode::storage_damaged, "a key of the cold store"};
    SEMEL_TRY(part, read_part(*at, number, clock));
    loaded.last_part = number;
    loaded.newest_generation = std::max(loaded.newest_generation, part->facts.generation);
    loaded.largest_version = std::max(loaded.largest_version, part->facts.largest_version);
    parts.push_back(std::move(part));
    at->Seek(cold_key(number + 1, ColdKey::facts, 0));
  }
  if (!at->status().ok()) return error_of(at->status(), "cold store");
  std::vector<rocksdb::LiveFileMetaData> live;
  database.GetLiveFilesMetaData(&live);
  for (const auto& part : parts) {
    for (const rocksdb::LiveFileMetaData& file : live) {
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
  loaded.catalog = std::move(fresh);
  return loaded;
}

}  // namespace semel::storage
