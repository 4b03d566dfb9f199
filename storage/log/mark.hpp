// The mark: how far things had come when somebody last looked, in a file of its own. What it says
// was so; so a log, or a database, that says less has lost something.
//
// Two slots of a page each, written in turn through a mapping: a killed process leaves one of them
// whole, and a sector of the disk is never half of one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/log/disk.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

struct MarkContent {
  static constexpr std::uint64_t magic_value = 0x314b5241'4c454d53;  // "SMELARK1"
  std::uint64_t magic = magic_value;
  std::uint64_t sequence = 0;  // of the writing; grows
  std::uint64_t storage_id = 0;
  std::uint64_t format = 1;
  std::uint64_t segment_bytes = 0;
  Place begin = 0;  // of the log of the process that wrote this
  Place tail = 0;   // the log was written up to here
  Place whole = 0;  // from begin to here there were records only; at most tail
  Place synced = 0;
  Place drained = 0;                 // everything before is in RocksDB's files
  std::uint64_t rocks_sequence = 0;  // RocksDB's newest number after a synced write
  std::int64_t line_ms = 0;          // the time line when the engine's clock was engine_ms
  std::int64_t engine_ms = 0;
  std::int64_t unix_ms = 0;  // what the wall clock showed then
  char boot_id[40] = {};
  std::uint64_t digest = 0;  // of all before

  [[nodiscard]] std::uint64_t right_digest() const noexcept {
    return XXH3_64bits(this, offsetof(MarkContent, digest));
  }
  /// Segments before this place are drained, or were found to hold nothing that counts: whoever
  /// writes a mark has made sure of it. A power cut may bring their names back.
  [[nodiscard]] Place first_segment() const noexcept {
    return segment_bytes == 0 ? 0 : begin - begin % segment_bytes;
  }
  [[nodiscard]] std::string boot() const { return {boot_id, strnlen(boot_id, sizeof boot_id)}; }
};
static_assert(sizeof(MarkContent) <= 512, "a slot is one sector");

class Mark {
 public:
  enum class Found { content, empty, damaged };

  /// Opens or makes `path`. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Mark>> open(Disk& disk, const std::string& path);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  /// What is there; the newer of two.
  [[nodiscard]] Found read(MarkContent& content) const noexcept;
  /// Replaces the older slot. `content` gets its sequence and digest.
  void write(MarkContent& content) noexcept;
  [[nodiscard]] Status sync() { return disk_.sync(descriptor_, path_); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  Mark(Disk& disk, std::string path, int descriptor, char* bytes) noexcept
      : disk_(disk), path_(std::move(path)), descriptor_(descriptor), bytes_(bytes) {}
  Disk& disk_;
  const std::string path_;
  const int descriptor_;
  char* const bytes_;
};

}  // namespace semel::storage
