// The replicated log on a replica's disk: entries by index, each with a term and a checksum, in
// segments that are allocated before they are written. storage/log has the segments and the
// records.
//
//   log/%016x.log    a segment: header | begin | entries, and what replaced or ended some of them
//
// A segment is synced before the next one is made, and a process never goes on with the segment of
// another: its first change begins a new one, which says where the one before ends. So what a power
// cut may have torn is behind the last sync of the last segment. It is cut off. Anything else that
// cannot be read is damage, and open() refuses it: a voter that has forgotten is not a voter. How
// far the log was synced is beside it (tail_file.hpp), so that the last segment cannot be lost
// unseen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replication/log/entry_places.hpp"
#include "replication/log/log_entry.hpp"
#include "replication/log/log_segments.hpp"
#include "replication/log/tail_file.hpp"
#include "semel/result.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/segment.hpp"

namespace semel::replication {

struct EntryLogOptions {
  std::string directory;          ///< is made if it is not there; one process at a time
  storage::Disk* disk = nullptr;  ///< must outlive the log
  std::size_t segment_bytes = std::size_t{16} << 20;  ///< power of two, 64 KiB at least
  std::uint64_t log_id = 0;  ///< of the cluster: segments of others are refused
  /// Opens a log that is in another directory than the one in which it was written. Two nodes with
  /// one log would be one voter with two votes.
  bool accepts_copy = false;
  /// Reads the entries and changes nothing, under the caller's lock on the directory, if any. The
  /// log has no changes then.
  bool only_reads = false;
};

/// Belongs to one thread.
class EntryLog {
 public:
  /// Locks the directory, reads the entries and syncs them, so that answers from them are durable.
  /// Errors: bad_option, storage_in_use, storage_failed (also: it is a copy, see accepts_copy),
  /// storage_damaged (names file and offset).
  [[nodiscard]] static Result<std::unique_ptr<EntryLog>> open(const EntryLogOptions& options);
  ~EntryLog();
  EntryLog(const EntryLog&) = delete;
  EntryLog& operator=(const EntryLog&) = delete;

  /// Entries first()..last() are there; none: last() is first() - 1.
  [[nodiscard]] LogIndex first() const noexcept { return places_.first(); }
  [[nodiscard]] LogIndex last() const noexcept { return places_.last(); }
  /// Of an entry that is there, or of the one before the first, if it is known; else 0.
  [[nodiscard]] Term term_of(LogIndex index) const noexcept { return places_.term_of(index); }
  /// Of an entry that is there.
  [[nodiscard]] std::uint8_t type_of(LogIndex index) const noexcept;
  [[nodiscard]] std::size_t data_bytes_max() const noexcept;
  /// Of all that it has on disk.
  [[nodiscard]] std::uint64_t disk_bytes() const noexcept;

  /// Its data, read from the disk and checked. Errors: bad_option (it is not there),
  /// storage_failed, storage_damaged.
  [[nodiscard]] Result<std::string> read(LogIndex index) const;

  /// Whether a write or a sync has failed and left the state of the disk unknown.
  [[nodiscard]] bool has_failed() const noexcept { return failed_; }

  // --- changes: on the disk after sync() ----------------------------------------------------
  /// Each follows the one before, or replaces one that is there with all behind it. Errors:
  /// bad_option (a gap), value_too_long, storage_failed (the disk is full: it is as it was before
  /// the entry that failed, and the call may be repeated with the rest).
  [[nodiscard]] Status append(std::span<const LogEntry> entries);
  /// Entries from `index` on are no more. Errors: bad_option (forgotten), storage_failed.
  [[nodiscard]] Status truncate(LogIndex index);
  /// A snapshot has taken the place of all entries: the next one is `index` + 1. Errors:
  /// storage_failed.
  [[nodiscard]] Status restart(LogIndex index, Term term);
  /// Returns when all earlier changes have reached the disk. Errors: storage_failed: the state of
  /// the disk is unknown, and every later call fails.
  [[nodiscard]] Status sync();

  /// Forgets entries up to `index`. Segments without later entries are removed; entries in the
  /// others are still read by open(). Errors: bad_option (no such entry), storage_failed.
  [[nodiscard]] Status forget(LogIndex index);

 private:
  explicit EntryLog(const EntryLogOptions& options)
      : options_(options),
        segments_(options.directory + "/log", options.segment_bytes, options.log_id) {}
  [[nodiscard]] Status take_directory();
  [[nodiscard]] Status recover();
  [[nodiscard]] Result<std::vector<std::string>> find_segments() const;
  [[nodiscard]] Error lost_end(std::uint64_t number, storage::LogOffset within) const;
  [[nodiscard]] Status drop_empty_segment();
  [[nodiscard]] Status read_segment(const storage::SegmentFile& file, storage::LogOffset end);
  [[nodiscard]] Status take_again(const LogStatement& statement, storage::LogOffset offset,
                                  const std::string& path);
  [[nodiscard]] Status write(const LogStatement& statement);
  [[nodiscard]] Status begin_segment();
  /// Invariant: named_ <= synced_ <= end_.
  void check_invariants() const noexcept;

  const EntryLogOptions options_;
  std::optional<storage::DirectoryLock> lock_;  // none: it only reads
  LogSegments segments_;
  EntryPlaces places_;
  std::unique_ptr<storage::Segment> writing_;  // null: this process has written nothing
  storage::LogOffset end_ = 0;                 // of all that is written
  storage::LogOffset end_before_last_ = 0;     // of the segment before, when it is read
  storage::LogOffset synced_ = 0;
  std::unique_ptr<TailFile> tail_;  // null: it only reads
  storage::LogOffset named_ = 0;    // by the tail: a power cut does not take that away
  bool starts_known_ = false;       // the first entry that is found is the first that there was
  bool failed_ = false;
};

}  // namespace semel::replication
