// Column families and keys of the database.
//
//   column family "default"  the description: description.hpp
//   column family "journal"  big-endian u64 span | u64 log offset | u32 number -> blob
//   column family "joined"   the same keys and blobs; joined_files.hpp says why
//   blob                     mutations (mutation_codec.hpp), some 64 KiB of them
//   span 0                   no blob: the offset up to which the journal was drained
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "storage/log/log_format.hpp"
#include "storage/log/spans.hpp"

namespace semel::storage {

inline constexpr const char* journal_family = "journal";

inline void put_big_endian(std::uint64_t value, char* to) noexcept {
  value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof value);
}
[[nodiscard]] inline std::uint64_t get_big_endian(const char* from) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return __builtin_bswap64(value);
}

struct BlobKey {
  static constexpr std::size_t size = 20;
  SpanNumber span = 0;
  LogOffset offset = 0;      ///< before all records of the blob, not before those of earlier blobs
  std::uint32_t number = 0;  ///< distinguishes blobs with the same offset

  [[nodiscard]] std::string bytes() const {
    std::string key(size, '\0');
    put_big_endian(span, key.data());
    put_big_endian(offset, key.data() + 8);
    const std::uint32_t swapped = __builtin_bswap32(number);
    std::memcpy(key.data() + 16, &swapped, sizeof swapped);
    return key;
  }
  /// False: not such a key.
  [[nodiscard]] static bool read(std::string_view bytes, BlobKey& key) noexcept {
    if (bytes.size() != size) return false;
    key.span = get_big_endian(bytes.data());
    key.offset = get_big_endian(bytes.data() + 8);
    std::uint32_t swapped = 0;
    std::memcpy(&swapped, bytes.data() + 16, sizeof swapped);
    key.number = __builtin_bswap32(swapped);
    return true;
  }
};

}  // namespace semel::storage
