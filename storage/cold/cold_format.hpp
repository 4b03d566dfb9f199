// The keys and values of a cold store in RocksDB: docs/disk-format.md.
//
//   key   big-endian u64 part | u8 what | big-endian u32 index
//   part 0            what 0, index 0: format, shard count, seed; index 1: flushed versions
//   part 1 and above  what 0: its facts and counts; 1: a piece of its filter; 2: a bucket
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "semel/result.hpp"
#include "semel/types.hpp"
#include "storage/cold/cold_parts.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

inline constexpr const char* cold_family = "cold";
/// 1: strings and claims only; 2: hashes as well; 3: all kinds.
inline constexpr std::uint64_t cold_format_version = 3;

/// Of the store as a whole: the third part of their keys.
enum class StoreFacts : std::uint8_t { description = 0, flushes = 1, generation = 2 };
[[nodiscard]] std::string store_facts_key(StoreFacts index);

/// The third part of a key in the column family.
enum class ColdKey : char { facts = 0, filter = 1, bucket = 2 };
[[nodiscard]] std::string cold_key(std::uint64_t part, ColdKey what, std::uint64_t index);
/// The part of a key; none: it is no key of a cold store.
[[nodiscard]] std::optional<std::uint64_t> cold_part_of(std::string_view key) noexcept;

/// What a cold store records of itself, without its parts. Format 0: it is new.
struct ColdDescription {
  std::uint64_t format = 0;
  std::uint32_t shard_count = 0;
  std::uint64_t seed = 0;
  std::uint64_t generation = 0;  ///< the newest that was begun
};
/// Errors: storage_damaged, storage_newer, storage_failed.
[[nodiscard]] Result<ColdDescription> read_cold_description(rocksdb::DB& database,
                                                            rocksdb::ColumnFamilyHandle* family);
/// The id of a store in its mark. The seed itself stays secret.
[[nodiscard]] std::uint64_t cold_id(std::uint64_t seed) noexcept;

/// A part's facts and counts as bytes, and back.
[[nodiscard]] std::string encode_facts(const ColdPart& part, const DurableClock& durable_clock);
[[nodiscard]] bool decode_facts(Bytes bytes, const DurableClock& durable_clock, PartFacts& facts,
                                Bytes& counts);
[[nodiscard]] bool decode_counts(Bytes counts, ColdPart& part);

}  // namespace semel::storage
