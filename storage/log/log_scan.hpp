// Reading a segment of the log, after the process that wrote it has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "semel/result.hpp"
#include "storage/log/log_format.hpp"

namespace semel::storage {

/// What a segment may look like (docs/decisions/0006-log-and-files.md).
struct ScanRules {
  std::uint64_t storage_id = 0;
  Place sound_to = 0;  ///< before it there is no damage: only records, and what a kill left
  /// From here to there are records only.
  Place whole_from = 0;
  Place whole_to = 0;      ///< at most sound_to
  Place stop = ~Place{0};  ///< nothing from here on is looked at
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
  std::uint64_t unfinished = 0;     ///< a killed process had begun them
  std::uint64_t bytes_skipped = 0;  ///< behind sound_to, never synced
  Place end = 0;                    ///< behind the last record; 0: none
  std::vector<LogDamage> damage;    ///< in order; without `go_on` at most one
};

/// A segment's file in memory. Errors: storage_failed, storage_damaged.
class SegmentFile {
 public:
  [[nodiscard]] static Result<SegmentFile> open(const std::string& path);
  ~SegmentFile();
  SegmentFile(SegmentFile&& other) noexcept;
  SegmentFile& operator=(SegmentFile&&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] const SegmentHeader& header() const noexcept { return header_; }
  /// Only zeros behind the header: no record was ever begun.
  [[nodiscard]] bool holds_nothing() const noexcept {
    return bytes_.find_first_not_of('\0', sizeof header_) == std::string_view::npos;
  }
  /// None: the header is right.
  [[nodiscard]] std::optional<LogDamage> check_header(std::uint64_t number,
                                                      std::uint64_t storage_id) const;

 private:
  SegmentFile(std::string path, std::string_view bytes) noexcept;
  std::string path_;
  std::string_view bytes_;
  SegmentHeader header_;
};

using VisitRecord = std::function<void(Place place, RecordType type, Bytes payload)>;

/// Visits every record that is whole, in order of place. `go_on`: also behind damage, for those who
/// want to know all of it.
[[nodiscard]] ScanReport scan(std::string_view segment, const SegmentHeader& header,
                              const std::string& path, const ScanRules& rules, bool go_on,
                              const VisitRecord& visit);

/// Where the first record is missing or wrong, from the record at `from` on; the segment's end:
/// none.
[[nodiscard]] Place first_gap(std::string_view segment, const SegmentHeader& header, Place from);

/// Puts groups together whose parts lie in several records, perhaps of several segments. Safe to
/// use from several threads.
class PartCollector {
 public:
  /// Groups that begin before `from` are passed over.
  explicit PartCollector(Place from = 0) noexcept : from_(from) {}

  /// The group, when this was its last missing part.
  [[nodiscard]] std::optional<std::string> add(Bytes payload);
  [[nodiscard]] std::size_t unfinished() const;
  /// Where the first part of a group lies of which some are missing; the largest place: of none.
  [[nodiscard]] Place oldest() const;

 private:
  struct Group {
    std::map<std::uint32_t, std::string> parts;
  };
  const Place from_;
  mutable std::mutex mutex_;
  std::map<Place, Group> groups_;  // under mutex_
};

}  // namespace semel::storage
