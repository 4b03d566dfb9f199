// Opening: the checkpoint, the files, the log of earlier processes, and what must be on disk before
// the first version is handed out.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "storage/log/log_files.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

using storage::Checkpoint;
using storage::LogOffset;

namespace {

Status check_range(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return Done{};
  return Error{ErrorCode::bad_option, std::string{name} + " = " + std::to_string(value) +
                                          ", range " + std::to_string(low) + ".." +
                                          std::to_string(high)};
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
      {"recovery_threads", options_.recovery_threads, 1, 64},
      {"clock_ahead_max", ms(options_.clock_ahead_max), 1'000, ms(limits::ttl_max)}};
  for (const Range& range : ranges) {
    SEMEL_CHECK(check_range(range.name, range.value, range.low, range.high));
  }
  if (options_.directory.empty()) return Error{ErrorCode::bad_option, "directory is empty"};
  return Done{};
}

Result<std::unique_ptr<Storage>> Storage::Impl::open(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  auto impl = std::make_unique<Impl>(options, clock);
  SEMEL_CHECK(impl->open_directory(std::move(families)));
  return std::unique_ptr<Storage>{new Storage{std::move(impl)}};
}

Status Storage::Impl::open_directory(std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  SEMEL_CHECK(check_options());
  SEMEL_CHECK(claim_directory());
  SEMEL_CHECK(check_open_files());
  SEMEL_CHECK(remove_backup_links());  // before the reserve: they may keep much space
  SEMEL_CHECK(use_reserve());
  SEMEL_CHECK(storage::make_directory(options_.directory + "/log"));
  boot_id_ = disk_.boot_id();
  SEMEL_TRY(found, open_checkpoint());
  SEMEL_TRY(archive,
            storage::Archive::open(disk_, {options_.directory, found == Checkpoint::Found::empty,
                                           std::move(families)}));
  archive_ = std::move(archive);
  SEMEL_TRY(drained, archive_->drained());
  SEMEL_CHECK(check_offsets(drained));
  SEMEL_CHECK(check_against_checkpoint(found, drained));
  // Uncontended: the draining thread, once started, waits until this returns.
  const base::MutexLock lock{archive_mutex_};
  // A snapshot of a volume has only what was synced, as after a power cut.
  same_boot_ = !boot_id_.empty() && boot_id_ == last_checkpoint_.boot() &&
               !directory_lock_->is_snapshot(boot_id_);
  SEMEL_CHECK(find_segments(drained));
  SEMEL_CHECK(sync_found());
  last_anchor_ = archive_->description().anchor;
  if (found == Checkpoint::Found::content && last_checkpoint_.line_ms > last_anchor_.line_ms) {
    last_anchor_ = {last_checkpoint_.line_ms, last_checkpoint_.engine_ms, last_checkpoint_.unix_ms,
                    last_checkpoint_.boot()};
  }
  SEMEL_CHECK(storage::check_wall_clock(last_anchor_, boot_id_, clock_.unix_ms(),
                                        options_.clock_ahead_max, options_.directory));
  const storage::ClockReading at = storage::read_clocks(clock_);
  durable_clock_ = storage::DurableClock::resume(last_anchor_, boot_id_, at.now, at.unix_ms);
  ended_before_ms_ = std::min(
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, last_anchor_.line_ms)), durable_now());
  return start(drained);
}

/// Nothing is read or written before the directory is known to be ours alone.
Status Storage::Impl::claim_directory() {
  const std::string& directory = options_.directory;
  SEMEL_CHECK(storage::check_not_foreign(directory, options_.own_files));
  if (storage::is_backup(directory)) {
    return Error{ErrorCode::storage_failed,
                 directory + ": is a backup; make a storage of it with semel restore"};
  }
  SEMEL_CHECK(storage::make_directory(directory));
  SEMEL_TRY(lock,
            storage::DirectoryLock::acquire(directory, storage::DirectoryLock::Missing::create));
  directory_lock_.emplace(std::move(lock));
  return Done{};
}

/// Before anything is changed: a recovery that runs out of them fails midway.
Status Storage::Impl::check_open_files() const {
  constexpr std::uint64_t others = 24;  // directories, locks, RocksDB's log, manifest and text log
  std::uint64_t tables = 0;
  std::error_code code;  // there is no database yet
  for (const auto& entry :
       std::filesystem::directory_iterator{options_.directory + "/rocksdb", code}) {
    tables += entry.path().extension() == ".sst" ? 1 : 0;
  }
  const std::uint64_t needed = storage::Log::segment_count + options_.recovery_threads + others +
                               std::min<std::uint64_t>(tables, storage::tables_open_max);
  return storage::check_descriptors(needed, options_.directory);
}

/// On a full disk RocksDB cannot be opened, and the log has no room for the erases that would free
/// some: the reserve is given up for it. keep_reserve() makes it again.
Status Storage::Impl::use_reserve() {
  const std::string path = options_.directory + "/reserve";
  if (disk_.bytes_free(options_.directory) < reserve_bytes()) {
    SEMEL_CHECK(disk_.remove(path));
  }
  std::error_code code;
  has_reserve_ = std::filesystem::exists(path, code);
  return Done{};
}

/// Numbers that no storage reaches: their checksums are right, so they were written on purpose.
Status Storage::Impl::check_offsets(LogOffset drained) const {
  constexpr LogOffset offset_max = LogOffset{1} << 62;
  const LogOffset largest =
      std::max({drained, archive_->description().floor, last_checkpoint_.tail});
  if (largest <= offset_max) return Done{};
  return Error{ErrorCode::storage_damaged, options_.directory + ": its log ends at " +
                                               std::to_string(largest) + ", at most " +
                                               std::to_string(offset_max) + " is possible"};
}

/// What an earlier process wrote and did not sync is in the page cache. Work that this process
/// acknowledges as synced rests on it.
Status Storage::Impl::sync_found() {
  for (const OldSegment& segment : old_segments_) {
    SEMEL_CHECK(disk_.sync_file(segment.path));
  }
  return Done{};
}

Result<Checkpoint::Found> Storage::Impl::open_checkpoint() {
  SEMEL_TRY(checkpoint, Checkpoint::open(disk_, options_.directory + "/mark"));
  checkpoint_ = std::move(checkpoint);
  SEMEL_TRY(found, checkpoint_->read(last_checkpoint_));
  if (found == Checkpoint::Found::damaged) {
    return storage::damage_of(storage::MarkIs::damaged, checkpoint_->path())->error();
  }
  if (found == Checkpoint::Found::content && last_checkpoint_.format > storage::format_version) {
    return storage::unknown_format(options_.directory, last_checkpoint_.format);
  }
  return found;
}

/// Checks that the database is not behind the checkpoint.
Status Storage::Impl::check_against_checkpoint(Checkpoint::Found found, LogOffset drained) const {
  const storage::Description& is = archive_->description();
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::storage_damaged, options_.directory + what};
  };
  if (found != Checkpoint::Found::content) {
    SEMEL_TRY(names, storage::list_directory(options_.directory + "/log"));
    const auto damage = storage::damage_of(storage::classify_mark(found, drained, !names.empty()),
                                           checkpoint_->path());
    return damage ? Status{damage->error()} : Done{};
  }
  if (is.format == 0)
    return damaged("/rocksdb: CURRENT, its MANIFEST or log do not hold the description");
  if (is.storage_id != last_checkpoint_.storage_id)
    return damaged("/mark: belongs to another storage");
  if (drained < last_checkpoint_.drained) {
    return damaged("/rocksdb: MANIFEST knows the log up to " + std::to_string(drained) +
                   ", but it was drained up to " + std::to_string(last_checkpoint_.drained));
  }
  const std::uint64_t sequence = archive_->database().GetLatestSequenceNumber();
  if (sequence < last_checkpoint_.rocks_sequence) {
    return damaged("/rocksdb: MANIFEST or log end at number " + std::to_string(sequence) +
                   ", but had reached " + std::to_string(last_checkpoint_.rocks_sequence));
  }
  return Done{};
}

/// Nothing is changed before all of it is judged.
Status Storage::Impl::find_segments(LogOffset drained) {
  const std::string directory = options_.directory + "/log";
  SEMEL_TRY(names, storage::list_directory(directory));
  storage::ScanRules how = rules();
  how.storage_id = archive_->description().storage_id;
  const storage::LogFiles log =
      storage::classify_log(directory, names,
                            storage::log_bounds(last_checkpoint_, drained,
                                                archive_->description().floor, how, same_boot_));
  if (const auto damage = log.first_damage()) return damage->error();
  for (const storage::LogFile& file : log.files) {
    if (file.is == storage::LogFileIs::leftover) {
      SEMEL_CHECK(disk_.remove(file.path));
    } else {
      old_segments_.push_back({file.path, file.begin, file.end, file.end});
    }
  }
  return same_boot_ ? Status{Done{}} : stop_at_gaps(drained);
}

/// After a power cut, unsynced data counts up to the first gap in each process's log, unless that
/// process ran in this boot. A record behind a gap may have replaced a lost one: it may end
/// earlier, and then the record that both replaced would come back.
Status Storage::Impl::stop_at_gaps(LogOffset drained) {
  const storage::Description& is = archive_->description();
  std::uint64_t process = 0;
  bool stopped = false;
  LogOffset expected = 0;
  for (OldSegment& segment : old_segments_) {
    SEMEL_TRY(file, storage::SegmentFile::open(segment.path));
    if (file.unreadable()) return file.unreadable()->error();  // no gap: it may have been synced
    const storage::SegmentHeader& header = file.header();
    if (std::exchange(process, header.first) != header.first) {
      stopped = false;
      expected = std::max({header.first * header.bytes, drained, is.floor});
    }
    // A process of this boot was killed; the kernel has kept all it wrote.
    if (!boot_id_.empty() && is.anchor.boot_id == boot_id_ && process >= is.boot_first) continue;
    const bool of_mark = process == last_checkpoint_.begin / header.bytes;
    const LogOffset sound = of_mark ? last_checkpoint_.synced : 0;
    // A missing segment is a gap, too.
    if (segment.begin > expected && sound < segment.begin) stopped = true;
    expected = segment.end;
    if (stopped) segment.stop = segment.begin;
    if (stopped || sound >= segment.end) continue;
    const LogOffset from = std::max(sound, segment.begin + storage::segment_header_bytes);
    segment.stop = storage::first_gap(file.bytes(), header, from);
    stopped = segment.stop != segment.end;
  }
  return Done{};
}

storage::ScanRules Storage::Impl::rules() const noexcept {
  storage::ScanRules rules;
  rules.storage_id = last_checkpoint_.storage_id;
  rules.sound_to = same_boot_ ? std::numeric_limits<LogOffset>::max() : last_checkpoint_.synced;
  rules.whole_from = last_checkpoint_.begin;
  rules.whole_to = std::min(rules.sound_to, last_checkpoint_.whole);
  return rules;
}

/// A copy becomes a storage of its own: its versions continue far above those of its original.
Status Storage::Impl::take_identity(storage::Description& is) const {
  const std::optional<storage::Identity> known = directory_lock_->identity(boot_id_);
  // Of a directory that an earlier release left it is not known.
  const bool is_copy =
      is.format != 0 && (is.incarnation == 0 || !known || known->storage_id != is.storage_id ||
                         known->incarnation != is.incarnation);
  if (is_copy) is.versions += storage::random_version_jump();
  if (is_copy || is.format == 0) is.incarnation = storage::random_id();
  if (is.versions <= limits::version_max - version_reserve) return Done{};
  return Error{ErrorCode::storage_failed, options_.directory + ": its versions are used up, " +
                                              std::to_string(is.versions) + " of " +
                                              std::to_string(limits::version_max)};
}

/// That this process lives, and in which boot its log begins. Not before recover() has everything:
/// the next start takes what had ended by then for ended
/// (docs/decisions/0073-progress-of-a-start.md).
void Storage::Impl::record_life(storage::Description& is, LogOffset log_begin) const {
  // Without a boot id it is unknown whether the machine was restarted in between.
  if (is.anchor.boot_id != boot_id_ || boot_id_.empty())
    is.boot_first = log_begin / segment_bytes();
  is.anchor = anchor_now();
}

/// Records on disk what must be there before a version is handed out, then starts the threads.
Status Storage::Impl::start(LogOffset drained) {
  storage::Description is = archive_->description();
  const std::size_t bytes = segment_bytes();
  LogOffset newest = std::max({drained, last_checkpoint_.tail, is.floor});
  if (!old_segments_.empty()) newest = std::max(newest, old_segments_.back().end);
  const std::uint64_t number = std::max<std::uint64_t>(1, storage::round_up(newest, bytes) / bytes);
  const bool is_new = is.format == 0;
  if (is_new) {
    is.storage_id = storage::random_id();
    is.floor = number * bytes;
    is.knows_namespaces = true;
    is.has_folded_memos = true;
    record_life(is, is.floor);
  }
  SEMEL_CHECK(take_identity(is));
  first_version_ = is.versions + 1;
  is.versions = first_version_ + version_reserve;
  SEMEL_CHECK(archive_->describe(is));
  SEMEL_CHECK(directory_lock_->write({is.storage_id, is.incarnation}, boot_id_));
  storage_id_ = is.storage_id;
  // mo: relaxed, here and below: no other thread runs yet.
  floor_.store(is.floor, std::memory_order_relaxed);
  batch_ends_.reserve(batch_ends_max);
  batch_ends_.push_back(drained);
  old_left_.store(!old_segments_.empty(), std::memory_order_relaxed);  // mo: as above
  log_ = std::make_unique<storage::Log>(
      disk_,
      storage::Log::Setup{options_.directory + "/log",
                          bytes,
                          storage_id_,
                          number,
                          options_.confirm_within,
                          disk_.maps_safely(options_.directory) ? storage::Segment::Access::mapped
                                                                : storage::Segment::Access::written,
                          {first_version_, durable_now()}},
      drain_signal_);
  log_begin_ = prepared_tail_ = looked_tail_ = log_->tail();
  looked_ms_ = durable_now();
  synced_.store(log_begin_, std::memory_order_relaxed);     // mo: as above
  requested_.store(log_begin_, std::memory_order_relaxed);  // mo: as above
  drained_.store(drained, std::memory_order_relaxed);       // mo: as above
  rocks_sequence_.store(archive_->database().GetLatestSequenceNumber(),
                        std::memory_order_relaxed);  // mo: as above
  return start_threads(is_new);
}

Status Storage::Impl::start_threads(bool is_new) {
  checkpoint_content_ = last_checkpoint_;
  // Only of a new storage: see write_checkpoint().
  if (!write_checkpoint()) return storage::system_error("writing " + checkpoint_->path());
  SEMEL_CHECK(checkpoint_->sync());
  // After the checkpoint: a log without one counts as damage. Enough to accept new work at once;
  // the draining thread makes the others.
  while (!log_->accepts()) {
    const Status prepared = log_->has_begun() ? log_->prepare(false) : log_->begin();
    if (prepared) continue;
    // The disk is full. What is there can be read, and it must be there where space comes back: by
    // draining, by what frees, if there are two segments for it, or from outside.
    const bool is_full = disk_.bytes_free(options_.directory) < reserve_bytes();
    if (!log_->accepts_frees() && (is_new || !is_full)) return prepared;
    record_drain_status(prepared);  // why nothing is accepted, from the beginning
    break;
  }
  try {
    syncer_ = std::thread{[this] { run_syncer(); }};
    drainer_ = std::thread{[this] { run_drainer(); }};
  } catch (const std::system_error& error) {
    return Error{ErrorCode::no_thread, options_.directory + ": " + error.what()};
  }
  return Done{};
}

}  // namespace semel
