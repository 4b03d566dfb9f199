// Reads segments of the journal: when they are drained, and after their process has ended.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "semel/result.hpp"
#include "storage/log/log_format.hpp"
#include "storage/log/log_record.hpp"

namespace semel::storage {

/// What counts as damage (docs/decisions/0006-log-and-files.md).
struct ScanRules {
  std::uint64_t storage_id = 0;
  LogOffset sound_to = 0;  ///< before it only records and unfinished records are valid
  /// Between these two only complete records are valid.
  LogOffset whole_from = 0;
  LogOffset whole_to = 0;          ///< at most sound_to
  LogOffset stop = ~LogOffset{0};  ///< data from here on is not read
};

struct LogDamage {
  std::string path;
  std::uint64_t offset = 0;
  std::string what;

  [[nodiscard]] Error error() const {
    return {ErrorCode::storage_damaged, path + ", offset " + std::to_string(offset) + ": " + what};
  }
};

struct ScanReport {
  std::uint64_t records = 0;
  std::uint64_t unfinished = 0;     ///< begun by a killed process
  std::uint64_t bytes_skipped = 0;  ///< after sound_to, never synced
  LogOffset end = 0;                ///< end of the last record; 0: none
  std::vector<LogDamage> damage;    ///< in order; without `go_on` at most one
};

/// Like pread(2). Tests pass one that fails.
using ReadAt = ssize_t (*)(int descriptor, void* to, std::size_t bytes, off_t at);

/// Fills `to` from the begin of a file. Unreadable parts stay zero; the first of them is returned.
[[nodiscard]] std::optional<LogDamage> read_into(int descriptor, const std::string& path, char* to,
                                                 std::size_t bytes, ReadAt read_at);

/// The bytes of a segment's file, read into memory. A mapping of the file would end the process at
/// a sector that cannot be read, and when another process makes the file shorter.
class SegmentFile {
 public:
  /// Errors: storage_failed, storage_damaged. Unreadable parts count as zeros, and as damage:
  /// check_header() reports it.
  [[nodiscard]] static Result<SegmentFile> open(const std::string& path, ReadAt read_at = pread);
  /// The same, with the bytes of the header alone: for callers that need no records.
  [[nodiscard]] static Result<SegmentFile> open_header(const std::string& path);
  ~SegmentFile();
  SegmentFile(SegmentFile&& other) noexcept;
  SegmentFile& operator=(SegmentFile&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  /// The first part that cannot be read; none: all of it was.
  [[nodiscard]] const std::optional<LogDamage>& unreadable() const noexcept { return unreadable_; }
  [[nodiscard]] const SegmentHeader& header() const noexcept { return header_; }
  /// Only zeros follow the header: no record was begun.
  [[nodiscard]] bool holds_nothing() const noexcept {
    return bytes_.find_first_not_of('\0', sizeof header_) == std::string_view::npos;
  }
  /// None: the header is valid, and the file could be read.
  [[nodiscard]] std::optional<LogDamage> check_header(std::uint64_t number,
                                                      std::uint64_t storage_id) const;

 private:
  [[nodiscard]] static Result<SegmentFile> read(const std::string& path, std::size_t bytes_max,
                                                ReadAt read_at);
  SegmentFile(std::string path, std::string_view bytes, std::size_t file_bytes,
              std::optional<LogDamage> unreadable) noexcept;
  std::string path_;
  std::string_view bytes_;
  std::size_t file_bytes_;
  std::optional<LogDamage> unreadable_;
  SegmentHeader header_;
};

/// A complete record, but a filler.
struct LogRecord {
  LogOffset offset = 0;
  RecordType type = RecordType::whole;
  Bytes payload;  ///< points into the segment
  /// Of a group in the near form; points into the segment's header. Null: another form.
  const MutationBase* base = nullptr;
};
using VisitRecord = std::function<void(const LogRecord& record)>;

/// Visits every complete record in order. `go_on`: continues after damage, and reports all of it.
[[nodiscard]] ScanReport scan(std::string_view segment, const SegmentHeader& header,
                              const std::string& path, const ScanRules& rules, bool go_on,
                              const VisitRecord& visit);

/// The offset of the first missing or invalid record at or after `from`, where a record begins; the
/// end of the segment if there is none.
[[nodiscard]] LogOffset first_gap(std::string_view segment, const SegmentHeader& header,
                                  LogOffset from);

/// Assembles groups whose parts are in several records, which may be in several segments.
/// Thread-safe.
class PartCollector {
 public:
  /// Ignores groups that begin before `from`.
  explicit PartCollector(LogOffset from = 0) noexcept : from_(from) {}

  /// Returns the group if this was its last missing part.
  [[nodiscard]] std::optional<std::string> add(Bytes payload);
  [[nodiscard]] std::size_t unfinished() const;
  /// The first offset of the oldest incomplete group; the largest number: there is none.
  [[nodiscard]] LogOffset oldest() const;

 private:
  struct Group {
    std::map<std::uint32_t, std::string> parts;
  };
  const LogOffset from_;
  mutable base::Mutex mutex_;
  std::map<LogOffset, Group> groups_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::storage
