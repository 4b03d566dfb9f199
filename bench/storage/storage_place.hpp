// Where a measurement of the storage works: directories that vanish, and what they weigh.
#pragma once

#include <string>

namespace semel::bench {

/// A new directory below `parent`, removed at the end with everything in it.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  /// Absolute; empty: it could not be made, which was said on stderr.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// The type of the file system of a directory, as the kernel names it; empty: there is none.
[[nodiscard]] std::string file_system_of(const std::string& path);
/// True for file systems that keep everything in memory: nothing measured there is about a disk.
[[nodiscard]] bool is_in_memory(const std::string& file_system);
/// Bytes that may still be written there.
[[nodiscard]] double bytes_free(const std::string& path);

struct DiskUse {
  double all = 0;     ///< bytes the file system has given to all files
  double tables = 0;  ///< of them, to RocksDB's tables
};
[[nodiscard]] DiskUse disk_use(const std::string& directory);

}  // namespace semel::bench
