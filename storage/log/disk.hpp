// What a storage needs of the machine: files, syncs and the boot id. Tests replace it to simulate
// errors, slow disks and power cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "semel/result.hpp"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace semel::storage {

class Disk {
 public:
  virtual ~Disk() = default;

  /// Creates `path` with `bytes` zeros in allocated blocks, and returns when the file and its name
  /// have reached the disk. The descriptor may be read, written and mapped. Errors: storage_failed
  /// (no space; the file is removed).
  [[nodiscard]] virtual Result<int> create(const std::string& path, std::size_t bytes);
  /// Writes the zeros of such a file, and returns when they have reached the disk. A later sync of
  /// a few bytes then need not update the allocation of blocks and takes half the time.
  [[nodiscard]] virtual Status write_zeros(int descriptor, const std::string& path,
                                           std::size_t bytes);
  /// write_all() of a segment's header and zeros, and of a checkpoint.
  [[nodiscard]] virtual bool write_at(int descriptor, std::string_view bytes,
                                      std::uint64_t at) noexcept;
  /// fdatasync. After an error the contents of the disk are unknown.
  [[nodiscard]] virtual Status sync(int descriptor, const std::string& path);
  /// fdatasync of a file that is not open, with all that earlier processes wrote to it.
  [[nodiscard]] virtual Status sync_file(const std::string& path);
  /// The same after the bytes at `from` and behind it were written again. A system that failed to
  /// sync them takes them for written, shows them to every process, and would report success to a
  /// second sync. Of a file that no process has open.
  [[nodiscard]] virtual Status rewrite_file(const std::string& path, std::uint64_t from);
  /// msync of the bytes from `from` to `to` of a file that is mapped at `memory`.
  [[nodiscard]] virtual Status sync_part(char* memory, const std::string& path, std::size_t from,
                                         std::size_t to);
  /// Returns when the system has written these bytes, which it was told to begin with. It reports
  /// an error of theirs only here, and a sync later would succeed. A file that cannot be waited for
  /// so is left to that sync. Errors: storage_failed.
  [[nodiscard]] virtual Status wait_written(int descriptor, const std::string& path,
                                            std::uint64_t from, std::uint64_t to);
  [[nodiscard]] virtual Status remove(const std::string& path);
  /// Renames a file, and returns when that has reached the disk. Errors: storage_failed; the file
  /// has either name then.
  [[nodiscard]] virtual Status rename(const std::string& from, const std::string& to);
  /// Bytes that may still be written to the file system of `path`.
  [[nodiscard]] virtual std::size_t bytes_free(const std::string& path);
  /// Whether writing to a mapped file of allocated blocks cannot fail. File systems that copy on
  /// write may need new blocks for it, and on a full disk the kernel would end the process
  /// (SIGBUS).
  [[nodiscard]] virtual bool maps_safely(const std::string& directory);
  /// Changes with each boot of the machine. Empty: unknown, and different from every other.
  [[nodiscard]] virtual std::string boot_id();
  /// RocksDB's files.
  [[nodiscard]] virtual rocksdb::Env* env();
};

/// Helpers for the real file system. They return when a new directory's name has reached the disk.
/// Errors: storage_failed, with path and cause.
[[nodiscard]] Status make_directory(const std::string& path);  ///< or it exists
[[nodiscard]] Status make_new_directory(const std::string& path);
[[nodiscard]] Result<std::vector<std::string>> list_directory(const std::string& path);
[[nodiscard]] Error system_error(const std::string& what);  ///< with the text of errno
/// Writes all of it. False: errno says why, and a part of it may be written.
[[nodiscard]] bool write_all(int descriptor, std::string_view bytes, std::uint64_t at) noexcept;
/// Whether so many more files can be opened. Errors: storage_failed, with the limit that is needed
/// and `where`.
[[nodiscard]] Status check_descriptors(std::uint64_t needed, const std::string& where);
/// storage_damaged, with the place.
[[nodiscard]] Error damage_at(const std::string& path, std::uint64_t offset,
                              const std::string& what);
/// As operators see it (top -H): at most 15 bytes.
void name_thread(const char* name) noexcept;
/// For background work without waiters: the calling thread runs when others leave it time, until
/// its end (nice 10; raising it again may not be allowed).
void yield_to_others() noexcept;

}  // namespace semel::storage
