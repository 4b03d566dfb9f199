// The checkpoint: how far log and database had come when it was written, in the file `mark`. It was
// true then, so a log or a database that is behind it has lost data.
//
// The file has two slots of a page each. The one that was synced last is not written before the
// other one is synced, so a killed process and a power cut each leave one of them intact, also if
// the disk tears a sector.
//
// Invariant: the slot of `sequence` is sequence % 2, and the newest valid slot counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "storage/log/disk.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

struct CheckpointContent {
  static constexpr std::uint64_t magic_value = 0x314b5241'4c454d53;  // "SMELARK1"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // grows with each write
  std::uint64_t storage_id = 0;
  std::uint64_t format = 1;
  std::uint64_t segment_bytes = 0;
  LogOffset begin = 0;  // of the log of the process that wrote this
  LogOffset tail = 0;   // the log was written up to here
  LogOffset whole = 0;  // from begin to here there were complete records only
  LogOffset synced = 0;
  LogOffset drained = 0;             // everything before it is in RocksDB's files
  std::uint64_t rocks_sequence = 0;  // RocksDB's newest sequence number after a synced write
  std::int64_t line_ms = 0;          // the durable clock when the engine's clock was engine_ms
  std::int64_t engine_ms = 0;
  std::int64_t unix_ms = 0;  // the wall clock at that time
  char boot_id[40] = {};
  std::uint64_t digest = 0;  // of the bytes before it

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(CheckpointContent, digest));
  }
  /// Segments before this offset were drained, or held nothing valid, before this was written.
  /// After a power cut their files may be there again.
  [[nodiscard]] LogOffset first_segment() const noexcept {
    return segment_bytes == 0 ? 0 : begin - begin % segment_bytes;
  }
  [[nodiscard]] std::string boot() const { return {boot_id, strnlen(boot_id, sizeof boot_id)}; }
};
static_assert(sizeof(CheckpointContent) <= 512, "a slot is one sector");

class Checkpoint {
 public:
  enum class Found {
    content,
    empty,       ///< zeros only, or not there
    unfinished,  ///< one slot is zeros, the other one has no checksum: its first write, perhaps
    damaged,
  };

  /// Opens or makes `path`, and syncs it. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Checkpoint>> open(Disk& disk,
                                                                const std::string& path);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Reads the newer of the two slots.
  /// Errors: storage_failed.
  [[nodiscard]] Result<Found> read(CheckpointContent& content) const;
  /// The same from the bytes of such a file, which may be truncated.
  [[nodiscard]] static Found read(std::string_view bytes, CheckpointContent& content) noexcept;
  /// Replaces the slot that was not synced last. `content` gets its sequence and digest. False:
  /// errno says why; the other slot is unchanged, and `content` as well.
  [[nodiscard]] bool write(CheckpointContent& content) noexcept;
  /// The same, and returns when it has reached the disk. Errors: storage_failed.
  [[nodiscard]] Status write_and_sync(CheckpointContent& content);
  [[nodiscard]] Status sync();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  Checkpoint(Disk& disk, std::string path, int descriptor) noexcept
      : disk_(disk), path_(std::move(path)), descriptor_(descriptor) {}
  Disk& disk_;
  const std::string path_;
  const int descriptor_;
  bool is_newest_whole_ = true;  // false: a write to the newest slot has failed
  bool is_synced_ = false;       // the newest slot, which is whole
};

}  // namespace semel::storage
