// The checkpoint: how far journal and database had come when it was written, in the file `mark`. It
// was true then, so a journal or a database that is behind it has lost data.
//
// The replicated log keeps its term and vote in a file of the same kind (replication/log).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

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
  LogOffset begin = 0;  // of the journal of the process that wrote this
  LogOffset tail = 0;   // the journal was written up to here
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
/// A small file of two slots. The one that was synced last is not written before the other one is
/// synced, so a killed process and a power cut each leave one of them intact, also if the disk
/// tears a sector.
class SlotFile {
 public:
  enum class Found {
    content,
    empty,       ///< zeros only, or not there
    unfinished,  ///< one slot is zeros, the other one has no checksum: its first write, perhaps
    damaged,
  };
  static constexpr std::size_t slot_bytes = 4096;
  static constexpr std::size_t file_bytes = 2 * slot_bytes;

  SlotFile(SlotFile&& other) noexcept;
  SlotFile& operator=(SlotFile&&) = delete;
  ~SlotFile();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 protected:
  /// Opens or makes `path`, and syncs it. Errors: storage_failed, storage_damaged (its size).
  [[nodiscard]] static Result<SlotFile> open(Disk& disk, const std::string& path);
  /// Errors: storage_failed.
  [[nodiscard]] Result<std::string> read_file() const;
  /// The result if no slot is valid.
  [[nodiscard]] static Found without_content(std::string_view bytes) noexcept;
  /// How much larger the next sequence is.
  [[nodiscard]] std::uint64_t next_step() const noexcept { return is_synced_ ? 1 : 2; }
  /// False: errno has the error.
  [[nodiscard]] bool write_slot(std::uint64_t sequence, std::string_view content) noexcept;
  [[nodiscard]] Status sync_file();

 private:
  SlotFile(Disk& disk, std::string path, int descriptor) noexcept
      : disk_(&disk), path_(std::move(path)), descriptor_(descriptor) {}

  Disk* disk_;
  std::string path_;
  int descriptor_;
  bool is_newest_whole_ = true;  // false: a write to the newest slot has failed
  bool is_synced_ = false;       // the newest slot, which is whole
};

/// Of `Content`: plain data with a magic number, a sequence and a digest, as CheckpointContent has.
///
/// Invariant: the slot of `sequence` is sequence % 2, and the newest valid slot counts.
template <class Content>
class TwoSlots final : public SlotFile {
 public:
  /// Opens or makes `path`, and syncs it. Errors: storage_failed, storage_damaged (its size).
  [[nodiscard]] static Result<std::unique_ptr<TwoSlots>> open(Disk& disk, const std::string& path) {
    SEMEL_TRY(file, SlotFile::open(disk, path));
    return std::unique_ptr<TwoSlots>{new TwoSlots{std::move(file)}};
  }
  /// Reads the newer of the two slots.
  /// Errors: storage_failed.
  [[nodiscard]] Result<Found> read(Content& content) const {
    SEMEL_TRY(bytes, read_file());
    return read(bytes, content);
  }
  /// The same from the bytes of such a file, which may be truncated.
  [[nodiscard]] static Found read(std::string_view bytes, Content& content) noexcept {
    bool is_found = false;
    for (std::size_t at = 0; at < file_bytes && at + sizeof content <= bytes.size();
         at += slot_bytes) {
      Content here;
      std::memcpy(&here, bytes.data() + at, sizeof here);
      // A slot that was being written when its process ended does not have its checksum.
      if (here.magic != Content::magic_value || here.digest != here.right_digest()) continue;
      if (is_found && here.sequence <= content.sequence) continue;
      content = here;
      is_found = true;
    }
    // The file is made with its size, so a half of it is damage even if the half is sound.
    if (is_found && bytes.size() == file_bytes) return Found::content;
    return is_found ? Found::damaged : without_content(bytes);
  }
  /// Replaces the slot that was not synced last. `content` gets its sequence and digest. False:
  /// errno says why; the other slot is unchanged, and `content` as well.
  [[nodiscard]] bool write(Content& content) noexcept {
    Content next = content;
    next.sequence += next_step();
    next.digest = next.right_digest();
    if (!write_slot(next.sequence, {reinterpret_cast<const char*>(&next), sizeof next})) {
      return false;
    }
    content = next;
    return true;
  }
  /// The same, and returns when it has reached the disk. Errors: storage_failed.
  [[nodiscard]] Status write_and_sync(Content& content) {
    return write(content) ? sync() : system_error("writing " + path());
  }
  [[nodiscard]] Status sync() { return sync_file(); }

 private:
  static_assert(sizeof(Content) <= 512, "a slot is one sector");
  explicit TwoSlots(SlotFile&& file) noexcept : SlotFile(std::move(file)) {}
};

using Checkpoint = TwoSlots<CheckpointContent>;

}  // namespace semel::storage
