#include "storage/start/earlier_process.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/log_files.hpp"

namespace semel::storage {

Result<std::vector<OldSegment>> EarlierProcess::find_segments(const Context& context,
                                                              const Archive& archive,
                                                              LogOffset drained) const {
  const std::string directory = context.options.directory + "/log";
  SEMEL_TRY(names, list_directory(directory));
  const Description& is = archive.description();
  ScanRules how = rules();
  how.storage_id = is.storage_id;
  const LogFiles log =
      classify_log(directory, names, log_bounds(checkpoint, drained, is.floor, how, same_boot));
  if (const auto damage = log.first_damage()) return damage->error();
  std::vector<OldSegment> segments;
  for (const LogFile& file : log.files) {
    if (file.is == LogFileIs::leftover) {
      SEMEL_CHECK(context.disk.remove(file.path));
    } else {
      segments.push_back({file.path, file.begin, file.end, file.end});
    }
  }
  if (!same_boot) SEMEL_CHECK(stop_at_gaps(context, is, drained, segments));
  return segments;
}

/// After a power cut, unsynced data counts up to the first gap in each process's journal, unless
/// that process ran in this boot. A record behind a gap may have replaced a lost one: it may end
/// earlier, and then the record that both replaced would come back.
Status EarlierProcess::stop_at_gaps(const Context& context, const Description& is,
                                    LogOffset drained, std::vector<OldSegment>& segments) const {
  std::uint64_t process = 0;
  bool stopped = false;
  LogOffset expected = 0;
  for (OldSegment& segment : segments) {
    SEMEL_TRY(file, SegmentFile::open(segment.path));
    if (file.unreadable()) return file.unreadable()->error();  // no gap: it may have been synced
    const SegmentHeader& header = file.header();
    if (std::exchange(process, header.first) != header.first) {
      stopped = false;
      expected = std::max({header.first * header.bytes, drained, is.floor});
    }
    // A process of this boot was killed; the kernel has kept all it wrote.
    if (!context.boot_id.empty() && is.anchor.boot_id == context.boot_id &&
        process >= is.boot_first) {
      continue;
    }
    const bool of_mark = process == checkpoint.begin / header.bytes;
    const LogOffset sound = of_mark ? checkpoint.synced : 0;
    // A missing segment is a gap, too.
    if (segment.begin > expected && sound < segment.begin) stopped = true;
    expected = segment.end;
    if (stopped) segment.stop = segment.begin;
    if (stopped || sound >= segment.end) continue;
    const LogOffset from = std::max(sound, segment.begin + segment_header_bytes);
    segment.stop = first_gap(file.bytes(), header, from);
    stopped = segment.stop != segment.end;
    SEMEL_ASSERT(segment.begin <= segment.stop && segment.stop <= segment.end);
  }
  return Done{};
}

ScanRules EarlierProcess::rules() const noexcept {
  ScanRules rules;
  rules.storage_id = checkpoint.storage_id;
  rules.sound_to = same_boot ? std::numeric_limits<LogOffset>::max() : checkpoint.synced;
  rules.whole_from = checkpoint.begin;
  rules.whole_to = std::min(rules.sound_to, checkpoint.whole);
  return rules;
}

Result<ScanReport> EarlierProcess::scan(const OldSegment& segment, const VisitRecord& visit,
                                        const std::function<void()>& at_end) const {
  SEMEL_TRY(file, SegmentFile::open(segment.path));
  if (file.unreadable()) return file.unreadable()->error();
  ScanRules how = rules();
  how.stop = segment.stop;
  ScanReport report = storage::scan(file.bytes(), file.header(), file.path(), how, false, visit);
  at_end();
  if (!report.damage.empty()) return report.damage.front().error();
  return report;
}

}  // namespace semel::storage
