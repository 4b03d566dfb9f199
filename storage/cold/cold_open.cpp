// Opening a cold store: its description, its parts and their filters.
#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/coding.hpp"
#include "base/random.hpp"
#include "semel/cold_directory.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_bond.hpp"
#include "storage/cold/cold_database.hpp"
#include "storage/cold/cold_store.hpp"

namespace semel::storage {

namespace {

constexpr std::uint64_t format_version = 2;  // 1: strings and claims only
constexpr std::size_t key_bytes = 13;

}  // namespace

std::optional<std::uint64_t> cold_part_of(std::string_view key) noexcept {
  if (key.size() != key_bytes) return std::nullopt;
  std::uint64_t number = 0;
  std::memcpy(&number, key.data(), sizeof number);
  return __builtin_bswap64(number);
}

std::string cold_key(std::uint64_t part, ColdKey what, std::uint64_t index) {
  std::string key(key_bytes, '\0');
  const std::uint64_t big = __builtin_bswap64(part);
  const std::uint32_t small = __builtin_bswap32(static_cast<std::uint32_t>(index));
  std::memcpy(key.data(), &big, sizeof big);
  key[sizeof big] = static_cast<char>(what);
  std::memcpy(key.data() + sizeof big + 1, &small, sizeof small);
  return key;
}

std::string encode_facts(const ColdPart& part, const DurableClock& durable_clock) {
  const PartFacts& facts = part.facts;
  std::string out;
  for (const std::uint64_t word :
       {format_version, facts.number, facts.generation, facts.first, facts.last, facts.records,
        facts.buckets, facts.filter_lines, facts.databases, facts.largest_version,
        durable_clock.to_durable_ms(facts.earliest_end),
        durable_clock.to_durable_ms(facts.latest_end),
        durable_clock.to_durable_ms(facts.latest_finite_end)}) {
    base::put_fixed(out, word);
  }
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    for (unsigned step = 0; step < DueCounts::steps; ++step) {
      base::put_fixed(out, std::uint32_t{part.living.at(db, step)});
    }
  }
  return out;
}

bool decode_facts(Bytes bytes, const DurableClock& durable_clock, PartFacts& facts, Bytes& counts) {
  base::ByteReader reader{bytes};
  std::uint64_t format = 0;
  std::uint64_t earliest = 0;
  std::uint64_t latest = 0;
  std::uint64_t latest_finite = 0;
  for (std::uint64_t* const word :
       {&format, &facts.number, &facts.generation, &facts.first, &facts.last, &facts.records,
        &facts.buckets, &facts.filter_lines, &facts.databases, &facts.largest_version, &earliest,
        &latest, &latest_finite}) {
    *word = reader.fixed<std::uint64_t>();
  }
  facts.earliest_end = durable_clock.from_durable_ms(earliest);
  facts.latest_end = durable_clock.from_durable_ms(latest);
  facts.latest_finite_end = durable_clock.from_durable_ms(latest_finite);
  counts = reader.take_rest();
  return reader.is_good() && format != 0 && format <= format_version && facts.first <= facts.last &&
         facts.buckets != 0 && facts.filter_lines != 0 && facts.filter_lines <= facts.records + 1;
}

bool decode_counts(Bytes counts, ColdPart& part) {
  if (counts.size() != limits::db_count * DueCounts::steps * sizeof(std::uint32_t)) return false;
  base::ByteReader reader{counts};
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    for (unsigned step = 0; step < DueCounts::steps; ++step) {
      const auto count = reader.fixed<std::uint32_t>();
      if (count != 0) part.living.set(db, step, count);
    }
  }
  return true;
}

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
  store->compact_facts();
  return store;
}

Status RocksColdStore::attach(unsigned shard_count, RankOf rank_of) {
  if (shard_count_ != 0 && shard_count_ != shard_count) {
    return Error{ErrorCode::bad_option, "shard_count = " + std::to_string(shard_count) +
                                            ", the cold store was made with " +
                                            std::to_string(shard_count_)};
  }
  rank_of_ = std::move(rank_of);
  if (shard_count_ == shard_count && format_ == format_version) return Done{};
  shard_count_ = shard_count;
  format_ = format_version;
  std::string bytes;
  for (const std::uint64_t word : {format_version, std::uint64_t{shard_count_}, seed_}) {
    base::put_fixed(bytes, word);
  }
  const base::MutexLock lock{writes_};
  return put_store_facts(StoreFacts::description, bytes);
}

ColdBond RocksColdStore::bond() const {
  const base::MutexLock lock{mutex_};
  return bond_;
}

Status RocksColdStore::bind(const ColdBond& bond) {
  const base::MutexLock writes{writes_};
  SEMEL_CHECK(be_writable(0));
  SEMEL_CHECK(change([&] { return write_bond(*database_, bond); }));
  const base::MutexLock lock{mutex_};
  bond_ = bond;
  return Done{};
}

Status RocksColdStore::backup(const std::string& directory, const std::function<Status()>& first) {
  const base::MutexLock lock{writes_};
  SEMEL_CHECK(first());
  SEMEL_CHECK(make_new_directory(directory));
  if (database_ == nullptr) SEMEL_CHECK(be_writable(0));
  SEMEL_CHECK(mark_as_backup(*database_->GetEnv(), directory));
  return guard_.run([&] {  // a target that fails is no error of the store
    rocksdb::Checkpoint* made = nullptr;
    rocksdb::Status status = rocksdb::Checkpoint::Create(database_, &made);
    const std::unique_ptr<rocksdb::Checkpoint> copier{made};
    // 0 flushes the memtables: RocksDB 7.8 does not sync all of a linked log.
    if (status.ok()) status = copier->CreateCheckpoint(cold_database_path(directory), 0);
    return status.ok() ? Status{Done{}} : error_of(status, directory);
  });
}

ColdMark RocksColdStore::mark() const noexcept {
  const base::MutexLock lock{mutex_};
  return {cold_id(seed_), generation_};
}

Status RocksColdStore::keep_flushes() {
  const base::MutexLock lock{writes_};  // an older state must not be written over a newer one
  std::string bytes;
  for (const auto& mark : flushed_) {
    // mo: acquire [cold_store.flushed]
    base::put_fixed(bytes, mark.load(std::memory_order_acquire));
  }
  return put_store_facts(StoreFacts::flushes, bytes);
}

Status RocksColdStore::put_store_facts(StoreFacts index, const std::string& bytes) {
  constexpr std::size_t log_bytes = std::size_t{1} << 20;
  SEMEL_CHECK(be_writable(log_bytes));
  rocksdb::WriteOptions options;
  options.sync = true;
  const std::string key = cold_key(0, ColdKey::facts, static_cast<std::uint8_t>(index));
  return change([&] {
    const rocksdb::Status put = database_->Put(options, family_, key, bytes);
    return put.ok() ? Status{Done{}} : error_of(put, "cold store");
  });
}

std::uint64_t cold_id(std::uint64_t seed) noexcept {
  const std::uint64_t id = XXH3_64bits(&seed, sizeof seed);
  return id == 0 ? 1 : id;
}

Result<ColdDescription> read_cold_description(rocksdb::DB& database,
                                              rocksdb::ColumnFamilyHandle* family) {
  ColdDescription is;
  std::string bytes;
  rocksdb::Status status = database.Get({}, family, cold_key(0, ColdKey::facts, 0), &bytes);
  if (status.IsNotFound()) return is;
  if (!status.ok()) return error_of(status, "cold store");
  base::ByteReader fields{bytes};
  is.format = fields.fixed<std::uint64_t>();
  const auto shards = fields.fixed<std::uint64_t>();
  is.seed = fields.fixed<std::uint64_t>();
  if (!fields.is_good() || is.format == 0) {
    return Error{ErrorCode::storage_damaged, "the cold store's description is not complete"};
  }
  if (is.format > format_version) {
    return Error{ErrorCode::storage_newer, "cold store of format " + std::to_string(is.format)};
  }
  is.shard_count = static_cast<std::uint32_t>(shards);
  status = database.Get({}, family, cold_key(0, ColdKey::facts, 2), &bytes);
  if (status.IsNotFound()) return is;
  if (!status.ok()) return error_of(status, "cold store");
  base::ByteReader generation{bytes};
  is.generation = generation.fixed<std::uint64_t>();
  if (generation.is_good()) return is;
  return Error{ErrorCode::storage_damaged, "the cold store's generation is not complete"};
}

Status RocksColdStore::read_store_facts() {
  SEMEL_TRY(is, read_cold_description(*database_, family_));
  seed_ = is.format == 0 ? base::random_number() : is.seed;
  if (is.format == 0) return Done{};
  format_ = is.format;
  shard_count_ = is.shard_count;
  {
    const base::MutexLock lock{mutex_};
    generation_ = is.generation;
  }
  std::string bytes;
  const rocksdb::Status status =
      database_->Get({}, family_, cold_key(0, ColdKey::facts, 1), &bytes);
  if (status.IsNotFound()) return Done{};
  if (!status.ok()) return error_of(status, "cold store");
  base::ByteReader marks{bytes};
  for (auto& mark : flushed_) {
    const auto version = marks.fixed<std::uint64_t>();
    if (!marks.is_good()) {
      return Error{ErrorCode::storage_damaged, "the cold store's flushes are not complete"};
    }
    mark.store(version, std::memory_order_relaxed);  // mo: relaxed: nobody else is here yet
    first_version_ = std::max(first_version_, version + 1);
  }
  return Done{};
}

void RocksColdStore::remove_leftovers() const {
  // Files of a process that ended in the middle of write_part().
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator{database_->GetName(), ignored}) {
    const std::string name = file.path().filename();
    if (name.starts_with("cold-") && name.ends_with(".part")) {
      static_cast<void>(database_->GetEnv()->DeleteFile(file.path()));  // it stays, then
    }
  }
}

/// Each life leaves a small file with the facts of the store as a whole, and nothing is compacted
/// by itself. Files of parts are not touched.
void RocksColdStore::compact_facts() const {
  constexpr std::ptrdiff_t files_max = 8;
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  const auto has_facts = [&](const rocksdb::LiveFileMetaData& file) {
    return file.column_family_name == family_->GetName() && cold_part_of(file.smallestkey) == 0;
  };
  if (std::count_if(files.begin(), files.end(), has_facts) <= files_max) return;
  const std::string first = cold_key(0, ColdKey::facts, 0);
  const std::string last = cold_key(0, ColdKey::bucket, 0);
  const rocksdb::Slice begin{first};
  const rocksdb::Slice end{last};
  // On an error they stay.
  static_cast<void>(database_->CompactRange({}, family_, &begin, &end));
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
      !decode_facts(known, settings_.durable_clock, facts, counts) || facts.number != number) {
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
  part->revealed.store(true, std::memory_order_relaxed);  // mo: relaxed: nobody else is here yet
  return part;
}

Status RocksColdStore::load_parts() {
  remove_leftovers();
  auto fresh = std::make_shared<Catalog>();
  std::vector<std::shared_ptr<ColdPart>> parts;
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at{database_->NewIterator(options, family_)};
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
  database_->GetLiveFilesMetaData(&files);
  for (const auto& part : parts) {
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.column_family_name != family_->GetName()) continue;
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
  publish(std::move(fresh));
  reclaim();
  return Done{};
}

}  // namespace semel::storage
