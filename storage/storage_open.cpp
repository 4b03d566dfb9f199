// Opening: the mark, the files, the log that an earlier process left, and what must be on disk
// before the first version is handed out.
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <utility>

#include "storage/storage_impl.hpp"

namespace semel {

using storage::Mark;
using storage::Place;

namespace {

Status check_range(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return Done{};
  return Error{ErrorCode::bad_option, std::string{name} + " = " + std::to_string(value) +
                                          ", range " + std::to_string(low) + ".." +
                                          std::to_string(high)};
}

std::uint64_t random_id() {
  std::uint64_t id = 0;
  // A short read of eight bytes cannot happen once the pool is up (getrandom(2)).
  while (id == 0) static_cast<void>(getrandom(&id, sizeof id, 0));
  return id;
}

/// A file that was being made: nothing was written to it yet.
bool is_blank(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string piece(std::size_t{64} << 10, '\0');
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    const auto end = piece.begin() + file.gcount();
    if (std::any_of(piece.begin(), end, [](char byte) { return byte != 0; })) return false;
  }
  return file.eof();
}

Place round_up(Place place, Place unit) noexcept {
  return (place + unit - 1) / unit * unit;
}

}  // namespace

Status Storage::Impl::check_options() const {
  struct Range {
    const char* name;
    std::uint64_t value, low, high;
  };
  const auto ms = [](Millis millis) { return static_cast<std::uint64_t>(millis.count()); };
  const Range ranges[] = {
      {"sync_every", ms(options_.sync_every), 1, 60'000},
      {"log_bytes", options_.log_bytes, std::uint64_t{1} << 20, std::uint64_t{16} << 30},
      {"confirm_within", ms(options_.confirm_within), 1, 600'000},
      {"span", ms(options_.span), 1'000, 86'400'000},
      {"garbage_bytes", options_.garbage_bytes, std::uint64_t{1} << 20, std::uint64_t{1} << 50},
      {"recovery_threads", options_.recovery_threads, 1, 64}};
  for (const Range& range : ranges) {
    SEMEL_TRY(checked, check_range(range.name, range.value, range.low, range.high));
    static_cast<void>(checked);
  }
  if (options_.directory.empty()) return Error{ErrorCode::bad_option, "directory is empty"};
  return Done{};
}

Status Storage::Impl::open(std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  SEMEL_TRY(checked, check_options());
  SEMEL_TRY(made, storage::make_directory(options_.directory));
  SEMEL_TRY(made_log, storage::make_directory(options_.directory + "/log"));
  boot_id_ = disk_.boot_id();
  SEMEL_TRY(found, open_mark());
  SEMEL_TRY(archive, storage::Archive::open(
                         disk_, {options_.directory, found == Mark::Found::empty, families}));
  archive_ = std::move(archive);
  SEMEL_TRY(drained, archive_->drained());
  SEMEL_TRY(agreed, check_mark(found, drained));
  same_boot_ = !boot_id_.empty() && boot_id_ == last_mark_.boot();
  SEMEL_TRY(segments, find_segments(drained));
  storage::Anchor anchor = archive_->description().anchor;
  if (found == Mark::Found::content && last_mark_.line_ms > anchor.line_ms) {
    anchor = {last_mark_.line_ms, last_mark_.engine_ms, last_mark_.unix_ms, last_mark_.boot()};
  }
  line_ = storage::TimeLine::resume(anchor, boot_id_, clock_.now(), clock_.unix_ms());
  static_cast<void>(checked), static_cast<void>(made), static_cast<void>(made_log);
  static_cast<void>(agreed), static_cast<void>(segments);
  return start(drained);
}

Result<Mark::Found> Storage::Impl::open_mark() {
  SEMEL_TRY(mark, Mark::open(disk_, options_.directory + "/mark"));
  mark_ = std::move(mark);
  const Mark::Found found = mark_->read(last_mark_);
  if (found == Mark::Found::damaged) {
    return Error{ErrorCode::storage_damaged,
                 mark_->path() + ", offset 0: neither of its slots has its checksum"};
  }
  if (found == Mark::Found::content && last_mark_.format > storage::format_version) {
    return Error{ErrorCode::storage_newer,
                 options_.directory + ": format " + std::to_string(last_mark_.format) +
                     ", this release knows " + std::to_string(storage::format_version)};
  }
  return found;
}

/// The files must have come as far as the mark says they once had.
Status Storage::Impl::check_mark(Mark::Found found, Place drained) const {
  const storage::Description& is = archive_->description();
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::storage_damaged, options_.directory + what};
  };
  if (found == Mark::Found::empty) {
    SEMEL_TRY(names, storage::list_directory(options_.directory + "/log"));
    if (drained == 0 && names.empty()) return Done{};
    return damaged("/mark, offset 0: is missing or empty");
  }
  if (is.format == 0)
    return damaged("/rocksdb: CURRENT, its MANIFEST or log do not hold the description");
  if (is.storage_id != last_mark_.storage_id) return damaged("/mark: is of another storage");
  if (drained < last_mark_.drained) {
    return damaged("/rocksdb: MANIFEST knows the log up to " + std::to_string(drained) +
                   ", but it was drained up to " + std::to_string(last_mark_.drained));
  }
  const std::uint64_t sequence = archive_->database().GetLatestSequenceNumber();
  if (sequence < last_mark_.rocks_sequence) {
    return damaged("/rocksdb: MANIFEST or log end at number " + std::to_string(sequence) +
                   ", but had reached " + std::to_string(last_mark_.rocks_sequence));
  }
  return Done{};
}

Status Storage::Impl::find_segments(Place drained) {
  const std::string directory = options_.directory + "/log";
  SEMEL_TRY(names, storage::list_directory(directory));
  const auto missing = [&](Place place) {
    return Error{ErrorCode::storage_damaged,
                 directory + "/" + storage::segment_name(place) + ", offset 0: is missing"};
  };
  // The mark is written only when what earlier processes left was drained. Where this one's log
  // began there may be a gap before it: of segments that a power cut took.
  const Place gone = std::max(drained, last_mark_.first_segment());
  Place at = std::max({drained, archive_->description().floor, last_mark_.begin});
  // After a boot what was not synced may be missing as a whole. A place just behind a header asks
  // for nothing of its segment.
  const Place unit = std::max<Place>(1, last_mark_.segment_bytes);
  Place needed = std::min(last_mark_.tail, rules().sound_to);
  if (needed % unit <= storage::segment_header_bytes) needed -= needed % unit;
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    const Place begin = std::strtoull(name.c_str(), nullptr, 16);
    if (name != storage::segment_name(begin)) {
      return Error{ErrorCode::storage_failed, path + ": is no segment of a log"};
    }
    // Its name was to be removed, and its bytes need never have reached the disk; or it was being
    // made when the process ended.
    if (begin < gone || (begin >= needed && is_blank(path))) {
      SEMEL_TRY(removed, disk_.remove(path));
      static_cast<void>(removed);
      continue;
    }
    SEMEL_TRY(file, storage::SegmentFile::open(path));
    const Place bytes = file.header().bytes;
    // What the name says must not rest on what a damaged header says.
    const std::uint64_t number = bytes != 0 && begin % bytes == 0 ? begin / bytes : 0;
    if (auto damage = file.check_header(number, archive_->description().storage_id)) {
      // A segment that was made when the power went, before its header was synced.
      if (begin >= needed && (!same_boot_ || file.holds_nothing())) {
        SEMEL_TRY(removed, disk_.remove(path));
        static_cast<void>(removed);
        continue;
      }
      return damage->error();
    }
    const Place end = begin + bytes;
    if (begin > round_up(at, bytes) && at < needed) return missing(round_up(at, bytes));
    old_segments_.push_back({path, begin, end, end});
    at = end;
  }
  if (round_up(at, unit) < needed) return missing(round_up(at, unit));
  return same_boot_ ? Status{Done{}} : stop_at_gaps(drained);
}

/// After a power cut, what was not synced counts up to the first gap of each process' log, unless
/// that process ran in this boot. A record
/// behind a gap may rest on one that is gone: it may be kept no longer than that one would have
/// been, and when it is forgotten, what both had replaced would be back.
Status Storage::Impl::stop_at_gaps(Place drained) {
  const storage::Description& is = archive_->description();
  std::uint64_t process = 0;
  bool stopped = false;
  Place expected = 0;
  for (OldSegment& segment : old_segments_) {
    SEMEL_TRY(file, storage::SegmentFile::open(segment.path));
    const storage::SegmentHeader& header = file.header();
    if (std::exchange(process, header.first) != header.first) {
      stopped = false;
      expected = std::max({header.first * header.bytes, drained, is.floor});
    }
    // A process of this boot was killed, and the system has kept what it wrote.
    if (!boot_id_.empty() && is.anchor.boot_id == boot_id_ && process >= is.boot_first) continue;
    const bool of_mark = process == last_mark_.begin / header.bytes;
    const Place sound = of_mark ? last_mark_.synced : 0;
    // One that the power cut took as a whole is a gap, too.
    if (segment.begin > expected && sound < segment.begin) stopped = true;
    expected = segment.end;
    if (stopped) segment.stop = segment.begin;
    if (stopped || sound >= segment.end) continue;
    const Place from = std::max(sound, segment.begin + storage::segment_header_bytes);
    segment.stop = storage::first_gap(file.bytes(), header, from);
    stopped = segment.stop != segment.end;
  }
  return Done{};
}

storage::ScanRules Storage::Impl::rules() const noexcept {
  storage::ScanRules rules;
  rules.storage_id = last_mark_.storage_id;
  rules.sound_to = same_boot_ ? std::numeric_limits<Place>::max() : last_mark_.synced;
  rules.whole_from = last_mark_.begin;
  rules.whole_to = std::min(rules.sound_to, last_mark_.whole);
  return rules;
}

/// Writes down that this process begins, and begins.
Status Storage::Impl::start(Place drained) {
  storage::Description is = archive_->description();
  const std::size_t bytes = std::bit_floor(options_.log_bytes / storage::Log::segment_count);
  Place newest = std::max({drained, last_mark_.tail, is.floor});
  if (!old_segments_.empty()) newest = std::max(newest, old_segments_.back().end);
  const std::uint64_t number = std::max<std::uint64_t>(1, round_up(newest, bytes) / bytes);
  if (is.format == 0) {
    is.storage_id = random_id();
    is.floor = number * bytes;
  }
  first_version_ = is.versions + 1;
  is.versions = first_version_ + version_reserve;
  // Without a boot id nobody knows whether the system went down in between.
  if (is.anchor.boot_id != boot_id_ || boot_id_.empty()) is.boot_first = number;
  is.anchor = anchor_now();
  // No version is handed out before it is known that it may be.
  SEMEL_TRY(described, archive_->describe(is));
  storage_id_ = is.storage_id;
  // mo: relaxed, here and below: nobody else is here yet.
  floor_.store(is.floor, std::memory_order_relaxed);
  batch_ends_.push_back(drained);
  log_ = std::make_unique<storage::Log>(
      disk_,
      storage::Log::Setup{options_.directory + "/log", bytes, storage_id_, number,
                          options_.confirm_within},
      crossed_);
  log_begin_ = prepared_tail_ = log_->tail();
  synced_.store(log_begin_, std::memory_order_relaxed);  // mo: as above
  wanted_.store(log_begin_, std::memory_order_relaxed);  // mo: as above
  drained_.store(drained, std::memory_order_relaxed);    // mo: as above
  rocks_sequence_.store(archive_->database().GetLatestSequenceNumber(),
                        std::memory_order_relaxed);  // mo: as above
  static_cast<void>(described);
  return start_threads();
}

Status Storage::Impl::start_threads() {
  old_left_.store(!old_segments_.empty(), std::memory_order_relaxed);  // mo: nobody else is here
  mark_content_ = last_mark_;
  write_mark();
  SEMEL_TRY(synced, mark_->sync());
  // After the mark: a log without one is damage.
  // So many that new work is accepted at once; the draining thread makes the others.
  while (!log_->accepts()) {
    SEMEL_TRY(prepared, log_->prepare(false));
    static_cast<void>(prepared);
  }
  static_cast<void>(synced);
  syncer_ = std::thread{[this] { run_syncer(); }};
  drainer_ = std::thread{[this] { run_drainer(); }};
  return Done{};
}

}  // namespace semel
