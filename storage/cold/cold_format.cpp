#include "storage/cold/cold_format.hpp"

#include <xxhash.h>

#include <cstring>

#include "base/coding.hpp"
#include "semel/limits.hpp"
#include "storage/archive/rocks_status.hpp"

namespace semel::storage {

namespace {

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
       {cold_format_version, facts.number, facts.generation, facts.first, facts.last, facts.records,
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
  return reader.is_good() && format != 0 && format <= cold_format_version &&
         facts.first <= facts.last && facts.buckets != 0 && facts.filter_lines != 0 &&
         facts.filter_lines <= facts.records + 1;
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

std::uint64_t cold_id(std::uint64_t seed) noexcept {
  const std::uint64_t id = XXH3_64bits(&seed, sizeof seed);
  return id == 0 ? 1 : id;
}

Result<ColdDescription> read_cold_description(rocksdb::DB& database,
                                              rocksdb::ColumnFamilyHandle* family) {
  ColdDescription is;
  std::string bytes;
  rocksdb::Status status =
      database.Get({}, family, store_facts_key(StoreFacts::description), &bytes);
  if (status.IsNotFound()) return is;
  if (!status.ok()) return error_of(status, "cold store");
  base::ByteReader fields{bytes};
  is.format = fields.fixed<std::uint64_t>();
  const auto shards = fields.fixed<std::uint64_t>();
  is.seed = fields.fixed<std::uint64_t>();
  if (!fields.is_good() || is.format == 0) {
    return Error{ErrorCode::storage_damaged, "the cold store's description is not complete"};
  }
  if (is.format > cold_format_version) {
    return Error{ErrorCode::storage_newer, "cold store of format " + std::to_string(is.format)};
  }
  is.shard_count = static_cast<std::uint32_t>(shards);
  status = database.Get({}, family, store_facts_key(StoreFacts::generation), &bytes);
  if (status.IsNotFound()) return is;
  if (!status.ok()) return error_of(status, "cold store");
  base::ByteReader generation{bytes};
  is.generation = generation.fixed<std::uint64_t>();
  if (generation.is_good()) return is;
  return Error{ErrorCode::storage_damaged, "the cold store's generation is not complete"};
}

std::string store_facts_key(StoreFacts index) {
  return cold_key(0, ColdKey::facts, static_cast<std::uint8_t>(index));
}

}  // namespace semel::storage
