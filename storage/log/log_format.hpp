// The journal on disk. Little-endian; docs/disk-format.md has the tables.
//
//   log/%016x.log    a segment, named by its log offset. Its size is a power of two.
//   segment          header (4,096 bytes) | records, each at a multiple of 4 | zeros
//
// A log offset is segment number * segment bytes + offset in the segment. Offsets grow over the
// whole life of a storage, so no two records ever have the same. log_record.hpp has the records.
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

/// An offset in the journal. The end of a record is the ticket of its group.
using LogOffset = std::uint64_t;

/// Of mutations as bytes (mutation_codec.hpp). The near form is in the journal alone.
enum class MutationForm : std::uint8_t { full, near };

/// What versions and times of mutations in the near form are counted from.
struct MutationBase {
  Version version = 0;
  std::uint64_t ms = 0;  ///< of the durable clock

  [[nodiscard]] bool operator==(const MutationBase&) const noexcept = default;
};

inline constexpr std::size_t segment_header_bytes = 4096;

/// The first bytes of a segment.
struct SegmentHeader {
  static constexpr std::uint64_t magic_value = 0x32474f4c'4c454d53;  // "SMELLOG2"
  std::uint64_t magic = magic_value;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;       // of the segment
  std::uint64_t salt = 0;        // random for each segment
  std::uint64_t storage_id = 0;  // of the storage it belongs to
  std::uint64_t first = 0;       // number of the first segment of the process that wrote it
  MutationBase base;             // of its mutations in the near form
  std::uint64_t digest = 0;      // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(SegmentHeader, digest));
  }
  /// Of formats 2 to 5: their records have another layout. The digest is where `base` is.
  static constexpr std::uint64_t old_magic_value = 0x31474f4c'4c454d53;  // "SMELLOG1"
  [[nodiscard]] bool is_old() const noexcept { return magic == old_magic_value; }
  [[nodiscard]] bool is_valid() const noexcept {
    if (is_old()) return base.version == XXH3_64bits(this, offsetof(SegmentHeader, base));
    return magic == magic_value && digest == right_digest();
  }
};
static_assert(sizeof(SegmentHeader) == 72);
static_assert(offsetof(SegmentHeader, base) == 48);

[[nodiscard]] inline std::string segment_name(LogOffset begin) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.log", static_cast<unsigned long long>(begin));
  return name;
}

/// The first multiple of `unit` that is not before `offset`.
[[nodiscard]] inline constexpr LogOffset round_up(LogOffset offset, LogOffset unit) noexcept {
  return (offset + unit - 1) / unit * unit;
}

}  // namespace semel::storage
