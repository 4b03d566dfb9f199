#include "storage/start/opening.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "storage/backup/backup_io.hpp"
#include "storage/log/log_files.hpp"

namespace semel::storage {

namespace {

Status check_range(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return Done{};
  return Error{ErrorCode::bad_option, std::string{name} + " = " + std::to_string(value) +
                                          ", range " + std::to_string(low) + ".." +
                                          std::to_string(high)};
}

Status check_options(const StorageOptions& options) {
  struct Range {
    const char* name;
    std::uint64_t value, low, high;
  };
  const auto ms = [](Millis millis) { return static_cast<std::uint64_t>(millis.count()); };
  const Range ranges[] = {
      {"sync_every", ms(options.sync_every), 1, 60'000},
      {"log_bytes", options.log_bytes, std::uint64_t{1} << 20, std::uint64_t{16} << 30},
      {"confirm_within", ms(options.confirm_within), 1, 600'000},
      {"span", ms(options.span), 1'000, 86'400'000},
      {"garbage_bytes", options.garbage_bytes, std::uint64_t{1} << 20, std::uint64_t{1} << 50},
      {"recovery_threads", options.recovery_threads, 1, 64},
      {"clock_ahead_max", ms(options.clock_ahead_max), 1'000, ms(limits::ttl_max)}};
  for (const Range& range : ranges) {
    SEMEL_CHECK(check_range(range.name, range.value, range.low, range.high));
  }
  if (options.directory.empty()) return Error{ErrorCode::bad_option, "directory is empty"};
  return Done{};
}

/// Nothing is read or written before the directory is known to be ours alone.
Result<DirectoryLock> claim_directory(const StorageOptions& options) {
  const std::string& directory = options.directory;
  SEMEL_CHECK(check_not_foreign(directory, options.own_files));
  if (is_backup(directory)) {
    return Error{ErrorCode::storage_failed,
                 directory + ": is a backup; make a storage of it with semel restore"};
  }
  SEMEL_CHECK(make_directory(directory));
  return DirectoryLock::acquire(directory, DirectoryLock::Missing::create);
}

/// Before anything is changed: a recovery that runs out of them fails midway.
Status check_open_files(const StorageOptions& options) {
  constexpr std::uint64_t others = 24;  // directories, locks, RocksDB's log, manifest and text log
  std::uint64_t tables = 0;
  std::error_code code;  // there is no database yet
  for (const auto& entry :
       std::filesystem::directory_iterator{options.directory + "/rocksdb", code}) {
    tables += entry.path().extension() == ".sst" ? 1 : 0;
  }
  const std::uint64_t needed = LogExtent::segment_count + options.recovery_threads + others +
                               std::min<std::uint64_t>(tables, tables_open_max);
  return check_descriptors(needed, options.directory);
}

/// The steps, in their order.
class Opening {
 public:
  Opening(Context& context, DirectoryLock lock)
      : context_(context), directory_(context.options.directory), lock_(std::move(lock)) {}

  [[nodiscard]] Result<Opened> run(std::vector<rocksdb::ColumnFamilyDescriptor> families);

 private:
  [[nodiscard]] Status use_reserve();
  [[nodiscard]] Status open_checkpoint();
  [[nodiscard]] Status check_offsets() const;
  [[nodiscard]] Status check_against_checkpoint() const;
  [[nodiscard]] Status sync_found() const;
  [[nodiscard]] Status resume_clock();
  [[nodiscard]] Status take_identity(Description& is) const;
  [[nodiscard]] Result<Opened> describe();

  Context& context_;
  const std::string& directory_;
  DirectoryLock lock_;
  bool has_reserve_ = false;
  std::unique_ptr<Checkpoint> checkpoint_;
  Checkpoint::Found found_ = Checkpoint::Found::empty;
  EarlierProcess earlier_;
  std::unique_ptr<Archive> archive_;
  LogOffset drained_ = 0;
  std::vector<OldSegment> segments_;
};

Result<Opened> Opening::run(std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  SEMEL_CHECK(check_open_files(context_.options));
  // Before the reserve: they may keep much space.
  SEMEL_CHECK(remove_tree(*context_.disk.env(), directory_ + backup_links));
  SEMEL_CHECK(use_reserve());
  SEMEL_CHECK(make_directory(directory_ + "/log"));
  context_.boot_id = context_.disk.boot_id();
  SEMEL_CHECK(open_checkpoint());
  SEMEL_TRY(archive, Archive::open(context_.disk, {directory_, found_ == Checkpoint::Found::empty,
                                                   std::move(families)}));
  archive_ = std::move(archive);
  SEMEL_TRY(drained, archive_->drained());
  drained_ = drained;
  SEMEL_CHECK(check_offsets());
  SEMEL_CHECK(check_against_checkpoint());
  // A snapshot of a volume has only synced data, as after a power cut.
  earlier_.same_boot = !context_.boot_id.empty() &&
                       context_.boot_id == earlier_.checkpoint.boot() &&
                       !lock_.is_snapshot(context_.boot_id);
  SEMEL_TRY(segments, earlier_.find_segments(context_, *archive_, drained_));
  segments_ = std::move(segments);
  SEMEL_CHECK(sync_found());
  SEMEL_CHECK(resume_clock());
  return describe();
}

/// On a full disk RocksDB cannot be opened, and the journal has no room for the erases that would
/// free some: the reserve is given up for it. The draining thread makes it again.
Status Opening::use_reserve() {
  if (context_.disk.bytes_free(directory_) < context_.reserve_bytes()) {
    SEMEL_CHECK(context_.disk.remove(context_.reserve_path()));
  }
  std::error_code code;
  has_reserve_ = std::filesystem::exists(context_.reserve_path(), code);
  return Done{};
}

Status Opening::open_checkpoint() {
  SEMEL_TRY(checkpoint, Checkpoint::open(context_.disk, directory_ + "/mark"));
  checkpoint_ = std::move(checkpoint);
  SEMEL_TRY(found, checkpoint_->read(earlier_.checkpoint));
  found_ = found;
  if (found == Checkpoint::Found::damaged) {
    return damage_of(MarkIs::damaged, checkpoint_->path())->error();
  }
  if (found == Checkpoint::Found::content && earlier_.checkpoint.format > format_version) {
    return unknown_format(directory_, earlier_.checkpoint.format);
  }
  return Done{};
}

/// Numbers that no storage reaches: their checksums are right, so they were written on purpose.
Status Opening::check_offsets() const {
  constexpr LogOffset offset_max = LogOffset{1} << 62;
  const LogOffset largest =
      std::max({drained_, archive_->description().floor, earlier_.checkpoint.tail});
  if (largest <= offset_max) return Done{};
  return Error{ErrorCode::storage_damaged, directory_ + ": its log ends at " +
                                               std::to_string(largest) + ", at most " +
                                               std::to_string(offset_max) + " is possible"};
}

/// Checks that the database is not behind the checkpoint.
Status Opening::check_against_checkpoint() const {
  const Description& is = archive_->description();
  const CheckpointContent& last = earlier_.checkpoint;
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::storage_damaged, directory_ + what};
  };
  if (found_ != Checkpoint::Found::content) {
    SEMEL_TRY(names, list_directory(directory_ + "/log"));
    const auto damage =
        damage_of(classify_mark(found_, drained_, !names.empty()), checkpoint_->path());
    return damage ? Status{damage->error()} : Done{};
  }
  if (is.format == 0)
    return damaged("/rocksdb: CURRENT, its MANIFEST or log do not hold the description");
  if (is.storage_id != last.storage_id) return damaged("/mark: belongs to another storage");
  if (drained_ < last.drained) {
    return damaged("/rocksdb: MANIFEST knows the log up to " + std::to_string(drained_) +
                   ", but it was drained up to " + std::to_string(last.drained));
  }
  const std::uint64_t sequence = archive_->database().GetLatestSequenceNumber();
  if (sequence < last.rocks_sequence) {
    return damaged("/rocksdb: MANIFEST or log end at number " + std::to_string(sequence) +
                   ", but had reached " + std::to_string(last.rocks_sequence));
  }
  return Done{};
}

/// What an earlier process wrote is in the page cache, synced or not; a sync of it may have failed.
/// Work that this process acknowledges as synced rests on it. The checkpoint names the end of the
/// last sync that succeeded. Which boot it names does not matter: while old segments are drained
/// none is written, and the process that failed may be of a later boot than its own.
Status Opening::sync_found() const {
  for (const OldSegment& segment : segments_) {
    const LogOffset synced = std::max(earlier_.checkpoint.synced, segment.begin);
    // A position in the file is not before that in the log: each file begins with a header.
    if (synced < segment.end) {
      SEMEL_CHECK(context_.disk.rewrite_file(segment.path, synced - segment.begin));
    } else {
      SEMEL_CHECK(context_.disk.sync_file(segment.path));
    }
  }
  return Done{};
}

/// The durable clock goes on from the last time that is on disk.
Status Opening::resume_clock() {
  const CheckpointContent& last = earlier_.checkpoint;
  Anchor& anchor = earlier_.anchor;
  anchor = archive_->description().anchor;
  if (found_ == Checkpoint::Found::content && last.line_ms > anchor.line_ms) {
    anchor = {last.line_ms, last.engine_ms, last.unix_ms, last.boot()};
  }
  SEMEL_CHECK(check_wall_clock(anchor, context_.boot_id, context_.clock.unix_ms(),
                               context_.options.clock_ahead_max, directory_));
  const ClockReading at = read_clocks(context_.clock);
  context_.durable_clock = DurableClock::resume(anchor, context_.boot_id, at.now, at.unix_ms);
  earlier_.ended_before_ms =
      std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(0, anchor.line_ms)),
               context_.durable_now());
  return Done{};
}

/// A copy becomes a storage of its own: its versions continue far above those of its original.
Status Opening::take_identity(Description& is) const {
  const std::optional<Identity> known = lock_.identity(context_.boot_id);
  // Of a directory that an earlier release left it is not known.
  const bool is_copy =
      is.format != 0 && (is.incarnation == 0 || !known || known->storage_id != is.storage_id ||
                         known->incarnation != is.incarnation);
  if (is_copy) is.versions += random_version_jump();
  if (is_copy || is.format == 0) is.incarnation = random_id();
  if (is.versions <= limits::version_max - version_reserve) return Done{};
  return Error{ErrorCode::storage_failed, directory_ + ": its versions are used up, " +
                                              std::to_string(is.versions) + " of " +
                                              std::to_string(limits::version_max)};
}

/// Writes the facts that must be on disk before a version is handed out.
Result<Opened> Opening::describe() {
  Description is = archive_->description();
  const std::size_t bytes = context_.segment_bytes();
  LogOffset newest = std::max({drained_, earlier_.checkpoint.tail, is.floor});
  if (!segments_.empty()) newest = std::max(newest, segments_.back().end);
  const std::uint64_t number = std::max<std::uint64_t>(1, round_up(newest, bytes) / bytes);
  const bool is_new = is.format == 0;
  if (is_new) {
    is.storage_id = random_id();
    is.floor = number * bytes;
    is.knows_namespaces = true;
    is.has_folded_memos = true;
    record_life(context_, is, is.floor);
  }
  SEMEL_CHECK(take_identity(is));
  context_.first_version = is.versions + 1;
  is.versions = context_.first_version + version_reserve;
  SEMEL_CHECK(archive_->describe(is));
  SEMEL_CHECK(lock_.write({is.storage_id, is.incarnation}, context_.boot_id));
  context_.storage_id = is.storage_id;
  return Opened{.lock = std::move(lock_),
                .checkpoint = std::move(checkpoint_),
                .archive = std::move(archive_),
                .earlier = std::move(earlier_),
                .segments = std::move(segments_),
                .drained = drained_,
                .segment_number = number,
                .is_new = is_new,
                .has_reserve = has_reserve_};
}

}  // namespace

Result<Opened> open_directory(Context& context,
                              std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  SEMEL_CHECK(check_options(context.options));
  SEMEL_TRY(lock, claim_directory(context.options));
  return Opening{context, std::move(lock)}.run(std::move(families));
}

void record_life(const Context& context, Description& is, LogOffset log_begin) {
  // Without a boot id it is unknown whether the machine was restarted in between.
  if (is.anchor.boot_id != context.boot_id || context.boot_id.empty())
    is.boot_first = log_begin / context.segment_bytes();
  is.anchor = context.anchor_now();
}

}  // namespace semel::storage
