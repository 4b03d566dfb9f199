// The checksum of a whole file of the database. RocksDB writes it to its manifest when the file is
// made, so that any change of the file, also where no block has a checksum, is found and named.
#pragma once

#include <rocksdb/file_checksum.h>

#include <memory>
#include <string>

#include "semel/result.hpp"

namespace semel::storage {

/// The name by which a manifest knows XXH3-64 of a file, eight bytes, big-endian.
inline constexpr const char* xxh3_function = "semel.XXH3-64";

/// XXH3-64 for new files: Debian's RocksDB computes CRC32C without the processor's instruction.
/// Files of earlier releases keep their CRC32C.
[[nodiscard]] std::shared_ptr<rocksdb::FileChecksumGenFactory> file_checksums();

/// What a manifest says of a file; empty: written by a release that had none.
struct FileChecksum {
  std::string function;
  std::string value;
  [[nodiscard]] bool is_known() const;
};

/// Reads the whole file. Progress: blocks for the disk. Errors: storage_damaged (its bytes have
/// another checksum), storage_failed (it cannot be read).
[[nodiscard]] Status check_file(const std::string& path, const FileChecksum& expected);

}  // namespace semel::storage
