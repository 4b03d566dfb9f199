// Lookups, whole databases, iteration and figures of a cold store.
#include "storage/cold/cold_store.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_bucket.hpp"

namespace semel::storage {

Timestamp RocksColdStore::may_hold_until(std::uint64_t rank) const noexcept {
  const Catalog& catalog = catalogs_.current();
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
  lookups_.buckets_read.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  return files_.get(cold_key(part.facts.number, ColdKey::bucket, bucket), bytes);
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
    if (!decode_record(record, clock_.current(), found.record)) break;
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
  const std::shared_ptr<const Catalog> seen = catalogs_.now();
  lookups_.all.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  for (const Generation& generation : seen->generations) {
    const ColdPart* const part = generation.part_of(rank);
    // mo: acquire [cold_store.reveal]
    if (part == nullptr || !part->revealed.load(std::memory_order_acquire)) continue;
    if (!part->filter.may_hold(rank)) continue;
    Result<bool> there = find_in(*part, rank, db, key, found);
    if (!there.ok()) {
      lookups_.errors.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
      return there;
    }
    if (!*there) continue;
    if (flushes_.is_flushed(found.record)) return false;     // older copies are flushed as well
    lookups_.found.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
    return true;
  }
  return false;
}

void RocksColdStore::superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                                Timestamp due) noexcept {
  const Catalog& catalog = catalogs_.current();
  for (const Generation& generation : catalog.generations) {
    ColdPart* const part = generation.part_of(rank);
    if (part == nullptr || (number != 0 && part->facts.number != number)) continue;
    part->living.take(db, due);
    return;
  }
}

// --- whole databases --------------------------------------------------------------------------

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

std::uint64_t RocksColdStore::size(std::uint8_t db, Timestamp now) const {
  const std::shared_ptr<const Catalog> seen = catalogs_.now();
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
          if (!decode_record(record, clock_.current(), found.record)) {
            return Error{ErrorCode::storage_damaged, what};
          }
          found.part = part->facts.number;
          if (!flushes_.is_flushed(found.record)) visit(at, found);
        }
        if (reader.damaged()) return Error{ErrorCode::storage_damaged, what};
      }
    }
  }
  return last == ~std::uint64_t{0} ? 0 : last + 1;
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
  // mo: relaxed: statistics.
  stats.lookups = lookups_.all.load(std::memory_order_relaxed);
  stats.found = lookups_.found.load(std::memory_order_relaxed);
  stats.buckets_read = lookups_.buckets_read.load(std::memory_order_relaxed);
  stats.read_errors = lookups_.errors.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace semel::storage
