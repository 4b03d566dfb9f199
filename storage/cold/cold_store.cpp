// Lookups, whole databases, iteration and figures of a cold store.
#include "storage/cold/cold_store.hpp"

#include <algorithm>
#include <unordered_set>

#include "storage/archive/rocks_status.hpp"

namespace semel::storage {

void RocksColdStore::publish(std::shared_ptr<const Catalog> fresh) {
  const base::MutexLock lock{mutex_};
  retired_.push_back(shared_);  // the first, as there may be no memory for it
  shared_ = std::move(fresh);
  current_.store(shared_.get(), std::memory_order_release);  // mo: release [cold_store.catalog]
}

void RocksColdStore::reclaim() noexcept {
  std::vector<std::shared_ptr<const Catalog>> gone;
  std::shared_ptr<const Catalog> abandoned;
  const base::MutexLock lock{mutex_};
  gone.swap(retired_);
  abandoned.swap(abandoned_);
}

Timestamp RocksColdStore::may_hold_until(std::uint64_t rank) const noexcept {
  // mo: acquire [cold_store.catalog]
  const Catalog& catalog = *current_.load(std::memory_order_acquire);
  // Prefetch all lines first, so that their cache misses overlap.
  std::array<const ColdPart*, cold_generations_max> parts;
  std::size_t count = 0;
  for (const Generation& generation : catalog.generations) {
    const ColdPart* const part = generation.part_of(rank);
    if (part == nullptr) continue;
    part->filter.prefetch(rank);
    parts[count++] = part;
  }
  Timestamp latest{};
  for (std::size_t i = 0; i < count; ++i) {
    if (!parts[i]->filter.may_hold(rank)) [[likely]]
      continue;
    latest = std::max(latest, parts[i]->facts.latest_end);
  }
  return latest;
}

rocksdb::Status RocksColdStore::read_bucket(const ColdPart& part, std::uint64_t bucket,
                                            std::string& bytes) {
  buckets_read_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  const base::SharedLock open{opening_};
  if (database_ == nullptr)
    return rocksdb::Status::IOError("the cold store could not be opened again");
  return database_->Get({}, family_, cold_key(part.facts.number, ColdKey::bucket, bucket), &bytes);
}

Result<bool> RocksColdStore::find_in(const ColdPart& part, std::uint64_t rank, std::uint8_t db,
                                     Bytes key, ColdRecord& found) {
  const std::uint64_t bucket = part.buckets.piece_of(rank);
  const auto what = [&] {
    return "cold part " + std::to_string(part.facts.number) + ", bucket " + std::to_string(bucket);
  };
  const rocksdb::Status status = read_bucket(part, bucket, found.bytes);
  if (status.IsNotFound()) return false;  // no record of these ranks was written
  if (!status.ok()) return error_of(status, what());
  BucketReader reader{found.bytes};
  BucketRecord record;
  while (reader.next(record)) {
    if (record.head >> 4 != db || record.key != key) continue;
    if (!decode_record(record, settings_.durable_clock, found.record)) break;
    found.part = part.facts.number;
    return true;
  }
  // A reader that stopped early has found damage; so has this loop, if it could not decode the
  // record.
  if (reader.damaged() || (!record.key.empty() && record.key == key && record.head >> 4 == db)) {
    return Error{ErrorCode::storage_damaged, what()};
  }
  return false;
}

Result<bool> RocksColdStore::find(std::uint64_t rank, std::uint8_t db, Bytes key,
                                  ColdRecord& found) {
  const std::shared_ptr<const Catalog> seen = catalog();
  lookups_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  for (const Generation& generation : seen->generations) {
    const ColdPart* const part = generation.part_of(rank);
    // mo: acquire [cold_store.reveal]
    if (part == nullptr || !part->revealed.load(std::memory_order_acquire)) continue;
    if (!part->filter.may_hold(rank)) continue;
    Result<bool> there = find_in(*part, rank, db, key, found);
    if (!there.ok()) {
      read_errors_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
      return there;
    }
    if (!*there) continue;
    if (is_flushed(found.record)) return false;      // older copies are flushed as well
    found_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    return true;
  }
  return false;
}

void RocksColdStore::superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                                Timestamp due) noexcept {
  // mo: acquire [cold_store.catalog]
  const Catalog& catalog = *current_.load(std::memory_order_acquire);
  for (const Generation& generation : catalog.generations) {
    ColdPart* const part = generation.part_of(rank);
    if (part == nullptr || (number != 0 && part->facts.number != number)) continue;
    part->living.take(db, due);
    return;
  }
}

// --- whole databases --------------------------------------------------------------------------

void RocksColdStore::flush(std::uint8_t db, Version below) noexcept {
  std::atomic<Version>& mark = flushed_[db & 15];
  Version seen = mark.load(std::memory_order_relaxed);  // mo: relaxed: the compare-and-set decides
  // mo: release [cold_store.flushed]
  while (seen < below && !mark.compare_exchange_weak(seen, below, std::memory_order_release,
                                                     std::memory_order_relaxed)) {
  }
  // mo: release [cold_store.stamp]: earlier answers must be looked up again.
  stamp_.fetch_add(1, std::memory_order_release);
  const std::shared_ptr<const Catalog> now = catalog();
  for (const Generation& generation : now->generations) {
    for (const auto& part : generation.parts()) {
      if (part->facts.largest_version >= below) continue;
      for (unsigned step = 0; step < DueCounts::steps; ++step) {
        if (part->living.at(db & 15, step) != 0) part->living.set(db & 15, step, 0);
      }
    }
  }
}

std::uint64_t RocksColdStore::size(std::uint8_t db, Timestamp now) const {
  const std::shared_ptr<const Catalog> seen = catalog();
  std::uint64_t total = 0;
  for (const Generation& generation : seen->generations) {
    for (const auto& part : generation.parts()) {
      // mo: acquire [cold_store.reveal]: until then the table counts its records.
      if (!part->revealed.load(std::memory_order_acquire)) continue;
      total += part->living.living(db, now);
    }
  }
  return total;
}

// --- iteration --------------------------------------------------------------------------------

Result<std::uint64_t> RocksColdStore::scan(
    const View& view, std::uint64_t rank, std::size_t count,
    const std::function<void(std::uint64_t, const ColdRecord&)>& visit) {
  const auto& catalog = static_cast<const Catalog&>(view);
  // So many ranks that the densest part has about `count` records in them.
  std::uint64_t width = ~std::uint64_t{0};
  for (const Generation& generation : catalog.generations) {
    for (const auto& part : generation.parts()) {
      const std::uint64_t all = part->facts.last - part->facts.first;
      const std::uint64_t each =
          std::max<std::uint64_t>(1, all / std::max<std::uint64_t>(1, part->facts.records));
      const std::uint64_t wanted = std::max<std::size_t>(count, 64);
      if (each < width / wanted) width = each * wanted;
    }
  }
  const std::uint64_t last = rank + std::min(width, ~std::uint64_t{0} - rank);
  std::unordered_set<std::string> seen;  // the first copy found is the newest
  ColdRecord found;
  std::string name;
  for (const Generation& generation : catalog.generations) {
    for (const auto& part : generation.parts()) {
      // mo: acquire [cold_store.reveal]
      if (!part->revealed.load(std::memory_order_acquire)) continue;
      if (part->facts.last < rank || part->facts.first > last) continue;
      const std::uint64_t begin = part->buckets.piece_of(std::max(rank, part->facts.first));
      const std::uint64_t end = part->buckets.piece_of(std::min(last, part->facts.last));
      for (std::uint64_t bucket = begin; bucket <= end; ++bucket) {
        const rocksdb::Status status = read_bucket(*part, bucket, found.bytes);
        if (status.IsNotFound()) continue;
        const std::string what = "cold part " + std::to_string(part->facts.number);
        if (!status.ok()) return error_of(status, what);
        BucketReader reader{found.bytes};
        BucketRecord record;
        while (reader.next(record)) {
          const std::uint64_t at = rank_of_(record.head >> 4, record.key);
          if (at < rank || at > last) continue;
          name.assign(1, static_cast<char>(record.head >> 4)).append(record.key);
          if (!seen.insert(name).second) continue;
          if (!decode_record(record, settings_.durable_clock, found.record)) {
            return Error{ErrorCode::storage_damaged, what};
          }
          found.part = part->facts.number;
          if (!is_flushed(found.record)) visit(at, found);
        }
        if (reader.damaged()) return Error{ErrorCode::storage_damaged, what};
      }
    }
  }
  return last == ~std::uint64_t{0} ? 0 : last + 1;
}

// --- figures ----------------------------------------------------------------------------------

std::size_t RocksColdStore::memory_bytes() const {
  std::uint64_t readers = 0;
  {
    const base::SharedLock open{opening_};
    if (database_ != nullptr) {
      static_cast<void>(database_->GetIntProperty(  // on failure: 0
          family_, rocksdb::DB::Properties::kEstimateTableReadersMem, &readers));
    }
  }
  std::size_t total = settings_.cache_bytes + readers;
  const std::shared_ptr<const Catalog> seen = catalog();
  for (const Generation& generation : seen->generations) {
    for (const auto& part : generation.parts()) total += part->filter.bytes() + sizeof(ColdPart);
  }
  return total;
}

ColdStats RocksColdStore::stats() const {
  ColdStats stats;
  const std::shared_ptr<const Catalog> seen = catalog();
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
  // mo: relaxed: statistics.
  stats.lookups = lookups_.load(std::memory_order_relaxed);
  stats.found = found_.load(std::memory_order_relaxed);
  stats.buckets_read = buckets_read_.load(std::memory_order_relaxed);
  stats.read_errors = read_errors_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace semel::storage
