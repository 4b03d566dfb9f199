// Writes the parts of a spill to disk, and drops ended generations.
#include <rocksdb/convenience.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/assert.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_store.hpp"

namespace semel::storage {

namespace {

constexpr std::size_t bucket_bytes = 4096;
constexpr std::size_t bucket_records_max = 200;
constexpr std::size_t filter_piece_bytes = std::size_t{256} << 10;

std::string path_of(const std::string& directory, std::uint64_t part) {
  return directory + "/cold-" + std::to_string(part) + ".part";
}

/// A file on its way into the database, gone at the end in any case. If it stays, the next open
/// removes it.
class Leftover {
 public:
  Leftover(const rocksdb::DB& database, const std::string& path) noexcept
      : database_(database), path_(path) {}
  ~Leftover() {
    try {
      static_cast<void>(database_.GetEnv()->DeleteFile(path_));
    } catch (...) {  // as above
    }
  }
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

 private:
  const rocksdb::DB& database_;
  const std::string& path_;
};

}  // namespace

Status RocksColdStore::begin_generation() {
  // What is on disk counts: the next open finds it again.
  if (catalog()->generations.size() + undeleted_.size() >= cold_generations_max) {
    return Error{ErrorCode::storage_failed,
                 std::to_string(cold_generations_max) + " generations, and none has ended"};
  }
  SEMEL_ASSERT(places_.empty() && fresh_ == nullptr);
  const std::uint64_t number = mark().generation + 1;
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  {
    // Its parts may all be dropped some day. The number stays, so that a store that has lost files
    // is told from one that has dropped them.
    const base::MutexLock lock{writes_};
    SEMEL_CHECK(put_store_facts(StoreFacts::generation, bytes));
  }
  auto fresh = std::make_shared<Catalog>(*catalog());
  fresh->generations.emplace(fresh->generations.begin(), number);
  {
    const base::MutexLock lock{mutex_};
    generation_ = number;
  }
  publish(std::move(fresh));
  return Done{};
}

void RocksColdStore::collect(std::uint64_t rank, const Mutation& record) {
  const std::size_t at = bytes_.size();
  bytes_.append(record.key);
  const std::uint8_t head = encode_value(record, settings_.durable_clock, bytes_);
  places_.push_back({rank, record.version});
  collected_.push_back({at, settings_.durable_clock.to_durable_ms(record.due),
                        static_cast<std::uint32_t>(record.key.size()),
                        static_cast<std::uint32_t>(bytes_.size() - at - record.key.size()), head});
}

std::size_t RocksColdStore::collected_bytes() const noexcept {
  return bytes_.size() + places_.size() * (sizeof(ColdPlace) + sizeof(Collected));
}

BucketRecord RocksColdStore::record_at(std::size_t index) const noexcept {
  SEMEL_ASSERT(index < collected_.size());
  const Collected& one = collected_[index];
  const char* const bytes = bytes_.data() + one.at;
  return {.version = places_[index].version,
          .due = one.due,
          .head = one.head,
          .key = {bytes, one.key_bytes},
          .value = {bytes + one.key_bytes, one.value_bytes}};
}

Mutation RocksColdStore::collected_record(std::size_t index) const {
  Mutation record;
  const bool is_read = decode_record(record_at(index), settings_.durable_clock, record);
  SEMEL_ASSERT(is_read);  // collect() wrote it
  static_cast<void>(is_read);
  return record;
}

PartFacts RocksColdStore::facts_of(std::uint64_t first, std::uint64_t last) const {
  SEMEL_ASSERT(first <= last && !places_.empty() && places_.size() == collected_.size());
  PartFacts facts;
  facts.number = next_part_;
  facts.generation = mark().generation;
  facts.first = first;
  facts.last = last;
  facts.records = places_.size();
  facts.filter_lines = ColdFilter::lines_for(facts.records, settings_.filter_bits);
  const std::size_t each =
      bytes_.size() / facts.records + 6;  // about the size of a version and an end
  const std::size_t in_bucket = std::clamp<std::size_t>(bucket_bytes / each, 1, bucket_records_max);
  facts.buckets = (facts.records + in_bucket - 1) / in_bucket;
  SEMEL_ASSERT(facts.buckets != 0 && facts.filter_lines != 0);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Timestamp due = settings_.durable_clock.from_durable_ms(collected_[i].due);
    facts.databases |= std::uint64_t{1} << (collected_[i].head >> 4);
    facts.largest_version = std::max(facts.largest_version, places_[i].version);
    facts.latest_end = std::max(facts.latest_end, due);
    if (due == no_end) continue;
    facts.earliest_end = std::min(facts.earliest_end, due);
    facts.latest_finite_end = std::max(facts.latest_finite_end, due);
  }
  return facts;
}

std::vector<std::uint32_t> RocksColdStore::order_of(const ColdPart& part) const {
  std::vector<std::uint32_t> begin(part.facts.buckets + 1, 0);
  for (const ColdPlace& place : places_) ++begin[part.buckets.piece_of(place.rank) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> order(places_.size());
  std::vector<std::uint32_t> at{begin.begin(), begin.end() - 1};
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    order[at[part.buckets.piece_of(places_[i].rank)]++] = i;
  }
  for (std::size_t bucket = 0; bucket < part.facts.buckets; ++bucket) {
    std::sort(order.begin() + begin[bucket], order.begin() + begin[bucket + 1],
              [&](std::uint32_t one, std::uint32_t other) {
                return places_[one].version < places_[other].version;
              });
  }
  return order;
}

rocksdb::Status RocksColdStore::write_buckets(rocksdb::SstFileWriter& file, const ColdPart& part) {
  const std::vector<std::uint32_t> order = order_of(part);
  std::vector<BucketRecord> records;
  std::string bytes;
  for (std::size_t next = 0; next < order.size();) {
    const std::uint64_t bucket = part.buckets.piece_of(places_[order[next]].rank);
    records.clear();
    for (; next < order.size(); ++next) {
      if (part.buckets.piece_of(places_[order[next]].rank) != bucket) break;
      records.push_back(record_at(order[next]));
    }
    bytes.clear();
    encode_bucket(records, bytes);
    rocksdb::Status status = file.Put(cold_key(part.facts.number, ColdKey::bucket, bucket), bytes);
    if (!status.ok()) return status;
  }
  return rocksdb::Status::OK();
}

Status RocksColdStore::be_writable(std::size_t bytes_free) {
  const std::string& directory = settings_.directory;
  if (bytes_free != 0 && settings_.disk != nullptr &&
      settings_.disk->bytes_free(directory) < bytes_free) {
    return Error{ErrorCode::storage_failed,
                 directory + ": no space for " + std::to_string(bytes_free) + " bytes"};
  }
  return has_stopped_ ? reopen() : Status{Done{}};
}

/// RocksDB has a call to go on after an error. It is not used: in 7.8 files are taken in under the
/// number 0 after it. Opening is what was always done, by hand.
Status RocksColdStore::reopen() {
  constexpr std::size_t enough = std::size_t{8} << 20;
  const std::string& directory = settings_.directory;
  if (!settings_.reopen || guard_.is_broken()) {
    return Error{ErrorCode::storage_failed,
                 directory + ": a change has failed; open the cold store again"};
  }
  if (settings_.disk != nullptr && settings_.disk->bytes_free(directory) < enough) {
    return Error{ErrorCode::storage_failed, directory + ": no space to go on after an error"};
  }
  {
    const base::ExclusiveLock alone{opening_};
    const Status opened = settings_.reopen();
    std::tie(database_, family_) = settings_.opened();
    if (!opened) return opened.error();
  }
  SEMEL_CHECK(delete_strangers());
  has_stopped_ = false;
  return guard_.run([&]() -> Status {
    compact_facts();  // each opening leaves a small file
    return Done{};
  });
}

Status RocksColdStore::delete_strangers() {
  std::vector<std::uint64_t> known;
  const std::shared_ptr<const Catalog> seen = catalog();
  for (const Generation& generation : seen->generations) {
    for (const auto& part : generation.parts()) known.push_back(part->facts.number);
  }
  return guard_.run([&]() -> Status {
    std::vector<rocksdb::LiveFileMetaData> files;
    database_->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.column_family_name != family_->GetName()) continue;
      const std::uint64_t number = cold_part_of(file.smallestkey).value_or(0);
      if (number == 0 || std::find(known.begin(), known.end(), number) != known.end()) continue;
      const std::string begin_key = cold_key(number, ColdKey::facts, 0);
      const std::string end_key = cold_key(number + 1, ColdKey::facts, 0);
      const rocksdb::Slice begin{begin_key};
      const rocksdb::Slice end{end_key};
      const rocksdb::Status status =
          rocksdb::DeleteFilesInRange(database_, family_, &begin, &end, false);
      if (!status.ok()) return error_of(status, "cold parts");
    }
    return Done{};
  });
}

Status RocksColdStore::write_file(ColdPart& part, const std::string& path) {
  rocksdb::ExternalSstFileInfo info;
  SEMEL_CHECK(
      guard_.write_table(database_->GetOptions(family_), true, [&](TableWriter& file) -> Status {
        const std::uint64_t number = part.facts.number;
        rocksdb::Status status = file->Open(path);
        if (status.ok()) {
          status = file->Put(cold_key(number, ColdKey::facts, 0),
                             encode_facts(part, settings_.durable_clock));
        }
        const Bytes filter = part.filter.view();
        for (std::size_t at = 0; status.ok() && at < filter.size(); at += filter_piece_bytes) {
          const Bytes piece = filter.substr(at, filter_piece_bytes);
          status = file->Put(cold_key(number, ColdKey::filter, at / filter_piece_bytes),
                             rocksdb::Slice{piece.data(), piece.size()});
        }
        if (status.ok()) status = write_buckets(*file, part);
        if (status.ok()) status = file.finish(info);  // synced
        return status.ok() ? Status{Done{}} : error_of(status, path);
      }));
  part.disk_bytes = info.file_size;
  return ingest(path, info);
}

/// After one that failed the manifest may name the file or not, so it stays until the database is
/// opened again (kept_tables.hpp).
Status RocksColdStore::ingest(const std::string& path, const rocksdb::ExternalSstFileInfo& info) {
  rocksdb::IngestExternalFileArg part;
  part.column_family = family_;
  part.external_files = {path};
  if (!info.file_checksum.empty()) {
    part.files_checksums = {info.file_checksum};
    part.files_checksum_func_names = {info.file_checksum_func_name};
  }
  part.options.move_files = true;
  part.options.failed_move_fall_back_to_copy = true;
  part.options.snapshot_consistency = false;  // no snapshot contains this part
  // As in Archive::ingest().
  part.options.write_global_seqno = false;
  part.options.verify_file_checksum = false;
  if (settings_.tables != nullptr) settings_.tables->begin();
  const Status status = change([&] {
    const rocksdb::Status ingested = database_->IngestExternalFiles({part});
    return ingested.ok() ? Status{Done{}} : error_of(ingested, path);
  });
  if (settings_.tables != nullptr) settings_.tables->end(status.ok());
  return status;
}

void RocksColdStore::add_part(Catalog& catalog, std::shared_ptr<ColdPart> part) const {
  for (Generation& generation : catalog.generations) {
    if (generation.number() != part->facts.generation) continue;
    SEMEL_ASSERT(generation.parts().empty() ||
                 generation.parts().back()->facts.last < part->facts.first);
    return generation.add(std::move(part));
  }
  SEMEL_ASSERT(false);  // begin_generation() has added it
}

Status RocksColdStore::write_part(std::uint64_t first, std::uint64_t last) {
  auto part = std::make_shared<ColdPart>(facts_of(first, last));
  const std::string path = path_of(settings_.directory, part->facts.number);
  if (!part->filter.ok()) return Error{ErrorCode::memory_full, "filter of " + path};
  // All that is needed once it is on disk: abandon() must find a catalog without it.
  std::shared_ptr<const Catalog> before = catalog();
  auto fresh = std::make_shared<Catalog>(*before);
  add_part(*fresh, part);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    part->filter.add(places_[i].rank);
    part->living.add(collected_[i].head >> 4,
                     settings_.durable_clock.from_durable_ms(collected_[i].due));
  }
  {
    const base::MutexLock lock{writes_};
    // If the disk filled up during RocksDB's own bookkeeping, it would stop.
    constexpr std::size_t margin = std::size_t{4} << 20;
    const std::size_t bytes = bytes_.size() + part->filter.bytes();
    SEMEL_CHECK(be_writable(bytes + bytes / 8 + margin));
    const Leftover leftover{*database_, path};
    ++next_part_;  // a number is not used again, whatever became of its file
    SEMEL_CHECK(write_file(*part, path));
    SEMEL_ASSERT(fresh_ == nullptr);
    first_version_ = std::max(first_version_, part->facts.largest_version + 1);
    fresh_ = std::move(part);
    before_fresh_ = std::move(before);
    // Before anybody else may open the database again: what is in no catalog is deleted then.
    publish(std::move(fresh));
  }
  return Done{};
}

void RocksColdStore::reveal() {
  // mo: release [cold_store.reveal]
  if (fresh_) fresh_->revealed.store(true, std::memory_order_release);
  // mo: release [cold_store.stamp]: a lookup that sees the new count repeats its search and finds
  // the part.
  stamp_.fetch_add(1, std::memory_order_release);
}

void RocksColdStore::end_part() noexcept {
  fresh_.reset();
  before_fresh_.reset();
  bytes_.clear();
  places_.clear();
  collected_.clear();
}

void RocksColdStore::abandon() noexcept {
  if (fresh_) {
    // It was never revealed, and the table still has all its records. If it comes back after a
    // crash, its copies are no newer than those of the journal.
    const std::uint64_t number = fresh_->facts.number;
    {
      // No memory is needed: this is called for want of it. Only the spiller publishes catalogs.
      const base::MutexLock lock{mutex_};
      SEMEL_ASSERT(abandoned_ == nullptr);
      abandoned_ = std::move(shared_);
      shared_ = std::move(before_fresh_);
      current_.store(shared_.get(), std::memory_order_release);  // mo: release [cold_store.catalog]
    }
    try {
      static_cast<void>(delete_parts(number, number));  // a part that stays is harmless, see above
    } catch (...) {
    }
  }
  end_part();
}

Status RocksColdStore::delete_parts(std::uint64_t first, std::uint64_t last) {
  const base::MutexLock lock{writes_};
  const std::string begin_key = cold_key(first, ColdKey::facts, 0);
  const std::string end_key = cold_key(last + 1, ColdKey::facts, 0);
  const rocksdb::Slice begin{begin_key};
  const rocksdb::Slice end{end_key};
  // A part is one file, so nothing else has to be deleted.
  SEMEL_CHECK(be_writable(0));
  return change([&] {
    const rocksdb::Status status =
        rocksdb::DeleteFilesInRange(database_, family_, &begin, &end, false);
    return status.ok() ? Status{Done{}} : error_of(status, "cold parts");
  });
}

bool RocksColdStore::is_flushed(const PartFacts& part) const noexcept {
  for (unsigned db = 0; db < limits::db_count; ++db) {
    // mo: acquire [cold_store.flushed]
    const Version below = flushed_[db].load(std::memory_order_acquire);
    if ((part.databases >> db & 1) != 0 && part.largest_version >= below) return false;
  }
  return true;
}

Status RocksColdStore::drop_ended(Timestamp now) {
  auto fresh = std::make_shared<Catalog>(*catalog());
  const auto is_dead = [&](const Generation& generation) {
    for (const auto& part : generation.parts()) {
      if (part->facts.latest_end > now && !is_flushed(part->facts)) return false;
    }
    return true;
  };
  // Oldest first, and stop at the first live one: a newer generation may hold a successor that ends
  // earlier than the copy it replaced, and dropping it first would bring that copy back.
  std::erase_if(fresh->generations, [](const Generation& each) { return each.parts().empty(); });
  std::map<std::uint64_t, std::vector<std::uint64_t>> dropped;
  while (!fresh->generations.empty() && is_dead(fresh->generations.back())) {
    std::vector<std::uint64_t>& parts = dropped[fresh->generations.back().number()];
    for (const auto& part : fresh->generations.back().parts()) parts.push_back(part->facts.number);
    fresh->generations.pop_back();
  }
  if (fresh->generations.size() != catalog()->generations.size()) publish(std::move(fresh));
  undeleted_.merge(dropped);  // needs no memory
  return delete_dropped();
}

/// After an error the rest is tried again with the next call. Oldest first, as above: after a crash
/// they are generations again.
Status RocksColdStore::delete_dropped() {
  while (!undeleted_.empty()) {
    std::vector<std::uint64_t>& parts = undeleted_.begin()->second;
    while (!parts.empty()) {
      SEMEL_CHECK(delete_parts(parts.back(), parts.back()));
      parts.pop_back();
    }
    undeleted_.erase(undeleted_.begin());
  }
  return Done{};
}

}  // namespace semel::storage
