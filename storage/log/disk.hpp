// What a storage asks of the machine: files, syncs, which boot this is. Tests put a machine in its
// place that fails, is slow, or loses power.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "semel/result.hpp"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace semel::storage {

class Disk {
 public:
  virtual ~Disk() = default;

  /// Makes `path`, `bytes` zeros whose blocks are taken, and returns when the file and its name
  /// have reached the disk. The descriptor may be read, written and mapped. Errors: storage_failed
  /// (no space; nothing is left behind).
  [[nodiscard]] virtual Result<int> create(const std::string& path, std::size_t bytes);
  /// Writes the zeros of such a file out, and returns when they have reached the disk: a later sync
  /// of a few bytes then has no blocks to account for, and takes half the time.
  [[nodiscard]] virtual Status write_zeros(int descriptor, const std::string& path,
                                           std::size_t bytes);
  /// fdatasync. An error means that nobody knows what the disk holds.
  [[nodiscard]] virtual Status sync(int descriptor, const std::string& path);
  /// The same for the bytes from `from` to `to` of a file that is mapped at `memory`, and for no
  /// others: msync.
  [[nodiscard]] virtual Status sync_part(char* memory, const std::string& path, std::size_t from,
                                         std::size_t to);
  [[nodiscard]] virtual Status remove(const std::string& path);
  /// Gives a file another name, and returns when that has reached the disk. Errors: storage_failed;
  /// then it has either.
  [[nodiscard]] virtual Status rename(const std::string& from, const std::string& to);
  /// Bytes that may still be written to the file system of `path`.
  [[nodiscard]] virtual std::size_t bytes_free(const std::string& path);
  /// Changes with each boot of the machine; empty: not known, which is never the same.
  [[nodiscard]] virtual std::string boot_id();
  /// RocksDB's files.
  [[nodiscard]] virtual rocksdb::Env* env();
};

/// Plain helpers over the real file system. A directory is made when its name has reached the disk.
/// Errors: storage_failed, with path and cause.
[[nodiscard]] Status make_directory(const std::string& path);  ///< or it is there
[[nodiscard]] Status make_new_directory(const std::string& path);
[[nodiscard]] Result<std::vector<std::string>> list_directory(const std::string& path);
[[nodiscard]] Error system_error(const std::string& what);  ///< with errno's sentence

}  // namespace semel::storage
