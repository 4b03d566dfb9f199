#include "storage/cold/collected_records.hpp"

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"
#include "storage/cold/cold_format.hpp"

namespace semel::storage {

namespace {

constexpr std::size_t bucket_bytes = 4096;
constexpr std::size_t bucket_records_max = 200;

}  // namespace

void CollectedRecords::check_invariants() const noexcept {
  SEMEL_ASSERT(places_.size() == collected_.size());
  if (collected_.empty()) {
    SEMEL_ASSERT(bytes_.empty());
    return;
  }
  const Collected& last = collected_.back();
  SEMEL_ASSERT(last.at + last.key_bytes + last.value_bytes == bytes_.size());
}

void CollectedRecords::add(std::uint64_t rank, const Mutation& record) {
  const std::size_t at = bytes_.size();
  bytes_.append(record.key);
  const std::uint8_t head = encode_value(record, clock_.current(), bytes_);
  places_.push_back({rank, record.version});
  collected_.push_back({at, clock_.current().to_durable_ms(record.due),
                        static_cast<std::uint32_t>(record.key.size()),
                        static_cast<std::uint32_t>(bytes_.size() - at - record.key.size()), head});
  check_invariants();
}

void CollectedRecords::clear() noexcept {
  bytes_.clear();
  places_.clear();
  collected_.clear();
}

std::size_t CollectedRecords::memory_bytes() const noexcept {
  return bytes_.size() + places_.size() * (sizeof(ColdPlace) + sizeof(Collected));
}

BucketRecord CollectedRecords::record_at(std::size_t index) const noexcept {
  SEMEL_ASSERT(index < collected_.size());
  const Collected& one = collected_[index];
  const char* const bytes = bytes_.data() + one.at;
  return {.version = places_[index].version,
          .due = one.due,
          .head = one.head,
          .key = {bytes, one.key_bytes},
          .value = {bytes + one.key_bytes, one.value_bytes}};
}

Mutation CollectedRecords::record(std::size_t index) const {
  Mutation record;
  const bool is_read = decode_record(record_at(index), clock_.current(), record);
  SEMEL_ASSERT(is_read);  // add() wrote it
  static_cast<void>(is_read);
  return record;
}

PartFacts CollectedRecords::facts_of(std::uint64_t first, std::uint64_t last,
                                     unsigned filter_bits) const {
  SEMEL_ASSERT(first <= last && !places_.empty());
  check_invariants();
  PartFacts facts;
  facts.first = first;
  facts.last = last;
  facts.records = places_.size();
  facts.filter_lines = ColdFilter::lines_for(facts.records, filter_bits);
  const std::size_t each =
      bytes_.size() / facts.records + 6;  // about the size of a version and an end
  const std::size_t in_bucket = std::clamp<std::size_t>(bucket_bytes / each, 1, bucket_records_max);
  facts.buckets = (facts.records + in_bucket - 1) / in_bucket;
  SEMEL_ASSERT(facts.buckets != 0 && facts.filter_lines != 0);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Timestamp due = clock_.current().from_durable_ms(collected_[i].due);
    facts.databases |= std::uint64_t{1} << (collected_[i].head >> 4);
    facts.largest_version = std::max(facts.largest_version, places_[i].version);
    facts.latest_end = std::max(facts.latest_end, due);
    if (due == no_end) continue;
    facts.earliest_end = std::min(facts.earliest_end, due);
    facts.latest_finite_end = std::max(facts.latest_finite_end, due);
  }
  return facts;
}

void CollectedRecords::fill(ColdPart& part) const {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    part.filter.add(places_[i].rank);
    part.living.add(collected_[i].head >> 4, clock_.current().from_durable_ms(collected_[i].due));
  }
}

std::vector<std::uint32_t> CollectedRecords::order_of(const ColdPart& part) const {
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

rocksdb::Status CollectedRecords::write_buckets(rocksdb::SstFileWriter& file,
                                                const ColdPart& part) const {
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

}  // namespace semel::storage
