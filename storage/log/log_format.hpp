// The log on disk. Little-endian; docs/disk-format.md has the tables.
//
//   log/%016x.log    a segment, named by the place where it begins. Its size is a power of two.
//   segment          header (4,096 bytes) | records, each at a multiple of 8 | zeros
//   record           u64 head: u32 payload bytes, u8 type, u24 check | u64 seal | payload
//
// A place is number * size + offset, so places grow over the whole life of a storage and a record's
// place is its own. Head and seal are checksums keyed by the segment's salt and the place: bytes
// that a user stored can never look like a record, nor can a record of another place.
//
// A record is written head, payload, seal. What a killed process leaves is one of
//   nothing        it had taken the place and died: zeros
//   a head alone   and perhaps some of the payload; the seal is 0
//   a record
// Anything else is damage.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "semel/journal.hpp"
#include "semel/types.hpp"

namespace semel::storage {

/// A place in the log. Also a ticket: that of the end of a record.
using Place = std::uint64_t;

enum class RecordType : std::uint8_t {
  whole = 1,   ///< one group of mutations
  part = 2,    ///< u64 place of the first part | u32 index | u32 count | a piece of a group
  filler = 3,  ///< nothing: the rest of a segment, or a number taken for something else
};

inline constexpr std::size_t segment_header_bytes = 4096;
inline constexpr std::size_t record_header_bytes = 16;
inline constexpr std::size_t part_header_bytes = 16;

/// What a segment begins with.
struct SegmentHeader {
  static constexpr std::uint64_t magic_value = 0x31474f4c'4c454d53;  // "SMELLOG1"
  std::uint64_t magic = magic_value;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;       // of the segment
  std::uint64_t salt = 0;        // random, new with each segment
  std::uint64_t storage_id = 0;  // of the storage it belongs to
  std::uint64_t first = 0;       // number of the first segment of the process that wrote it
  std::uint64_t digest = 0;      // of all before

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(SegmentHeader, digest));
  }
};
static_assert(sizeof(SegmentHeader) == 56);

[[nodiscard]] inline std::string segment_name(Place begin) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.log", static_cast<unsigned long long>(begin));
  return name;
}

[[nodiscard]] inline constexpr std::size_t record_bytes(std::size_t payload) noexcept {
  return record_header_bytes + ((payload + 7) & ~std::size_t{7});
}

[[nodiscard]] inline std::uint64_t mix(std::uint64_t word) noexcept {
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93;
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93;
  return word ^ (word >> 32);
}

/// Never 0: its top bit is set.
[[nodiscard]] inline std::uint64_t head_of(std::uint64_t salt, Place place, RecordType type,
                                           std::uint32_t payload) noexcept {
  const std::uint64_t low = payload | (static_cast<std::uint64_t>(type) << 32);
  const std::uint64_t check = mix(mix(salt ^ low) + place) >> 40;
  return low | (check << 40) | (std::uint64_t{1} << 63);
}
[[nodiscard]] inline std::uint32_t payload_of(std::uint64_t head) noexcept {
  return static_cast<std::uint32_t>(head);
}
[[nodiscard]] inline RecordType type_of(std::uint64_t head) noexcept {
  return static_cast<RecordType>(head >> 32 & 0xff);
}
[[nodiscard]] inline bool is_head(std::uint64_t salt, Place place, std::uint64_t head) noexcept {
  return head == head_of(salt, place, type_of(head), payload_of(head));
}
/// What a seal is about: of a filler, which may be long, its head alone.
[[nodiscard]] inline Bytes sealed_part(std::uint64_t head, const char* payload) noexcept {
  return type_of(head) == RecordType::filler ? Bytes{} : Bytes{payload, payload_of(head)};
}
/// Never 0.
[[nodiscard]] inline std::uint64_t seal_of(std::uint64_t salt, std::uint64_t head,
                                           Bytes payload) noexcept {
  const std::uint64_t seal = XXH3_64bits_withSeed(payload.data(), payload.size(), salt ^ mix(head));
  return seal != 0 ? seal : 1;
}

}  // namespace semel::storage
