// Has a large file written to the disk while it grows. Otherwise all of it is there at its sync,
// and every other sync of that disk, those of the replicated log, waits behind it.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>

#include "storage/log/disk.hpp"

namespace semel::replication {

/// Of one file, written from its begin to its end by one thread.
class WriteBehind {
 public:
  /// It never waits.
  WriteBehind() = default;
  /// grew() waits until `disk` has the bytes of two steps ago: for background threads.
  explicit WriteBehind(storage::Disk& disk) noexcept : disk_(&disk) {}

  /// `size`: of the file now. Errors: those of Disk::wait_written(), which the sync at the end does
  /// not report again. Without a wait they are left to that sync.
  [[nodiscard]] Status grew(int descriptor, const std::string& path, std::uint64_t size) {
    if (size < begun_ + step) return Done{};
    const auto count = static_cast<off64_t>(size - begun_);
    sync_file_range(descriptor, static_cast<off64_t>(begun_), count, SYNC_FILE_RANGE_WRITE);
    const std::uint64_t from = had_;
    had_ = begun_;
    begun_ = size;
    if (disk_ == nullptr || from == had_) return Done{};
    return disk_->wait_written(descriptor, path, from, had_);
  }

 private:
  static constexpr std::uint64_t step = std::uint64_t{4} << 20;
  storage::Disk* const disk_ = nullptr;
  std::uint64_t had_ = 0;    // up to here the disk has it, if this waits
  std::uint64_t begun_ = 0;  // up to here its writing has begun
};

}  // namespace semel::replication
