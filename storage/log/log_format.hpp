// The log on disk. Little-endian; docs/disk-format.md has the tables.
//
//   log/%016x.log    a segment, named by its log offset. Its size is a power of two.
//   segment          header (4,096 bytes) | records, each at a multiple of 8 | zeros
//   record           u64 head: u32 payload bytes, u8 type, u24 check | u64 seal | payload
//
// A log offset is segment number * segment bytes + offset in the segment. Offsets grow over the
// whole life of a storage, so no two records ever have the same. Head and seal are checksums keyed
// by the segment's salt and the offset: neither the bytes that a user stores nor a record of
// another offset can look like a record.
//
// A record is written in the order head, payload, seal. A killed process leaves one of
//   zeros          it had reserved the space only
//   a head         with some of the payload; the seal is 0
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

/// An offset in the log. The end of a record is the ticket of its group.
using LogOffset = std::uint64_t;

/// Of mutations as bytes (mutation_codec.hpp). The near form is in the log alone.
enum class MutationForm : std::uint8_t { full, near };

/// What versions and times of mutations in the near form are counted from.
struct MutationBase {
  Version version = 0;
  std::uint64_t ms = 0;  ///< of the durable clock

  [[nodiscard]] bool operator==(const MutationBase&) const noexcept = default;
};

enum class RecordType : std::uint8_t {
  whole = 1,   ///< one group of mutations
  part = 2,    ///< u64 offset of the first part | u32 index | u32 count | a piece of a group
  filler = 3,  ///< no data: the rest of a segment, or an offset reserved for a joined commit
};

inline constexpr std::size_t segment_header_bytes = 4096;
inline constexpr std::size_t record_header_bytes = 16;
inline constexpr std::size_t part_header_bytes = 16;

/// The first bytes of a segment.
struct SegmentHeader {
  static constexpr std::uint64_t magic_value = 0x31474f4c'4c454d53;  // "SMELLOG1"
  std::uint64_t magic = magic_value;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;       // of the segment
  std::uint64_t salt = 0;        // random for each segment
  std::uint64_t storage_id = 0;  // of the storage it belongs to
  std::uint64_t first = 0;       // number of the first segment of the process that wrote it
  std::uint64_t digest = 0;      // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(SegmentHeader, digest));
  }
};
static_assert(sizeof(SegmentHeader) == 56);

[[nodiscard]] inline std::string segment_name(LogOffset begin) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.log", static_cast<unsigned long long>(begin));
  return name;
}

/// The first multiple of `unit` that is not before `offset`.
[[nodiscard]] inline constexpr LogOffset round_up(LogOffset offset, LogOffset unit) noexcept {
  return (offset + unit - 1) / unit * unit;
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
[[nodiscard]] inline std::uint64_t head_of(std::uint64_t salt, LogOffset offset, RecordType type,
                                           std::uint32_t payload) noexcept {
  const std::uint64_t low = payload | (static_cast<std::uint64_t>(type) << 32);
  const std::uint64_t check = mix(mix(salt ^ low) + offset) >> 40;
  return low | (check << 40) | (std::uint64_t{1} << 63);
}
[[nodiscard]] inline std::uint32_t payload_of(std::uint64_t head) noexcept {
  return static_cast<std::uint32_t>(head);
}
[[nodiscard]] inline RecordType type_of(std::uint64_t head) noexcept {
  return static_cast<RecordType>(head >> 32 & 0xff);
}
[[nodiscard]] inline bool is_head(std::uint64_t salt, LogOffset offset,
                                  std::uint64_t head) noexcept {
  return head == head_of(salt, offset, type_of(head), payload_of(head));
}
/// The bytes that a seal covers; none of a filler, which may be long.
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
