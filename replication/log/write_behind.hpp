// Has a large file written to the disk while it grows. Otherwise all of it is there at its sync,
// and every other sync of that disk, those of the replicated log, waits behind it.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstdint>

namespace semel::replication {

/// Of one file, written from its begin to its end by one thread.
class WriteBehind {
 public:
  /// `waits`: grew() waits until the disk has the bytes of two steps ago: for background threads.
  explicit WriteBehind(bool waits) noexcept : waits_(waits) {}

  /// `size`: of the file now. False, and errno: bytes that it waited for are not on the disk. The
  /// system reports such an error once, and the sync at the end would succeed. Errors without a
  /// wait are left to that sync.
  [[nodiscard]] bool grew(int descriptor, std::uint64_t size) noexcept {
    if (size < begun_ + step) return true;
    const auto count = static_cast<off64_t>(size - begun_);
    sync_file_range(descriptor, static_cast<off64_t>(begun_), count, SYNC_FILE_RANGE_WRITE);
    bool is_written = true;
    if (waits_ && begun_ > had_) {
      is_written =
          sync_file_range(descriptor, static_cast<off64_t>(had_),
                          static_cast<off64_t>(begun_ - had_), SYNC_FILE_RANGE_WAIT_BEFORE) == 0 ||
          !is_loss(errno);
    }
    had_ = begun_;
    begun_ = size;
    return is_written;
  }

 private:
  /// Other errors say that this file cannot be waited for so.
  [[nodiscard]] static bool is_loss(int error) noexcept {
    return error == EIO || error == ENOSPC || error == EDQUOT;
  }

  static constexpr std::uint64_t step = std::uint64_t{4} << 20;
  const bool waits_;
  std::uint64_t had_ = 0;    // up to here the disk has it, if this waits
  std::uint64_t begun_ = 0;  // up to here its writing has begun
};

}  // namespace semel::replication
