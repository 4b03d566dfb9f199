#include "storage/cold/cold_reader.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "storage/archive/rocks_status.hpp"
#include "storage/cold/cold_bucket.hpp"
#include "storage/cold/cold_format.hpp"

namespace semel::storage {

Timestamp ColdReader::may_hold_until(std::uint64_t rank) const noexcept {
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

rocksdb::Status ColdReader::read_bucket(const ColdPart& part, std::uint64_t bucket,
                                        std::string& bytes) {
  lookups_.buckets_read.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
  return files_.get(cold_key(part.facts.number, ColdKey::bucket, bucket), bytes);
}

Result<bool> ColdReader::find_in(const ColdPart& part, std::uint64_t rank, std::uint8_t db,
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

Result<bool> ColdReader::find(std::uint64_t rank, std::uint8_t db, Bytes key, ColdRecord& found) {
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

void ColdReader::superseded(std::uint64_t rank, std::uint64_t number, std::uint8_t db,
                            Timestamp due) noexcept {
  const Catalog& catalog = catalogs_.current();
  for (const Generation& generation : catalog.generations) {
    ColdPart* const part = generation.part_of(rank);
    if (part == nullptr || (number != 0 && part->facts.number != number)) continue;
    part->living.take(db, due);
    return;
  }
}

std::uint64_t ColdReader::size(std::uint8_t db, Timestamp now) const {
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

Result<std::uint64_t> ColdReader::scan(
    const Catalog& catalog, std::uint64_t rank, std::size_t count,
    const std::function<void(std::uint64_t, const ColdRecord&)>& visit) {
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

void ColdReader::add_to(ColdStats& stats) const noexcept {
  // mo: relaxed: statistics.
  stats.lookups = lookups_.all.load(std::memory_order_relaxed);
  stats.found = lookups_.found.load(std::memory_order_relaxed);
  stats.buckets_read = lookups_.buckets_read.load(std::memory_order_relaxed);
  stats.read_errors = lookups_.errors.load(std::memory_order_relaxed);
}

}  // namespace semel::storage
