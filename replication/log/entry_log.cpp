#include "replication/log/entry_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/record_writer.hpp"

namespace semel::replication {

using storage::LogOffset;
using storage::RecordShape;
using storage::RecordType;
using storage::Segment;
using What = LogStatement::What;

namespace {

constexpr std::size_t segment_bytes_min = std::size_t{64} << 10;
constexpr std::size_t segment_bytes_max = std::size_t{256} << 20;

/// Whether it can be what a power cut has left of the making of a segment: no header, or none that
/// is valid and only zeros behind it. No entry was in it.
bool is_half_made(const std::string& path) {
  std::error_code code;
  if (std::filesystem::file_size(path, code) < storage::segment_header_bytes && !code) return true;
  const auto file = storage::SegmentFile::open(path);
  return file.ok() && !file->unreadable() && !file->header().is_valid() && file->holds_nothing();
}

Error failed_before() {
  return {ErrorCode::storage_failed, "a sync of the log has failed"};
}

/// Before anything is read or changed.
Status check_identity(storage::DirectoryLock& lock, const EntryLogOptions& options,
                      const LogSegments& segments) {
  const std::string boot_id = options.disk->boot_id();
  const auto identity = lock.identity(boot_id);
  const bool is_own = identity && identity->storage_id == options.log_id;
  if (is_own) return Done{};
  SEMEL_TRY(names, segments.list());
  if (!names.empty() && !options.accepts_copy) {
    return Error{ErrorCode::storage_failed,
                 options.directory +
                     ": is a copy of a log, or the log of another cluster: the node has to join "
                     "again with an empty directory"};
  }
  return lock.write({.storage_id = options.log_id, .incarnation = base::random_number()}, boot_id);
}

/// Where a segment says that the one before ends; 0: it was made and not begun.
LogOffset end_before(const storage::SegmentFile& file) {
  const auto record =
      storage::record_at(file.bytes(), file.header(), storage::segment_header_bytes);
  if (record.is != storage::FoundRecord::Is::whole) return 0;
  const auto said = read_statement(record.payload);
  return said && said->what == What::begin ? said->offset : 0;
}

/// A killed process may have left records that are not on the disk yet, and one that ended by a
/// failed sync records that no further sync would bring there. This node's vote counts the records
/// that it reads now, so they are written before. The tail names the end of the last sync that
/// succeeded; a segment is synced before the next one is begun, so only the last two can have more.
Status rewrite_unsynced(storage::Disk& disk, const LogSegments& segments,
                        const std::vector<std::string>& names, LogOffset named) {
  const std::uint64_t number = segments.number_before(named);
  const std::string synced = segments.name_of(number);
  for (std::size_t i = names.size() - std::min<std::size_t>(names.size(), 2); i < names.size();
       ++i) {
    const bool is_named = named != 0 && names[i] == synced;
    SEMEL_CHECK(disk.rewrite_file(segments.directory() + "/" + names[i],
                                  is_named ? named - segments.begin_of(number) : 0));
  }
  return Done{};
}

}  // namespace

EntryLog::~EntryLog() = default;

Result<std::unique_ptr<EntryLog>> EntryLog::open(const EntryLogOptions& options) {
  const std::size_t bytes = options.segment_bytes;
  if (!std::has_single_bit(bytes) || bytes < segment_bytes_min || bytes > segment_bytes_max) {
    return Error{ErrorCode::bad_option,
                 "segment_bytes = " + std::to_string(bytes) + ", a power of two of " +
                     std::to_string(segment_bytes_min) + ".." + std::to_string(segment_bytes_max)};
  }
  std::unique_ptr<EntryLog> log{new EntryLog{options}};
  if (!options.only_reads) SEMEL_CHECK(log->take_directory());
  SEMEL_CHECK(log->recover());
  return log;
}

Status EntryLog::take_directory() {
  SEMEL_CHECK(storage::make_directory(options_.directory));
  SEMEL_TRY(lock, storage::DirectoryLock::acquire(options_.directory,
                                                  storage::DirectoryLock::Missing::create));
  lock_.emplace(std::move(lock));
  SEMEL_CHECK(storage::make_directory(segments_.directory()));
  return check_identity(*lock_, options_, segments_);
}

std::size_t EntryLog::data_bytes_max() const noexcept {
  // Beside a header and the statement that begins the segment.
  return options_.segment_bytes / 2 - storage::segment_header_bytes - entry_overhead;
}

std::uint64_t EntryLog::disk_bytes() const noexcept {
  return segments_.all().size() * options_.segment_bytes;
}

std::uint8_t EntryLog::type_of(LogIndex index) const noexcept {
  const EntryPlaces::Place* const place = places_.find(index);
  SEMEL_ASSERT(place != nullptr);
  return place->type;
}

Result<std::string> EntryLog::read(LogIndex index) const {
  const EntryPlaces::Place* const found = places_.find(index);
  if (found == nullptr) {
    return Error{ErrorCode::bad_option, "entry " + std::to_string(index) + " is not in the log"};
  }
  const EntryPlaces::Place& place = *found;
  const LogSegments::Segment* const segment = segments_.at(place.offset);
  SEMEL_ASSERT(segment != nullptr);
  const RecordShape shape = RecordShape::of(entry_overhead + place.bytes);
  const LogOffset within = place.offset % options_.segment_bytes;
  // Only as much of the segment as the record needs, at its place for the checksum.
  std::string bytes(shape.bytes(), '\0');
  const int descriptor = ::open(segment->path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return storage::system_error(segment->path);
  const ssize_t got = pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(within));
  const Error error = got < 0 ? storage::system_error("reading " + segment->path) : Error{};
  close(descriptor);
  if (got < 0) return error;
  const storage::FoundRecord record =
      storage::record_of(bytes, segment->header, static_cast<std::size_t>(within));
  const auto said =
      record.is == storage::FoundRecord::Is::whole ? read_statement(record.payload) : std::nullopt;
  if (!said || said->what != What::entry || said->entry.index != index ||
      said->entry.term != place.term) {
    return storage::damage_at(segment->path, within,
                              "entry " + std::to_string(index) + " cannot be read");
  }
  return std::string{said->entry.data};
}

// --- changes ---------------------------------------------------------------------------------

Status EntryLog::append(std::span<const LogEntry> entries) {
  for (const LogEntry& entry : entries) {
    if (!places_.continues(entry.index)) {
      return Error{ErrorCode::bad_option, "entry " + std::to_string(entry.index) +
                                              " does not follow " + std::to_string(last())};
    }
    if (entry.data.size() > data_bytes_max()) {
      return Error{ErrorCode::value_too_long, "an entry of " + std::to_string(entry.data.size()) +
                                                  " bytes, limit " +
                                                  std::to_string(data_bytes_max())};
    }
    SEMEL_CHECK(write({.what = What::entry, .entry = entry, .offset = synced_}));
  }
  return Done{};
}

Status EntryLog::truncate(LogIndex index) {
  if (index > last()) return Done{};
  if (index < first()) {
    return Error{ErrorCode::bad_option, "entry " + std::to_string(index) + " is forgotten"};
  }
  return write({.what = What::truncate, .entry = {.index = index, .data = {}}, .offset = synced_});
}

Status EntryLog::restart(LogIndex index, Term term) {
  return write({.what = What::restart,
                .entry = {.index = index, .term = term, .data = {}},
                .offset = synced_});
}

Status EntryLog::write(const LogStatement& statement) {
  SEMEL_ASSERT(!options_.only_reads);
  if (failed_) return failed_before();
  std::string payload;
  encode(statement, payload);
  const RecordShape shape = RecordShape::of(payload.size());
  if (writing_ == nullptr || end_ + shape.bytes() > writing_->end()) {
    SEMEL_CHECK(begin_segment());
  }
  const LogOffset offset = end_;
  payload.resize(shape.padded(), '\0');
  storage::RecordWriter record{*writing_, offset, RecordType::whole, shape};
  if (!record.copy_and_seal(payload.data())) {
    failed_ = true;  // the content of the file is unknown
    return storage::system_error("writing " + writing_->path());
  }
  end_ += shape.bytes();
  places_.take(statement, offset);
  return Done{};
}

/// Everything before is on the disk then. After an error nothing has changed.
Status EntryLog::begin_segment() {
  SEMEL_CHECK(sync());
  const std::uint64_t number = segments_.next_number(1);
  const std::string directory = segments_.directory();
  // Steps that may throw come before the file is made.
  segments_.reserve();
  storage::SegmentHeader wanted;
  wanted.number = wanted.first = number;
  wanted.bytes = options_.segment_bytes;
  wanted.salt = base::random_number();
  wanted.storage_id = options_.log_id;
  const Segment::Access access =
      options_.disk->maps_safely(directory) ? Segment::Access::mapped : Segment::Access::written;
  SEMEL_TRY(made, Segment::make(*options_.disk, directory, wanted, false, access));
  // Sync before the first record: a file without a header was half made, and is removed.
  if (Status synced =
          made->sync(*options_.disk, made->begin(), made->begin() + storage::segment_header_bytes);
      !synced) {
    failed_ = true;
    return synced;
  }
  std::string payload;
  encode({.what = What::begin, .offset = end_}, payload);
  const RecordShape shape = RecordShape::of(payload.size());
  payload.resize(shape.padded(), '\0');
  const LogOffset begin = made->begin() + storage::segment_header_bytes;
  storage::RecordWriter record{*made, begin, RecordType::whole, shape};
  if (!record.copy_and_seal(payload.data())) {
    failed_ = true;
    return storage::system_error("writing " + made->path());
  }
  segments_.add({number, made->path(), made->header()});
  writing_ = std::move(made);
  end_ = begin + shape.bytes();
  synced_ = begin;
  return Done{};
}

Status EntryLog::sync() {
  if (failed_) return failed_before();
  if (writing_ == nullptr || synced_ == end_) return Done{};
  if (Status synced = writing_->sync(*options_.disk, synced_, end_); !synced) {
    failed_ = true;
    return synced;
  }
  synced_ = end_;
  // Before anything in this segment is acknowledged its absence is known to be damage.
  const bool is_named = segments_.number_before(named_) == segments_.number_before(synced_);
  if (Status noted = tail_->synced(synced_, !is_named); !noted) {
    failed_ = true;
    return noted;
  }
  if (!is_named) named_ = synced_;
  check_invariants();
  return Done{};
}

void EntryLog::check_invariants() const noexcept {
  SEMEL_ASSERT(named_ <= synced_);
  SEMEL_ASSERT(synced_ <= end_);
}

Status EntryLog::forget(LogIndex index) {
  if (failed_) return failed_before();
  if (index < first()) return Done{};
  if (index > last()) {
    return Error{ErrorCode::bad_option, "entry " + std::to_string(index) + " is not in the log"};
  }
  const LogOffset needed = std::min(synced_, places_.forget(index).value_or(synced_));
  return segments_.remove_before(needed, *options_.disk);
}

// --- opened again --------------------------------------------------------------------------------

/// The segments' files, without one that the power has left half made.
Result<std::vector<std::string>> EntryLog::find_segments() const {
  SEMEL_TRY(names, segments_.list());
  if (!names.empty()) {
    const std::string path = segments_.directory() + "/" + names.back();
    if (is_half_made(path)) {
      // Of one that was begun and synced the header was on the disk.
      const std::uint64_t newest = segments_.number_before(named_);
      if (names.back() == segments_.name_of(newest)) return lost_end(newest, 0);
      if (!options_.only_reads) SEMEL_CHECK(options_.disk->remove(path));
      names.pop_back();
    }
  }
  return names;
}

/// What the tail names is gone, from this place in this segment on.
Error EntryLog::lost_end(std::uint64_t number, LogOffset within) const {
  const std::uint64_t newest = segments_.number_before(named_);
  return storage::damage_at(
      segments_.directory() + "/" + segments_.name_of(number), within,
      "the end of the log is gone, up to offset " +
          std::to_string(named_ - segments_.begin_of(newest)) + " of " + segments_.name_of(newest) +
          ": this node has forgotten what it has acknowledged, and must join anew with an empty "
          "directory (docs/replication.md, A node is replaced)");
}

Status EntryLog::recover() {
  SEMEL_TRY(named, TailFile::read(options_.directory, options_.log_id));
  named_ = named;
  SEMEL_TRY(names, find_segments());
  if (!options_.only_reads) SEMEL_CHECK(rewrite_unsynced(*options_.disk, segments_, names, named_));
  std::optional<storage::SegmentFile> file;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == 0) {
      SEMEL_TRY(first, segments_.open_next(names[0]));
      file.emplace(std::move(first));
    }
    segments_.add({file->header().number, file->path(), file->header()});
    std::optional<storage::SegmentFile> next;
    LogOffset end = 0;
    if (i + 1 < names.size()) {
      SEMEL_TRY(opened, segments_.open_next(names[i + 1]));
      end = end_before(opened);
      next.emplace(std::move(opened));
    }
    starts_known_ = starts_known_ || segments_.all().front().number == 1;
    SEMEL_CHECK(read_segment(*file, end));
    file.reset();
    if (next) file.emplace(std::move(*next));
  }
  SEMEL_CHECK(drop_empty_segment());
  if (end_ < named_) {
    const std::uint64_t number = std::max(segments_.number_before(end_), std::uint64_t{1});
    const std::uint64_t newest = segments_.number_before(named_);
    return number == newest ? lost_end(number, end_ - segments_.begin_of(number))
                            : lost_end(newest, 0);
  }
  if (options_.only_reads) return Done{};
  synced_ = end_;
  SEMEL_TRY(tail, TailFile::open(*options_.disk, options_.directory, options_.log_id));
  tail_ = std::move(tail);
  if (end_ != 0) SEMEL_CHECK(tail_->synced(end_, true));
  named_ = end_;
  check_invariants();
  return Done{};
}

/// The last one may have been made and not begun. Without it the one before ends as it was found.
Status EntryLog::drop_empty_segment() {
  if (segments_.all().empty()) return Done{};
  const LogSegments::Segment& last = segments_.all().back();
  const LogOffset begin = segments_.begin_of(last.number);
  if (end_ != begin + storage::segment_header_bytes) return Done{};
  if (!options_.only_reads) SEMEL_CHECK(options_.disk->remove(last.path));
  segments_.drop_last();
  end_ = end_before_last_;
  return Done{};
}

/// Applies the statement of a record, if it is valid.
Status EntryLog::take_again(const LogStatement& statement, LogOffset offset,
                            const std::string& path) {
  const LogIndex index = statement.entry.index;
  const LogOffset within = offset % options_.segment_bytes;
  if (statement.what == What::restart) starts_known_ = true;
  if (statement.what == What::entry || statement.what == What::truncate) {
    // Earlier entries were forgotten with their segments, or a later record replaces them.
    const bool has_entries = first() <= last();
    if (!starts_known_ && (!has_entries || index < first())) places_.begin(index);
    if (!places_.continues(index)) {
      return storage::damage_at(
          path, within,
          "entry " + std::to_string(index) + " does not follow " + std::to_string(last()));
    }
  }
  places_.take(statement, offset);
  return Done{};
}

/// `end`: where it ends, and all before is on the disk; 0: not known.
Status EntryLog::read_segment(const storage::SegmentFile& file, LogOffset end) {
  using Is = storage::FoundRecord::Is;
  const std::string_view bytes = file.bytes();
  const LogOffset begin = segments_.begin_of(file.header().number);
  std::size_t at = storage::segment_header_bytes;
  if (end != 0 && (end < begin + at || end > begin + bytes.size())) {
    return storage::damage_at(file.path(), 0, "the next segment says that it ends elsewhere");
  }
  const std::size_t limit = end != 0 ? end - begin : bytes.size();
  while (at < limit) {
    const storage::FoundRecord record = storage::record_at(bytes, file.header(), at);
    if (record.is != Is::whole || at + record.bytes > limit) break;
    const auto said = read_statement(record.payload);
    const bool begins = said && said->what == What::begin;
    if (!said || begins != (at == storage::segment_header_bytes)) {
      return storage::damage_at(file.path(), at, "a record of another kind");
    }
    SEMEL_CHECK(take_again(*said, begin + at, file.path()));
    at += record.bytes;
  }
  end_before_last_ = std::exchange(end_, begin + at);
  if (end != 0) {
    return at == limit ? Status{Done{}}
                       : storage::damage_at(file.path(), at, "an entry cannot be read");
  }
  // Behind the gap there may be what a power cut has left of the last writes. None of it may say
  // that the gap was on the disk before.
  for (std::size_t from = at + storage::record_unit; from < bytes.size();
       from += storage::record_unit) {
    const storage::FoundRecord record = storage::record_at(bytes, file.header(), from);
    if (record.is != Is::whole) continue;
    const auto said = read_statement(record.payload);
    if (said && said->what != What::begin && said->offset > begin + at) {
      return storage::damage_at(file.path(), at, "what was synced cannot be read");
    }
  }
  return Done{};
}

}  // namespace semel::replication
