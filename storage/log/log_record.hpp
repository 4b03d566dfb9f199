// Records of a journal or of a replicated log: their layout, and how they are found again.
// Little-endian; docs/disk-format.md has the tables.
//
//   short   u32: u8 payload bytes, u3 type, u20 check, 1 | u32 seal | payload | zeros
//   long    u32: u15 check of the offset, u16 check, 0 | u32: u29 payload bytes, u3 type
//           | u64 seal | payload | zeros
//
// A record begins and ends at a multiple of 4; groups of more than 255 bytes are long. The top bit
// of its first word tells the two apart.
//
// Each record has a key: what its head says, mixed with the segment's salt and the log offset. The
// check is a part of the key, and the seal is a checksum of the payload with the key as its seed.
// So neither the bytes that a user stores, nor a record of another offset or of an earlier use of
// the segment can look like a record. The check of the offset is a part of the key of an empty head
// (0): it is valid alone, as a process may be killed between the two words.
//
// A record is written in the order of its head's words, payload, seal. A killed process leaves one
// of
//   zeros          it had reserved the space only
//   a head         or its first word; with some of the payload; the last word of the seal is 0
//   a record
// Anything else is damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "semel/types.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

enum class RecordType : std::uint8_t {
  whole = 1,   ///< one group of mutations in the full form
  part = 2,    ///< u64 offset of the first part | u32 index | u32 count | a piece of such a group
  filler = 3,  ///< no data: the rest of a segment, or an offset reserved for a joined commit
  near = 4,    ///< one group of mutations in the near form
};

inline constexpr std::size_t record_unit = 4;       ///< records begin and end at multiples of it
inline constexpr std::size_t record_bytes_min = 8;  ///< of a record without payload
inline constexpr std::size_t short_payload_max = 255;
inline constexpr std::size_t part_header_bytes = 16;

/// Where the parts of a record are.
struct RecordShape {
  bool is_long = false;
  std::size_t payload = 0;  ///< bytes

  [[nodiscard]] static constexpr RecordShape of(std::size_t payload) noexcept {
    return {payload > short_payload_max, payload};
  }
  /// A filler that takes so many bytes, a multiple of 4 and at least record_bytes_min.
  [[nodiscard]] static constexpr RecordShape filler_of(std::size_t bytes) noexcept {
    const bool is_long = bytes - record_bytes_min > short_payload_max;
    return {is_long, bytes - (is_long ? 16 : 8)};
  }
  [[nodiscard]] constexpr std::size_t header_bytes() const noexcept { return is_long ? 16 : 8; }
  [[nodiscard]] constexpr std::size_t seal_at() const noexcept { return is_long ? 8 : 4; }
  /// Of the seal's last word, which is never 0 in a complete record.
  [[nodiscard]] constexpr std::size_t seal_end_at() const noexcept { return header_bytes() - 4; }
  /// The payload and the zeros behind it, which the seal covers as well.
  [[nodiscard]] constexpr std::size_t padded() const noexcept {
    return round_up(payload, record_unit);
  }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return header_bytes() + padded(); }
};

/// The bytes of a record with a payload of `payload_bytes`.
[[nodiscard]] inline constexpr std::size_t record_bytes(std::size_t payload) noexcept {
  return RecordShape::of(payload).bytes();
}

[[nodiscard]] inline std::uint64_t mix(std::uint64_t word) noexcept {
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93;
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93;
  return word ^ (word >> 32);
}

/// The key of a record: `said`, the fields of its head, mixed with its place. 0: of no fields.
[[nodiscard]] inline std::uint64_t record_key(std::uint64_t salt, LogOffset offset,
                                              std::uint64_t said) noexcept {
  return mix(mix(salt ^ said) + offset);
}

/// The words in front of a seal, and the key that checks both.
struct RecordHead {
  static constexpr std::uint32_t top = std::uint32_t{1} << 31;
  static constexpr std::uint32_t offset_check = (std::uint32_t{1} << 15) - 1;

  RecordType type = RecordType::filler;
  RecordShape shape;
  std::uint64_t key = 0;
  std::uint32_t first = 0;
  std::uint32_t second = 0;  ///< of a long record, never 0

  RecordHead(std::uint64_t salt, LogOffset offset, RecordType of, RecordShape wanted) noexcept
      : type(of), shape(wanted) {
    const auto bytes = static_cast<std::uint32_t>(shape.payload);
    const auto kind = static_cast<std::uint32_t>(type);
    if (!shape.is_long) {
      const std::uint32_t said = bytes | kind << 8;
      key = record_key(salt, offset, said);
      first = said | static_cast<std::uint32_t>(key >> 44) << 11 | top;
      return;
    }
    second = bytes | kind << 29;
    key = record_key(salt, offset, std::uint64_t{second} << 32);
    first = offset_check_of(salt, offset) | static_cast<std::uint32_t>(key >> 48) << 15;
  }
  /// Of a long record: what its first word shows even if the second one was not written.
  [[nodiscard]] static std::uint32_t offset_check_of(std::uint64_t salt,
                                                     LogOffset offset) noexcept {
    // Never 0, or the first word might be.
    const auto check = static_cast<std::uint32_t>(record_key(salt, offset, 0) >> 49);
    return check != 0 ? check : 1;
  }
  /// What two words say, whether or not it is true: see is_head().
  [[nodiscard]] static RecordHead read(std::uint64_t salt, LogOffset offset, std::uint32_t first,
                                       std::uint32_t second) noexcept {
    if (first >= top) {
      return {salt, offset, static_cast<RecordType>(first >> 8 & 7), {false, first & 0xff}};
    }
    return {salt, offset, static_cast<RecordType>(second >> 29), {true, second << 3 >> 3}};
  }
  [[nodiscard]] bool is_head(std::uint32_t first_found, std::uint32_t second_found) const noexcept {
    const bool is_known = type >= RecordType::whole && type <= RecordType::near;
    return is_known && first == first_found && (!shape.is_long || second == second_found);
  }
  /// The bytes that a seal covers; none of a filler, which may be long.
  [[nodiscard]] Bytes sealed_part(const char* payload) const noexcept {
    return type == RecordType::filler ? Bytes{} : Bytes{payload, shape.padded()};
  }
  /// Of a short record the upper half counts. `sealed` is what sealed_part() returns.
  [[nodiscard]] std::uint64_t seal_of(Bytes sealed) const noexcept {
    return seal_of_sum(XXH3_64bits_withSeed(sealed.data(), sealed.size(), key));
  }
  /// No changed bit turns the last word of a seal into 0, which says that the record is unfinished.
  [[nodiscard]] static constexpr std::uint64_t seal_of_sum(std::uint64_t sum) noexcept {
    const std::uint64_t upper = sum >> 32;
    const bool is_one_bit_or_none = (upper & (upper - 1)) == 0;
    return is_one_bit_or_none ? sum ^ std::uint64_t{0xffff'ffff} << 32 : sum;
  }
};

/// The bytes found where a record may begin.
struct FoundRecord {
  enum class Is : std::uint8_t {
    zeros,    ///< a word of zeros: nothing was begun here
    nothing,  ///< no record
    begun,    ///< a head without a seal
    wrong,    ///< a head whose seal does not fit the payload
    whole,
  };
  Is is = Is::nothing;
  RecordType type = RecordType::filler;
  std::size_t bytes = 0;  ///< of the record, which ends in the segment
  Bytes payload;          ///< of a whole one

  [[nodiscard]] bool has_head() const noexcept {
    return is == Is::begun || is == Is::wrong || is == Is::whole;
  }
};

/// Reads at `at`, a multiple of the segment's unit. Behind the last place for a record: nothing.
[[nodiscard]] FoundRecord record_at(std::string_view segment, const SegmentHeader& header,
                                    std::size_t at) noexcept;

/// The same of a record alone: `bytes` are those from `at` on, up to its end at least. Not of a
/// segment of an earlier format.
[[nodiscard]] FoundRecord record_of(std::string_view bytes, const SegmentHeader& header,
                                    std::size_t at) noexcept;

/// Records of the segment begin and end at multiples of it.
[[nodiscard]] inline std::size_t record_unit_of(const SegmentHeader& header) noexcept {
  return header.is_old() ? 8 : record_unit;
}
/// Less room than this at the end of the segment stays zero.
[[nodiscard]] inline std::size_t record_bytes_min_of(const SegmentHeader& header) noexcept {
  return header.is_old() ? 16 : record_bytes_min;
}

}  // namespace semel::storage
