// Which files the directory of the journal has, and which it must have: one judgement for opening,
// verify, inspect and repair.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/log/checkpoint.hpp"
#include "storage/log/log_scan.hpp"

namespace semel::storage {

/// Facts about the journal from the description and the checkpoint.
struct LogBounds {
  std::uint64_t storage_id = 0;
  LogOffset gone = 0;         ///< segments that begin before it were drained, or never counted
  LogOffset from = 0;         ///< it must be there from here ..
  LogOffset needed = 0;       ///< .. up to here
  LogOffset unit = 1;         ///< bytes of a segment, by the checkpoint
  bool same_boot = false;     ///< the kernel kept what the process wrote
  bool knows_drained = true;  ///< false: the database is unreadable; the journal begins with the
                              ///< first file
};
[[nodiscard]] LogBounds log_bounds(const CheckpointContent& checkpoint, LogOffset drained,
                                   LogOffset floor, const ScanRules& rules, bool same_boot);

enum class LogFileIs {
  segment,   ///< its header is valid, and it counts
  leftover,  ///< drained before, or its creation was interrupted: it may be removed
  foreign,   ///< its name is not that of a segment
  damaged,
};

struct LogFile {
  std::string path;
  LogFileIs is = LogFileIs::segment;
  LogOffset begin = 0;  ///< by its name
  LogOffset end = 0;
  std::optional<LogDamage> damage;  ///< of a damaged and of a foreign one
};
[[nodiscard]] LogFile classify_log_file(const std::string& path, const LogBounds& bounds);

/// A part of the journal that must be there and is in no file.
struct LogGap {
  std::string path;  ///< of the first missing file
  LogOffset from = 0;
  LogOffset to = 0;
  [[nodiscard]] LogDamage damage() const { return {path, 0, "is missing"}; }
};

struct LogFiles {
  std::vector<LogFile> files;  ///< in the order of their names
  std::vector<LogGap> gaps;
  /// The first of all, in the order of the journal; none: it is sound.
  [[nodiscard]] std::optional<LogDamage> first_damage() const;
};
/// `directory`: of the journal; `names`: of its files, in order.
[[nodiscard]] LogFiles classify_log(const std::string& directory,
                                    const std::vector<std::string>& names, const LogBounds& bounds);

/// What the file `mark` says about a storage.
enum class MarkIs {
  content,  ///< a checkpoint
  fresh,    ///< none was written yet, and nothing is stored: a new storage
  missing,  ///< empty or not there, but something is stored
  damaged,  ///< neither slot has its checksum
};
/// `has_log`: its directory has files.
[[nodiscard]] MarkIs classify_mark(Checkpoint::Found found, LogOffset drained, bool has_log);
/// The damage that a mark stands for. None: content or fresh.
[[nodiscard]] std::optional<LogDamage> damage_of(MarkIs mark, const std::string& path);

}  // namespace semel::storage
