// A segment of a journal or of a replicated log as it is written: a file of fixed size, and the
// same bytes in memory. The file is mapped where that is safe (Disk::maps_safely), else each record
// is written to it.
//
// Concurrency
//   [log.completed]  bytes of the segment that are written: release add by writers, acquire load by
//                    the draining thread. When all are written, it reads the segment, and no thread
//                    writes it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "semel/result.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

class Segment {
 public:
  enum class Access {
    mapped,   ///< writes to memory go to the file
    written,  ///< write_record() brings it there; memory is the process' own
  };
  /// Creates the file, which must not exist, and its header. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Segment>> make(Disk& disk,
                                                             const std::string& directory,
                                                             const SegmentHeader& wanted,
                                                             bool zeroed, Access access);
  /// Makes one from the file and the memory of `old`, which is mapped and was drained: zeroing its
  /// blocks and pages costs far less than allocating new ones. After a crash the file may still
  /// have its old name; recovery treats it as a drained segment. Errors: storage_failed.
  [[nodiscard]] static Result<std::unique_ptr<Segment>> reuse(Disk& disk,
                                                              std::unique_ptr<Segment> old,
                                                              const std::string& directory,
                                                              const SegmentHeader& wanted);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::uint64_t number() const noexcept { return header_.number; }
  [[nodiscard]] const SegmentHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::uint64_t salt() const noexcept { return header_.salt; }
  [[nodiscard]] LogOffset begin() const noexcept { return header_.number * header_.bytes; }
  [[nodiscard]] LogOffset end() const noexcept { return begin() + header_.bytes; }
  [[nodiscard]] char* at(LogOffset offset) const noexcept {
    SEMEL_ASSERT(offset >= begin() && offset < end());
    return bytes_ + (offset - begin());
  }
  /// The memory that writers write. Do not read through it bytes that may have left the page cache:
  /// see read().
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_, header_.bytes}; }
  /// Its bytes, when it is complete: from the file into `buffer`, of the same size, or those in
  /// memory if they are the process' own. A mapping is not read: at a sector that cannot be read
  /// the kernel would end the process. Errors: storage_damaged, with file and offset.
  [[nodiscard]] Result<std::string_view> read(char* buffer) const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  [[nodiscard]] bool is_mapped() const noexcept { return access_ == Access::mapped; }
  /// Brings a record to the file: `bytes` of it from memory, which has no seal yet, and then the
  /// seal, `seal_at` behind its begin. A killed process leaves the first step, or a half of the
  /// seal. False: the file cannot be written.
  [[nodiscard]] bool write_record(LogOffset offset, std::size_t bytes, std::size_t seal_at,
                                  std::string_view seal) noexcept;

  void complete(std::size_t bytes) noexcept {
    // mo: release [log.completed]
    const std::size_t before = completed_.fetch_add(bytes, std::memory_order_release);
    SEMEL_ASSERT(before + bytes <= header_.bytes);
  }
  [[nodiscard]] bool is_complete() const noexcept {
    // mo: acquire [log.completed]
    return completed_.load(std::memory_order_acquire) >= header_.bytes;
  }
  [[nodiscard]] std::size_t completed() const noexcept {
    return completed_.load(std::memory_order_acquire);  // mo: acquire [log.completed]
  }
  /// Syncs [from, to), which is written completely and not written again.
  [[nodiscard]] Status sync(Disk& disk, LogOffset from, LogOffset to);
  /// Faults in its pages for writing, so that writers do not.
  void touch() noexcept;
  /// Faults in its pages as they are, which keeps their sectors from being read by writers later.
  void map_pages() noexcept;

 private:
  [[nodiscard]] Status fill(Disk& disk, bool zeroed);
  void populate(int advice) noexcept;
  /// Without file and memory, which make() and reuse() give it.
  Segment(const SegmentHeader& header, std::string path, Access access)
      : header_(header), path_(std::move(path)), access_(access) {}

  const SegmentHeader header_;
  const std::string path_;
  int descriptor_ = -1;    // -1: moved by reuse()
  char* bytes_ = nullptr;  // null: likewise
  const Access access_;
  alignas(64) std::atomic<std::size_t> completed_{segment_header_bytes};
};

}  // namespace semel::storage
