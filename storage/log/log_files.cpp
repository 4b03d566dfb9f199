#include "storage/log/log_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace semel::storage {
namespace {

std::uint64_t size_of(const std::string& path) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(path, code);
  return code ? 0 : bytes;
}

/// Whether a file without a valid header may be what an interrupted creation left. `begin` is not
/// needed then. After a power cut it may have any content, as none of it was synced.
bool is_half_made(const std::string& path, const LogBounds& bounds) {
  if (!bounds.same_boot) return true;
  const auto whole = SegmentFile::open(path);
  if (whole) return whole->holds_nothing();
  return size_of(path) == 0;
}

}  // namespace

LogBounds log_bounds(const CheckpointContent& checkpoint, LogOffset drained, LogOffset floor,
                     const ScanRules& rules, bool same_boot) {
  LogBounds bounds;
  bounds.storage_id = rules.storage_id;
  // A checkpoint is written only after the segments of earlier processes were drained. Before the
  // begin of its journal there may be a gap: segments lost in a power cut.
  bounds.gone = std::max(drained, checkpoint.first_segment());
  bounds.unit = std::max<LogOffset>(1, checkpoint.segment_bytes);
  bounds.from = std::max(bounds.gone, floor / bounds.unit * bounds.unit);
  // After a boot all unsynced data may be missing. An offset just behind a header needs no data of
  // its segment.
  bounds.needed = std::min(checkpoint.tail, rules.sound_to);
  if (bounds.needed % bounds.unit <= segment_header_bytes) {
    bounds.needed -= bounds.needed % bounds.unit;
  }
  bounds.same_boot = same_boot;
  return bounds;
}

LogFile classify_log_file(const std::string& path, const LogBounds& bounds) {
  const std::string name = std::filesystem::path{path}.filename().string();
  const LogOffset begin = std::strtoull(name.c_str(), nullptr, 16);
  LogFile file{path, LogFileIs::segment, begin, begin + bounds.unit, std::nullopt};
  if (name != segment_name(begin)) {
    file.is = LogFileIs::foreign;
    file.begin = file.end = 0;
    file.damage = LogDamage{path, 0, "is not a segment of a log"};
    return file;
  }
  const auto leftover = [&] {
    file.is = LogFileIs::leftover;
    file.end = begin;
    file.damage.reset();
    return file;
  };
  if (begin < bounds.gone) return leftover();  // its removal did not reach the disk
  const auto header = SegmentFile::open_header(path);
  if (!header) {
    const bool is_short = header.error().code == ErrorCode::storage_damaged;
    file.damage = LogDamage{path, is_short ? size_of(path) : 0,
                            is_short ? "the file ends in its header" : header.error().detail};
  } else {
    const LogOffset bytes = header->header().bytes;
    // Derive the number from the name: the header may be damaged.
    const std::uint64_t number = bytes != 0 && begin % bytes == 0 ? begin / bytes : 0;
    file.damage = header->check_header(number, bounds.storage_id);
    if (!file.damage) {
      file.end = begin + bytes;
      return file;
    }
  }
  if (begin >= bounds.needed && is_half_made(path, bounds)) return leftover();
  file.is = LogFileIs::damaged;
  file.end = begin + std::max<LogOffset>(bounds.unit, size_of(path));
  return file;
}

LogFiles classify_log(const std::string& directory, const std::vector<std::string>& names,
                      const LogBounds& bounds) {
  LogFiles log;
  LogOffset at = bounds.from;
  const auto expect = [&](LogOffset next, LogOffset unit) {
    const LogOffset from = round_up(at, unit);
    if (next > from && at < bounds.needed) {
      log.gaps.push_back({directory + "/" + segment_name(from), from, next});
    }
  };
  bool is_first = true;
  for (const std::string& name : names) {
    LogFile file = classify_log_file(directory + "/" + name, bounds);
    if (file.is == LogFileIs::segment || file.is == LogFileIs::damaged) {
      // Then only the files say how far the journal was drained.
      if (std::exchange(is_first, false) && !bounds.knows_drained) at = std::max(at, file.begin);
      expect(file.begin, file.damage ? bounds.unit : file.end - file.begin);
      at = std::max(at, file.end);
    }
    log.files.push_back(std::move(file));
  }
  expect(bounds.needed, bounds.unit);
  return log;
}

std::optional<LogDamage> LogFiles::first_damage() const {
  const auto bad = std::find_if(files.begin(), files.end(),
                                [](const LogFile& file) { return file.damage.has_value(); });
  if (!gaps.empty() && (bad == files.end() || gaps.front().from < bad->begin)) {
    return gaps.front().damage();
  }
  return bad == files.end() ? std::nullopt : bad->damage;
}

MarkIs classify_mark(Checkpoint::Found found, LogOffset drained, bool has_log) {
  switch (found) {
    case Checkpoint::Found::content:
      return MarkIs::content;
    case Checkpoint::Found::damaged:
      return MarkIs::damaged;
    case Checkpoint::Found::empty:
    case Checkpoint::Found::unfinished:
      break;
  }
  // The journal is begun when the first checkpoint is on disk.
  if (drained == 0 && !has_log) return MarkIs::fresh;
  return found == Checkpoint::Found::empty ? MarkIs::missing : MarkIs::damaged;
}

std::optional<LogDamage> damage_of(MarkIs mark, const std::string& path) {
  switch (mark) {
    case MarkIs::content:
    case MarkIs::fresh:
      break;
    case MarkIs::missing:
      return LogDamage{path, 0, "is missing or empty"};
    case MarkIs::damaged:
      return LogDamage{path, 0, "neither of its slots has its checksum"};
  }
  return std::nullopt;
}

}  // namespace semel::storage
