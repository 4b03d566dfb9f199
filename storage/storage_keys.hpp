// The names of things in the database, and how a blob is closed.
//
//   column family "default"  "format", "anchor", "versions": storage_meta.hpp
//   column family "journal"  big-endian u64 span | big-endian u64 ticket -> blob
//   blob                     u64 XXH3-64 of what follows | mutations (mutation_codec.hpp)
#pragma once

#include <xxhash.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "semel/journal.hpp"
#include "storage/group_buffer.hpp"

namespace semel::storage {

inline constexpr const char* journal_family = "journal";
inline constexpr std::size_t blob_key_bytes = 16;

inline void put_big_endian(std::uint64_t value, char* to) noexcept {
  value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}
[[nodiscard]] inline std::uint64_t get_big_endian(const char* from) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return __builtin_bswap64(value);
}

/// Keys sort by when they may be forgotten, so that what ends together lies together.
[[nodiscard]] inline std::string blob_key(SpanNumber span, Ticket ticket) {
  std::string key(blob_key_bytes, '\0');
  put_big_endian(span, key.data());
  put_big_endian(ticket, key.data() + 8);
  return key;
}

/// What a blob begins with.
[[nodiscard]] inline std::string seal_of(Bytes mutations) {
  const std::uint64_t digest = XXH3_64bits(mutations.data(), mutations.size());
  std::string seal(sizeof digest, '\0');
  std::memcpy(seal.data(), &digest, sizeof digest);
  return seal;
}
/// The mutations of a blob. False: damaged.
[[nodiscard]] inline bool unseal(Bytes blob, Bytes& mutations) noexcept {
  std::uint64_t digest = 0;
  if (blob.size() < sizeof digest) return false;
  std::memcpy(&digest, blob.data(), sizeof digest);
  mutations = blob.substr(sizeof digest);
  return XXH3_64bits(mutations.data(), mutations.size()) == digest;
}

}  // namespace semel::storage
