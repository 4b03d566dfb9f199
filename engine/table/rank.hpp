// A key's rank: its 64 hash bits in the order in which the table is walked. What a cold store
// (semel/cold.hpp) sees of the engine's hash.
//
//   rank   shard, as many bits as there are | directory bits, reversed: 16 | 26 bits that the table
//          does not use | line bits: 16 | the shard bits that are not used, to make 64
//
// Segments are walked by their directory index with its bits reversed (scan.cpp), so the records of
// a segment have ranks of one stretch, and a walk over the table meets the stretches in order.
#pragma once

#include <cstdint>

#include "engine/table/slot.hpp"

namespace semel::engine {

constexpr std::uint64_t reverse16(std::uint64_t bits) noexcept {
  bits = (bits & 0x5555) << 1 | (bits >> 1 & 0x5555);
  bits = (bits & 0x3333) << 2 | (bits >> 2 & 0x3333);
  bits = (bits & 0x0f0f) << 4 | (bits >> 4 & 0x0f0f);
  return (bits & 0x00ff) << 8 | (bits >> 8 & 0x00ff);
}

/// The first rank of a directory index of a shard. `reversed_index`: its bits reversed, 0..2^16.
constexpr std::uint64_t first_rank(unsigned shard, std::uint64_t reversed_index,
                                   unsigned shard_bits) noexcept {
  const std::uint64_t high = shard_bits == 0 ? 0 : std::uint64_t{shard} << (64 - shard_bits);
  // Behind the last index the next shard begins; behind the last shard the ranks begin anew.
  return high + (reversed_index << (48 - shard_bits));
}

constexpr std::uint64_t rank_of(std::uint64_t hash, unsigned shard_bits) noexcept {
  const std::uint64_t shard = hash >> 32 & 0x3f;
  const std::uint64_t used = shard & ((std::uint64_t{1} << shard_bits) - 1);
  const std::uint64_t rest = (hash >> 38) << 16 | (hash >> 16 & 0xffff);
  return first_rank(static_cast<unsigned>(used), reverse16(hash & 0xffff), shard_bits) |
         rest << (6 - shard_bits) | shard >> shard_bits;
}

/// The hash bits a rank was made of, as far as the table uses them.
constexpr HashBits hash_of_rank(std::uint64_t rank, unsigned shard_bits) noexcept {
  const std::uint64_t used = shard_bits == 0 ? 0 : rank >> (64 - shard_bits);
  const std::uint64_t unused = rank & ((std::uint64_t{1} << (6 - shard_bits)) - 1);
  const std::uint64_t line = rank >> (6 - shard_bits) & 0xffff;
  const std::uint64_t directory = reverse16(rank >> (48 - shard_bits) & 0xffff);
  return {directory | line << 16 | (used | unused << shard_bits) << 32};
}

static_assert(hash_of_rank(rank_of(0x0123'4567'89ab'cdef, 4), 4).bits ==
              HashBits::of(0x0123'4567'89ab'cdef).bits);
static_assert(hash_of_rank(rank_of(0xfedc'ba98'7654'3210, 0), 0).bits ==
              HashBits::of(0xfedc'ba98'7654'3210).bits);
static_assert(hash_of_rank(rank_of(0xfedc'ba98'7654'3210, 6), 6).bits ==
              HashBits::of(0xfedc'ba98'7654'3210).bits);

}  // namespace semel::engine
