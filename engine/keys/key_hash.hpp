// The keyed hash of a key: XXH3 with a secret. Keys of 17 to 64 bytes, as most have, are hashed
// here, in the frame of the call, with the numbers of XXH3_64bits_withSecret(). Source:
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "semel/types.hpp"

namespace semel::engine {

inline constexpr std::size_t secret_bytes = 192;

static_assert(std::endian::native == std::endian::little, "numbers are copied, not swapped");

[[nodiscard, gnu::always_inline]] inline bool is_hashed_here(std::size_t key_bytes) noexcept {
  constexpr std::size_t least = 17, most = 64;
  return key_bytes - least <= most - least;
}

/// Both halves of a product of 128 bits, in one.
[[nodiscard, gnu::always_inline]] inline std::uint64_t folded_product(std::uint64_t a,
                                                                      std::uint64_t b) noexcept {
#if defined(__x86_64__)
  // The compiler keeps numbers of 128 bits on the stack between two products.
  std::uint64_t high;
  asm("mulq %[b]" : "+a"(a), "=d"(high) : [b] "r"(b) : "cc");
  return a ^ high;
#else
  __extension__ using Product = unsigned __int128;
  const Product product = Product{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#endif
}
/// The same hash of a key of any length. `secret`: secret_bytes.
[[nodiscard]] std::uint64_t hash_by_library(Bytes key, const unsigned char* secret) noexcept;

/// Of a key for which is_hashed_here(). `secret`: as above.
[[nodiscard, gnu::always_inline]] inline std::uint64_t hash_here(
    Bytes key, const unsigned char* secret) noexcept {
  const auto word = [](const void* from) __attribute__((always_inline)) {
    std::uint64_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const auto mix = [&](const char* from, std::size_t at) __attribute__((always_inline)) {
    return folded_product(word(from) ^ word(secret + at), word(from + 8) ^ word(secret + at + 8));
  };
  const char* const end = key.data() + key.size();
  std::uint64_t hash = key.size() * 0x9E37'79B1'85EB'CA87U;
  if (key.size() > 32) hash += mix(key.data() + 16, 32) + mix(end - 32, 48);
  hash += mix(key.data(), 0) + mix(end - 16, 16);
  hash = (hash ^ hash >> 37) * 0x1656'6791'9E37'79F9U;
  return hash ^ hash >> 32;
}

/// Between the hash that a key has in database `db` and the one that it has in database 0; both
/// ways.
[[nodiscard]] constexpr std::uint64_t moved_by_db(std::uint64_t hash, std::uint8_t db) noexcept {
  return hash ^ (std::uint64_t{db} * 0x9E37'79B9'7F4A'7C15U);
}

/// Keys of two databases are different keys.
[[nodiscard, gnu::always_inline]] inline std::uint64_t key_hash(
    std::uint8_t db, Bytes key, const unsigned char* secret) noexcept {
  const std::uint64_t hash =
      is_hashed_here(key.size()) ? hash_here(key, secret) : hash_by_library(key, secret);
  return moved_by_db(hash, db);
}

}  // namespace semel::engine
