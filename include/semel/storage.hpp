// Durability: a Journal on disk, and the way back into an engine.
//
//   auto storage = Storage::open({.directory = dir}, clock);
//   auto engine = Engine::open({.clock = &clock, .journal = storage.get(),
//                               .durability = Durability::logged,
//                               .first_version = storage->first_version()});
//   storage->recover(*engine);
//
// Source: docs/disk-format.md, docs/guarantees.md
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"

namespace semel {

namespace storage {
class Disk;
}  // namespace storage

struct StorageOptions {
  std::string directory{};  ///< made if it is not there; one process at a time
  /// Interval between syncs of the journal; a power cut takes at most the changes of one. 1..60,000
  /// ms.
  Millis sync_every{1'000};
  /// Bound of the journal in front of the files. An eighth of it is taken at once, three eighths
  /// stay taken when much was written. When it is almost full, callers wait, and at the end new
  /// work is refused. One group of mutations, so also one value, takes at most a quarter. A
  /// sixteenth of it and 4 MiB are kept free for opening the storage on a full disk. 1 MiB..16 GiB.
  std::size_t log_bytes = std::size_t{256} << 20;
  /// A wait for the disk that lasts longer ends with outcome_unknown. 1 ms..10 min.
  Millis confirm_within{30'000};
  /// What ends within one such span leaves the disk together; spans of what ends later are longer,
  /// by up to an eighth of the time that is left. 1 s..1 day.
  Millis span{60'000};
  /// The files are written anew when they hold twice the live records and this much more; while
  /// little is written, one and a half times and an eighth of this. 1 MiB and up.
  std::size_t garbage_bytes = std::size_t{16} << 20;
  /// Each reads a thirty-second of log_bytes into memory at a time. 1..64
  unsigned recovery_threads = 2;
  /// Names of the caller's own files in the directory, which may be there before the storage is. A
  /// directory with any other file and no storage is refused.
  std::vector<std::string> own_files{};
  /// After a boot, opening is refused if the wall clock is ahead of the last time that is known by
  /// more than this: with a wrong clock all records would end. 1 s..100 years.
  Millis clock_ahead_max{std::int64_t{366} * 24 * 3600 * 1000};
  /// Claims whose namespace the storage does not know are accepted: without the terms of a
  /// namespace, which only damage takes away, finished work could be granted again. See recover().
  bool accept_unknown_namespaces = false;
  storage::Disk* disk = nullptr;  ///< tests only; none: the machine's
};

struct RecoveryProgress {
  std::uint64_t bytes = 0;        ///< read so far
  std::uint64_t bytes_total = 0;  ///< about
  std::uint64_t mutations = 0;
  double seconds = 0;  ///< since the start
  double rate = 0;     ///< mutations a second
  double eta = 0;      ///< seconds to go, about
};

struct RecoveryReport {
  std::uint64_t mutations = 0;  ///< read and put back, or found to be older than another
  std::uint64_t ended = 0;      ///< of them, records whose time has ended
  std::uint64_t bytes = 0;
  std::uint64_t unfinished = 0;     ///< records that the last process had begun when it ended
  std::uint64_t bytes_skipped = 0;  ///< behind the synced part, lost in a power cut
  /// Namespaces that have claims and no terms, and how many claims. Declare them as they were
  /// before anything is claimed.
  std::map<std::string, std::uint64_t> unknown_namespaces{};
};

/// What RocksDB has done for this storage since it was opened.
struct DatabaseStats {
  std::uint64_t files = 0;            ///< of all families, now
  std::uint64_t bytes_flushed = 0;    ///< written to files from its memory
  std::uint64_t bytes_compacted = 0;  ///< written to files from other files
  std::uint64_t bytes_read = 0;       ///< from files, to compact them
  std::uint64_t bytes_logged = 0;     ///< to its own log: the description, joined commits
  std::uint64_t log_syncs = 0;
  std::uint64_t stalled_us = 0;  ///< for which it held up writers
};

struct StorageStats {
  bool accepting = true;             ///< false: new work is refused
  bool failed = false;               ///< permanently: open it again, even if it still accepts
  std::string trouble;               ///< why not, as a sentence; empty: none
  std::uint64_t syncs = 0;           ///< rounds, each for all waiting callers
  std::uint64_t bytes = 0;           ///< appended to the journal since it was opened
  std::uint64_t bytes_unsynced = 0;  ///< bytes that a power cut now would take
  std::uint64_t bytes_log = 0;       ///< of the journal's files
  std::uint64_t bytes_files = 0;     ///< of the files behind the journal
  std::uint64_t mutations_drained = 0;
  std::uint64_t mutations_ended = 0;  ///< whose time was over before they had to be drained
  /// Replaced by a later one before they had to be drained.
  std::uint64_t mutations_superseded = 0;
  std::uint64_t rewrites = 0;  ///< of all files, to drop replaced records
  /// Rounds of the storage's threads that ended early for want of memory; the next does it again.
  std::uint64_t starved = 0;
  std::uint64_t callbacks_threw = 0;  ///< exceptions that left a callback of Journal::when()
  DatabaseStats database{};
};

/// How far a backup is. Links count at once.
struct BackupProgress {
  std::uint64_t bytes = 0;        ///< of the files that are in it
  std::uint64_t bytes_total = 0;  ///< of all files
};

struct BackupOptions {
  /// So many bytes are read and written a second, at most; 0: no limit. Links take none. 64 KiB and
  /// up, or 0.
  std::uint64_t bytes_per_second = 0;
  /// Copies files also where links are possible: a link shares the disk's blocks with the storage,
  /// and what damages one damages both.
  bool copies = false;
  /// Directory of an older backup of this storage, or of several: the newest counts. It is on the
  /// same disk as the new one. Files copied to it and unchanged since are linked from it, after
  /// they were read and compared with its list. Empty: none.
  std::string base{};
  /// Called on the thread of the call, 20 times a second and more while files are copied; false
  /// ends the backup with an error.
  std::function<bool(const BackupProgress&)> progress{};
};

struct BackupReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;         ///< of all files
  std::uint64_t bytes_copied = 0;  ///< of them
  std::uint64_t bytes_linked = 0;  ///< the same files as the storage's
  std::uint64_t bytes_shared = 0;  ///< the same files as those of the older backup
  /// Files of the older backup that are not what its list says; they were copied anew.
  std::vector<std::string> damaged_in_base{};
};

class Storage final : public Journal {
 public:
  /// Errors: bad_option, storage_in_use (by this process or another, by whatever path),
  /// storage_damaged (names file and offset), storage_newer (written by a later release),
  /// storage_failed (also: the directory is a backup, or belongs to something else, or the wall
  /// clock is more than clock_ahead_max ahead).
  [[nodiscard]] static Result<std::unique_ptr<Storage>> open(const StorageOptions& options,
                                                             const Clock& clock);
  /// Syncs the journal. The engine must have ended before.
  ~Storage() override;

  /// Larger than any version ever handed out by an engine on this storage.
  [[nodiscard]] Version first_version() const noexcept;

  /// Puts everything back into `engine`, which is new and not in use yet. `progress` is called now
  /// and then, by one thread at a time. From then on the storage and the engine's cold store belong
  /// to each other. Errors: storage_damaged (also: records were spilled, and the engine's cold
  /// store is another one, or has lost them, or was used with another storage or a copy of this one
  /// since; there are claims of a namespace that is not known, see accept_unknown_namespaces),
  /// memory_full, storage_failed.
  [[nodiscard]] Result<RecoveryReport> recover(
      Engine& engine, const std::function<void(const RecoveryProgress&)>& progress = {});

  // Journal
  [[nodiscard]] Ticket append(std::span<const Mutation> group) override;
  [[nodiscard]] bool keeps_trail(const Mutation& delta) const noexcept override;
  void pace() override;
  [[nodiscard]] Status wait(Ticket ticket, Durability level) override;
  void when(Ticket ticket, Durability level, Function<void(Status)> then) override;
  [[nodiscard]] Ticket newest() const override;
  [[nodiscard]] bool defer(Function<void()>& then) override;
  [[nodiscard]] bool accepts_writes() const noexcept override;
  [[nodiscard]] bool accepts_frees() const noexcept override;
  [[nodiscard]] std::size_t group_bytes_max() const noexcept override;
  void engine_ends() noexcept override;
  [[nodiscard]] bool may_spill() const noexcept override;
  [[nodiscard]] bool wants_spills() const noexcept override { return true; }
  void spilled(Ticket cut, Ticket kept, const ColdMark& cold) override;

  /// Returns when everything appended so far is in files behind the journal. Progress: blocks for
  /// the disk. Errors: storage_failed.
  [[nodiscard]] Status drain();
  /// Frees the disk space of ended records. The storage itself forgets ended spans as they end,
  /// which frees whole files; this also rewrites the files they share. Progress: blocks for that.
  [[nodiscard]] Status drop_ended();
  /// Writes every live record of `engine` anew and drops everything older. Done by itself when it
  /// is worth it (StorageOptions::garbage_bytes). Progress: blocks; the engine goes on.
  /// Errors: storage_failed, snapshot_running.
  [[nodiscard]] Status rewrite(Engine& engine);
  /// A copy for restore_backup(), made beside a running engine: everything appended before the
  /// call. It cannot be opened itself: storage and copy would hand out the same versions. On an
  /// error nothing is left of it. If the process is killed, restore_backup() refuses the incomplete
  /// copy. `directory` must not be there. Where it is on the same disk, files are shared by links.
  /// Until the call returns, files that the storage deletes keep their space.
  /// Errors: storage_failed, storage_damaged, bad_option (also: `directory` is the place of a part
  /// of the storage, or the base is no complete backup of this storage), refused (a backup is
  /// running, or progress() ended this one), callback_threw.
  /// Progress: blocks for the disk; callers go on, except joined commits for some milliseconds.
  /// The cold store of the engine that was recovered is in it, as of the same moment, in "cold":
  /// its files are linked, or copied at full speed, and spills wait until the call returns.
  [[nodiscard]] Result<BackupReport> backup(const std::string& directory,
                                            const BackupOptions& options = {});
  /// The same without an engine. Errors: also storage_damaged: it is not the storage's cold store.
  [[nodiscard]] Result<BackupReport> backup(const std::string& directory, ColdStore& cold,
                                            const BackupOptions& options = {});

  [[nodiscard]] StorageStats stats() const;
  /// How long the thread that syncs or the one that drains has been at what it does now, whichever
  /// is longer; 0: both wait for work. Progress: wait-free.
  [[nodiscard]] Millis busy_for() const noexcept;

  class Impl;

 private:
  friend struct StorageAccess;  // in the storage
  explicit Storage(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel
