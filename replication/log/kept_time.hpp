// What a node knows of the group's time, in the file `time`: for its next process.
//
// Within a boot CLOCK_BOOTTIME goes on, and the page cache keeps the file: nothing is synced for
// that. After a boot only the wall clock is left, and by how much the group's time was behind it.
// That offset is synced where it has grown: records that were granted by the earlier time would end
// early by the growth that a power cut takes.
// Belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "storage/log/checkpoint.hpp"

namespace semel::replication {

/// How far the group's time is from CLOCK_BOOTTIME, for another process of this boot, and from the
/// wall clock, for one after the next boot.
struct TimeContent {
  static constexpr std::uint64_t magic_value = 0x33454d49'544c4d53;  // "SMLTIME3"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // grows with each write
  std::uint64_t cluster_id = 0;
  std::uint64_t boot = 0;    // digest of the boot, and of the clock's namespace
  std::int64_t boot_ms = 0;  // when it was written
  std::int64_t offset = 0;   // of the group's time from boot_ms
  std::uint64_t term = 0;    // of the leader that this is of
  std::int64_t behind = 0;   // the wall clock less the group's time, when it was written
  std::uint64_t digest = 0;  // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(TimeContent, digest));
  }
};

class KeptTime {
 public:
  /// Nothing is kept.
  KeptTime() = default;
  /// In this directory. No error ends a start: where the file cannot be used, nothing is kept, and
  /// the node asks the others for the time.
  [[nodiscard]] static KeptTime open(const std::string& directory, std::uint64_t cluster_id,
                                     storage::Disk& disk);

  /// By an earlier process of this node.
  [[nodiscard]] const std::optional<TimeContent>& found() const noexcept { return found_; }
  [[nodiscard]] bool is_of_this_boot() const noexcept {
    return found_ && found_->boot == next_.boot;
  }
  [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
  /// A failed write is made up for by the next one; a start trusts an older file less. Waits for
  /// the disk.
  void write(const TimeContent& known);

 private:
  using File = storage::TwoSlots<TimeContent>;

  std::unique_ptr<File> file_;
  std::optional<TimeContent> found_;
  TimeContent next_;  // of this cluster and boot; its sequence follows that of found_
  std::int64_t synced_behind_ = 0;
};

}  // namespace semel::replication
