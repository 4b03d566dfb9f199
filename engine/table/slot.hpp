// The 64-bit word of a table slot, and how a hash is spread over the table.
//
//   bit 63      frozen     the segment is being replaced; the word will not change again
//   bit 62      tombstone  bits 0..61 are the version at which the record ended
//   bits 59..61 distance   how many lines after its home the record lies (0..7)
//   bits 36..58 tag        the hash bits that choose segment and step, see below
//   bits 0..35  handle     where the record is, in units of 8 bytes from the region's base; 0: none
//
//   states      0 -> record -> record .. -> tombstone -> (frozen anything). A slot never becomes 0
//               again within its segment, so the first empty slot of a key's probe sequence only
//               moves forward, and two inserters of one key always meet in the same slot.
#pragma once

#include <cstdint>

#include "semel/types.hpp"

namespace semel::engine {

using Handle = std::uint64_t;  ///< 1..2^36 - 1
using SlotWord = std::uint64_t;

inline constexpr unsigned slots_per_line = 8;
inline constexpr unsigned probe_lines_max = 8;
inline constexpr unsigned depth_max = 16;  ///< hash bits that choose a segment
inline constexpr std::uint32_t directory_size = 1U << depth_max;  ///< words of a directory

/// The parts of a hash. Only 38 bits are used, so that a timer can name a record's position:
///   bits 0..15 directory, bits 16..31 line, bits 32..37 shard.
struct HashBits {
  std::uint64_t bits = 0;

  static constexpr std::uint64_t mask = (std::uint64_t{1} << 38) - 1;
  static constexpr HashBits of(std::uint64_t hash) noexcept { return {hash & mask}; }

  [[nodiscard]] constexpr std::uint32_t directory() const noexcept {
    return static_cast<std::uint32_t>(bits & 0xffff);
  }
  [[nodiscard]] constexpr std::uint32_t line_bits() const noexcept {
    return static_cast<std::uint32_t>((bits >> 16) & 0xffff);
  }
  [[nodiscard]] constexpr std::uint32_t shard() const noexcept {
    return static_cast<std::uint32_t>((bits >> 32) & 0x3f);
  }
  /// Home line of the record in a segment of `line_count` lines.
  [[nodiscard]] constexpr std::uint32_t line(std::uint32_t line_count) const noexcept {
    return (line_bits() * line_count) >> 16;
  }
  /// 23 bits kept in the slot, the directory's and six of the line's: enough to find the home
  /// line's step and the next directory bit without reading the record. The highest is always one,
  /// so that the upper half of a slot with a record is never zero.
  [[nodiscard]] constexpr std::uint64_t tag() const noexcept {
    return (bits & 0x3f'ffff) | (std::uint64_t{1} << 22);
  }
};

namespace slot {

inline constexpr SlotWord frozen = SlotWord{1} << 63;
inline constexpr SlotWord tombstone = SlotWord{1} << 62;
inline constexpr unsigned handle_width = 36;
inline constexpr SlotWord handle_mask = (SlotWord{1} << handle_width) - 1;
inline constexpr unsigned distance_shift = 59;
inline constexpr SlotWord match_mask = ~(handle_mask | frozen);  // tombstone, distance, tag
inline constexpr Version version_mask = tombstone - 1;

constexpr SlotWord make(std::uint64_t tag, unsigned distance, Handle handle) noexcept {
  return (SlotWord{distance} << distance_shift) | (tag << handle_width) | handle;
}
constexpr SlotWord make_tombstone(Version version) noexcept {
  return tombstone | (version & version_mask);
}
constexpr bool is_frozen(SlotWord word) noexcept {
  return (word & frozen) != 0;
}
constexpr bool is_empty(SlotWord word) noexcept {
  return (word & ~frozen) == 0;
}
constexpr bool is_tombstone(SlotWord word) noexcept {
  return (word & tombstone) != 0;
}
constexpr bool is_record(SlotWord word) noexcept {
  return !is_empty(word) && !is_tombstone(word);
}
constexpr Handle handle(SlotWord word) noexcept {
  return word & handle_mask;
}
constexpr std::uint64_t tag(SlotWord word) noexcept {
  return (word >> handle_width) & ((SlotWord{1} << 23) - 1);
}
constexpr unsigned distance(SlotWord word) noexcept {
  return static_cast<unsigned>(word >> distance_shift) & 7U;
}
constexpr Version version(SlotWord word) noexcept {
  return word & version_mask;
}
/// Lines to step from one probe to the next, odd, so that a segment is not walked in a short ring.
constexpr std::uint32_t step(std::uint64_t tag) noexcept {
  return static_cast<std::uint32_t>((tag >> 16) & 0x3f) * 2 + 1;
}
/// The line probed after `line`, in a segment of `line_count` lines.
constexpr std::uint32_t next_line(std::uint32_t line, std::uint32_t step,
                                  std::uint32_t line_count) noexcept {
  line += step;
  while (line >= line_count) line -= line_count;
  return line;
}

}  // namespace slot
}  // namespace semel::engine
