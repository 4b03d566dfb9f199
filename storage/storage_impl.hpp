// What a Storage is made of: a log that callers write, a thread that syncs it, a thread that drains
// it into the archive, and a checkpoint that records the progress of all of them.
//
// Concurrency
//   [storage.synced]    release store of the syncing thread, acquire loads of waiters.
//   [storage.wanted]    the log offset that a waiter wants synced. A waiter stores it, then reads
//                       synced_; the syncing thread stores synced_ and then reads it. All four are
//                       seq_cst, so the syncing thread does not sleep while a request is open.
//   [storage.round]     the target of the newest round, then its number: release stores of the
//                       syncing thread, acquire loads of waiters, which choose the rounds that wake
//                       them.
//   [storage.failed]    release store after a failure, acquire load before each change and wait.
//   [storage.drained]   release store of the draining thread when everything before is in files,
//                       acquire loads of drain(), and of the syncing thread for the checkpoint.
//   [storage.drain_to]  the furthest offset that drain() was called for, and the request itself:
//                       release by callers, acquire by the draining thread.
//   [storage.old_left]  whether segments of an earlier process are left: release store when the
//                       last one was drained, acquire loads before draining and before the
//                       checkpoint is written.
//   [storage.rocks_sequence]  RocksDB's newest synced number: release by the threads that wrote,
//                       acquire load for the checkpoint.
//   [storage.recovered] release store at the end of recover(), acquire loads of the draining thread
//                       and of spills.
//   [storage.rewriting] release store at the end of a rewrite, acquire load before the next.
//   [storage.lost]      an append threw: its change is visible and not in the log. Release by that
//                       thread before the engine takes it for appended, acquire loads of the
//                       draining thread after it has asked the engine.
//   [storage.terms]     the end of the newest terms of a namespace in the log: release by the
//   thread
//                       that appended them, acquire load before a joined commit is written.
//   [storage.backup]    release store at the end of a backup, acquire exchange before the next.
//   [storage.stop]      release store of the destructor, acquire loads of both threads.
//   archive_mutex_      serialises changes of the files: draining, rewriting, a backup's begin.
//   engine_mutex_       keeps the engine alive: shared while its records are rewritten, and while
//                       it is asked what has been superseded.
//
// Where memory ends
//   No background thread ends the process for it. What a round has not finished is repeated; until
//   then nothing is released and nothing acknowledged. The error of a sync counts also where its
//   text finds no memory. RocksDB: see storage/archive/rocks_guard.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "semel/process.hpp"
#include "semel/rocksdb.hpp"
#include "semel/storage.hpp"
#include "storage/archive/archive.hpp"
#include "storage/joint/effect_families.hpp"
#include "storage/joint/joined_commits.hpp"
#include "storage/joint/joined_files.hpp"
#include "storage/joint/joined_gate.hpp"
#include "storage/joint/user_database.hpp"
#include "storage/log/checkpoint.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mutation_codec.hpp"
#include "storage/log/signal.hpp"
#include "storage/log/stopwatch.hpp"

namespace semel {

class Storage::Impl {
  const ProcessMark process_;

 public:
  /// `journal`: what the engine calls, see recover().
  void set_journal(const Journal& journal) noexcept { journal_ = &journal; }

  Impl(const StorageOptions& options, const Clock& clock)
      : options_(options),
        clock_(clock),
        disk_(options.disk != nullptr ? *options.disk : own_disk_) {}
  ~Impl();

  /// `families`: of the user.
  [[nodiscard]] static Result<std::unique_ptr<Storage>> open(
      const StorageOptions& options, const Clock& clock,
      std::vector<rocksdb::ColumnFamilyDescriptor> families);
  /// True in a forked child. Parent and child share the mapping of the log; all else belongs to the
  /// parent.
  [[nodiscard]] bool is_forked() const noexcept { return !process_.is_here(); }
  [[nodiscard]] Result<RecoveryReport> recover(
      Engine& engine, const std::function<void(const RecoveryProgress&)>& progress);

  [[nodiscard]] Ticket append(std::span<const Mutation> group);
  void pace();
  [[nodiscard]] Status wait(Ticket ticket, Durability level);
  void when(Ticket ticket, Durability level, std::function<void(Status)> then);
  [[nodiscard]] Ticket newest() const noexcept { return log_->tail(); }
  [[nodiscard]] bool accepts_writes() const noexcept {
    // mo: acquire [storage.failed]
    return !failed_.load(std::memory_order_acquire) && log_->accepts();
  }
  [[nodiscard]] bool accepts_frees() const noexcept {
    // mo: acquire [storage.failed]
    return !failed_.load(std::memory_order_acquire) && log_->accepts_frees();
  }
  void engine_ends() noexcept;
  void spilled(Ticket cut, Ticket kept, const ColdMark& cold);
  [[nodiscard]] Status drain();
  [[nodiscard]] Status drop_ended();
  [[nodiscard]] Status rewrite(Engine& engine);
  [[nodiscard]] Result<BackupReport> backup(const std::string& directory,
                                            const BackupOptions& options);
  [[nodiscard]] Result<BackupReport> backup(const std::string& directory, ColdStore& cold,
                                            const BackupOptions& options);
  [[nodiscard]] bool is_recovered() const noexcept {
    return recovered_.load(std::memory_order_acquire);  // mo: acquire [storage.recovered]
  }
  [[nodiscard]] StorageStats stats() const;

  // Joined commits (storage_join.cpp)
  [[nodiscard]] Result<JoinedOutcome> complete_joined(Claims& claims, const OwnerCall& call,
                                                      const rocksdb::WriteBatch& effects,
                                                      Durability level);
  [[nodiscard]] bool defer(std::function<void()>& then);

  [[nodiscard]] storage::Archive& archive() noexcept { return *archive_; }
  /// For open_storage(), before anything is written.
  void serve_user();
  [[nodiscard]] rocksdb::DB& user_database() noexcept {
    return user_database_ != nullptr ? *user_database_ : archive_->database();
  }

 private:
  /// A segment that an earlier process wrote.
  struct OldSegment {
    std::string path;
    storage::LogOffset begin = 0;
    storage::LogOffset end = 0;
    storage::LogOffset stop = end;  // data from here on is ignored
  };

  /// A mutation from the log, before it is known whether it must be kept.
  struct Candidate {
    storage::LogOffset offset = 0;
    Bytes bytes;  // in the segment, or in a group put together from parts
    const storage::MutationBase* base = nullptr;  // of the near form, in the segment's header
    storage::MutationExtent extent;
  };
  /// Mutations from the log, by span, on their way into the archive.
  struct DrainBatch {
    storage::LogOffset from = 0;   // earlier mutations are in the archive already
    storage::PartCollector parts;  // of groups that begin in a segment that is kept
    storage::BlobSet blobs;
    std::vector<Candidate> candidates;  // at most Engine::superseded_max
    Version largest = 0;
    std::uint64_t mutations = 0;
    std::uint64_t ended = 0;
    std::uint64_t ended_ms = 0;  // mutations to be kept until then have ended
    std::uint64_t superseded = 0;
    bool drops = false;  // mutations that were superseded
    bool damaged = false;
  };
  /// While this exists the files get everything that is drained: they are copied without the log,
  /// in which the successors of dropped mutations are. Progress: waits for a batch under way.
  class KeepsAll {
   public:
    explicit KeepsAll(Impl& storage) : storage_(storage) { add(1); }
    ~KeepsAll() { add(-1); }
    KeepsAll(const KeepsAll&) = delete;
    KeepsAll& operator=(const KeepsAll&) = delete;

   private:
    void add(int count) {
      const base::MutexLock lock{storage_.dropping_mutex_};
      storage_.keeps_all_ += count;
    }
    Impl& storage_;
  };

  friend class Storage;  // reads members where nothing else is to do

  void save_clock() noexcept;

  // Opening (storage_open.cpp)
  [[nodiscard]] Status open_directory(std::vector<rocksdb::ColumnFamilyDescriptor> families);
  [[nodiscard]] Status check_options() const;
  [[nodiscard]] Status claim_directory();
  [[nodiscard]] Status check_open_files() const;
  [[nodiscard]] Status use_reserve();
  [[nodiscard]] Status check_offsets(storage::LogOffset drained) const;
  [[nodiscard]] Status sync_found() SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] Status take_identity(storage::Description& is) const;
  [[nodiscard]] Result<storage::Checkpoint::Found> open_checkpoint();
  [[nodiscard]] Status check_against_checkpoint(storage::Checkpoint::Found found,
                                                storage::LogOffset drained) const;
  [[nodiscard]] Status find_segments(storage::LogOffset drained) SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] Status stop_at_gaps(storage::LogOffset drained) SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] Status start(storage::LogOffset drained) SEMEL_REQUIRES(archive_mutex_);
  void record_life(storage::Description& is, storage::LogOffset log_begin) const;
  [[nodiscard]] Status start_threads(bool is_new);

  // Callers (storage_wait.cpp)
  [[nodiscard]] Ticket append_group(std::span<const Mutation> group);
  void request_sync(Ticket ticket);
  void wait_for_room();
  [[nodiscard]] std::uint32_t rounds_for(Ticket ticket) const noexcept;
  [[nodiscard]] static std::uint32_t bit_of_round(std::uint32_t round) noexcept {
    return std::uint32_t{1} << (round % 32);
  }
  /// No reason to wait: `ticket` has reached `level`, or the storage has failed.
  [[nodiscard]] bool is_resolved(Ticket ticket, Durability level) const noexcept;
  [[nodiscard]] Status await_resolved(Ticket ticket, Durability level);
  void yield_for_rounds(Ticket ticket) const noexcept;
  /// A slower disk is worth a sleep.
  static constexpr double yield_seconds_max = 1e-3;
  [[nodiscard]] Error unknown() const noexcept;
  [[nodiscard]] Ticket fail_if_refused(Ticket ticket);

  // The syncing thread (storage_sync.cpp)
  void run_syncer() noexcept;
  enum class Synced : std::uint8_t { yes, later, never };
  [[nodiscard]] Synced sync_round(bool of_interval) noexcept;
  [[nodiscard]] Synced sync_joined() noexcept;
  void smooth_round(double seconds) noexcept;
  void publish_synced(storage::LogOffset synced) noexcept;
  void complete_waiters(std::uint32_t rounds = storage::Signal::everybody) noexcept;
  /// False: it cannot be written, and the one before counts, which is true as well.
  [[nodiscard]] bool write_checkpoint() noexcept;
  void fail(const Error& error) noexcept;
  void set_failed(const Error& error) noexcept;

  // Joined commits (storage_join.cpp)
  [[nodiscard]] Ticket append_beside_joined(std::span<const Mutation> group);
  [[nodiscard]] Ticket collect(storage::JoinedCommit& join, std::span<const Mutation> group);
  /// `effects` null: without any.
  [[nodiscard]] Status end_joined(storage::JoinedCommit& join, const rocksdb::WriteBatch* effects,
                                  Durability level, storage::JoinedGate::Pass& pass);
  [[nodiscard]] Status write_joined(const storage::JoinedCommit& join,
                                    const rocksdb::WriteBatch* effects, Durability level);
  [[nodiscard]] Status check_caller(const Claims& claims) SEMEL_EXCLUDES(engine_mutex_);
  [[nodiscard]] Status check_space(std::size_t bytes) const;
  [[nodiscard]] Status sync_terms();
  void request_joined_sync(Ticket ticket);
  [[nodiscard]] storage::JoinedFiles joined_files() const noexcept {
    return {archive_->database(), archive_->family(storage::joined_family)};
  }
  void reached_sequence(std::uint64_t sequence) noexcept;

  // The draining thread (storage_drain.cpp)
  [[nodiscard]] Status drain_round();
  [[nodiscard]] Status try_drain_round() noexcept;
  void run_drainer() noexcept;
  void count_starved() noexcept;
  void keep_reserve();
  [[nodiscard]] std::size_t segment_bytes() const noexcept {
    return std::bit_floor(options_.log_bytes / storage::Log::segment_count);
  }
  /// What opening needs: a segment that is written, one that is ready, RocksDB's small files.
  [[nodiscard]] std::size_t reserve_bytes() const noexcept {
    return 2 * segment_bytes() + (std::size_t{4} << 20);
  }
  [[nodiscard]] bool take_drain_request();
  void look_for_calm();
  [[nodiscard]] Status prepare_segments();
  [[nodiscard]] Status drain_some(bool all);
  void make_ready(bool full_batch);
  void pass_processor() const noexcept;
  [[nodiscard]] Status drain_old();
  [[nodiscard]] Status drain_old_again();
  [[nodiscard]] Status drain_complete(std::uint64_t end) SEMEL_EXCLUDES(dropping_mutex_);
  void drain_record(DrainBatch& batch, const storage::LogRecord& record);
  // What need not be drained (storage_sift.cpp)
  void sift(DrainBatch& batch);
  [[nodiscard]] std::uint32_t superseded(std::span<const Candidate> candidates);
  [[nodiscard]] bool may_drop() const noexcept;
  [[nodiscard]] Status sync_successors();
  [[nodiscard]] Status archive_batch(const DrainBatch& batch, storage::LogOffset drained)
      SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] std::uint64_t ended_now() const noexcept;
  [[nodiscard]] Status record_time() SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] Status forget_ended();
  void record_drain_status(const Status& status) noexcept;
  static constexpr std::size_t batch_ends_max = 1024;
  void end_batch(storage::LogOffset end) SEMEL_REQUIRES(archive_mutex_);
  /// Versions that an opened storage may hand out before it must raise the limit on disk. A crash
  /// wastes the rest: 2^36 of 2^59.
  static constexpr Version version_reserve = Version{1} << 36;

  // The files as a whole (storage_files.cpp)
  [[nodiscard]] std::uint64_t file_bytes() const;
  void rewrite_if_due();
  void run_rewriter() noexcept;
  [[nodiscard]] bool is_rewrite_due() const SEMEL_REQUIRES_SHARED(engine_mutex_);
  [[nodiscard]] Status make_void(storage::LogOffset floor, const ColdMark& cold)
      SEMEL_REQUIRES(archive_mutex_);
  void remember_map(const Mutation& mutation);

  // The cold store (storage_cold.cpp)
  [[nodiscard]] Status check_cold(const ColdStore* cold) const SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] Status bind_cold(ColdStore* cold);
  [[nodiscard]] Result<BackupReport> backup_with(const std::string& directory, ColdStore& cold,
                                                 const BackupOptions& options);

  // Backups (storage_backup.cpp)
  class BackupMaking;
  [[nodiscard]] Status check_backup_target(const std::string& directory) const;
  [[nodiscard]] Status remove_backup_links();

  // Recovery (recovery.cpp)
  class Recovery;
  [[nodiscard]] Status read_all(Recovery& recovery) SEMEL_REQUIRES(archive_mutex_);
  [[nodiscard]] Status fold_memos(Engine& engine) SEMEL_EXCLUDES(archive_mutex_);
  [[nodiscard]] Status check_namespaces(const std::map<std::string, std::uint64_t>& unknown,
                                        storage::Description& is) const;
  [[nodiscard]] Status keep_remote_leases(Engine& engine);
  [[nodiscard]] Status await_log();
  /// `at_end` is called while the bytes of all records are still there.
  [[nodiscard]] Result<storage::ScanReport> scan_old(
      const OldSegment& segment, const storage::VisitRecord& visit,
      const std::function<void()>& at_end = [] {}) const;

  [[nodiscard]] storage::ScanRules rules() const noexcept;
  [[nodiscard]] storage::Anchor anchor_now() const {
    const storage::ClockReading at = storage::read_clocks(clock_);
    return {line_ms(at), at.now.time_since_epoch().count(), at.unix_ms, boot_id_};
  }
  [[nodiscard]] std::int64_t line_ms(const storage::ClockReading& at) const noexcept {
    return static_cast<std::int64_t>(durable_clock_.to_durable_ms(at.now));
  }
  [[nodiscard]] std::uint64_t durable_now() const noexcept {
    return durable_clock_.to_durable_ms(clock_.now());
  }

  const StorageOptions options_;
  const Journal* journal_ = nullptr;
  const Clock& clock_;
  storage::Disk own_disk_;
  storage::Disk& disk_;
  std::optional<storage::DirectoryLock> directory_lock_;  // outlives all that uses the files
  std::unique_ptr<storage::Checkpoint> checkpoint_;
  std::unique_ptr<storage::Archive> archive_;
  storage::DurableClock durable_clock_{0};
  storage::Anchor last_anchor_;  // of the last process that had recovered everything
  /// On the durable clock: what had ended by then is gone. What ended later did so while no process
  /// ran, and matters until everything is recovered.
  std::uint64_t ended_before_ms_ = 0;
  std::string boot_id_;
  std::uint64_t storage_id_ = 0;
  storage::CheckpointContent last_checkpoint_;  // of the earlier process
  bool same_boot_ = false;
  mutable base::Mutex archive_mutex_;
  std::vector<OldSegment> old_segments_ SEMEL_GUARDED_BY(archive_mutex_);  // not drained yet
  /// Log offsets that no blob crosses, in ascending order: everything before one of them can be
  /// made void. Only the newest are kept.
  std::vector<storage::LogOffset> batch_ends_ SEMEL_GUARDED_BY(archive_mutex_);  // batch_ends_max
  std::atomic<bool> old_left_{false};         // [storage.old_left]
  std::atomic<storage::LogOffset> floor_{0};  // data before it is void; grows in make_void()
  Version first_version_ = 1;

  storage::Signal drain_signal_;  // for the draining thread
  std::unique_ptr<storage::Log> log_;
  storage::LogOffset log_begin_ = 0;

  storage::Signal sync_signal_;                     // for the syncing thread
  storage::Signal waiters_signal_;                  // for waiters
  std::atomic<storage::LogOffset> requested_{0};    // [storage.wanted]
  std::atomic<storage::LogOffset> synced_{0};       // [storage.synced] [storage.wanted]
  std::atomic<storage::LogOffset> target_{0};       // [storage.round] of the newest round
  std::atomic<std::uint32_t> round_{0};             // [storage.round] its number
  std::atomic<std::uint64_t> requested_rounds_{0};  // that were requested
  std::atomic<double> round_seconds_{0};            // how long they take, smoothed
  std::atomic<unsigned> waiting_{0};                // callers in wait()
  std::atomic<storage::LogOffset> terms_end_{0};    // [storage.terms]
  std::atomic<storage::LogOffset> drained_{0};      // [storage.drained]
  std::atomic<std::uint64_t> rocks_sequence_{0};    // [storage.rocks_sequence]
  std::atomic<bool> failed_{false};                 // [storage.failed]
  std::atomic<bool> stop_{false};                   // [storage.stop]
  std::atomic<bool> drain_requested_{false};        // [storage.drain_to]
  std::atomic<storage::LogOffset> drain_to_{0};     // [storage.drain_to]
  std::atomic<bool> recovered_{false};              // [storage.recovered]
  std::atomic<bool> is_tiered_{false};              // set before it
  storage::WorkTimer sync_round_;                   // of the syncing thread
  storage::WorkTimer drain_round_;                  // of the draining thread
  bool failure_reported_ = false;                   // of the syncing thread
  bool checkpoint_unsynced_ = false;                // of the syncing thread
  storage::CheckpointContent checkpoint_content_;   // of the syncing thread

  storage::JoinedCommits joined_commits_;
  storage::JoinedGate joined_gate_;
  storage::EffectFamilies effect_families_;
  std::unique_ptr<storage::UserDatabase> user_database_;  // null: not opened by open_storage

  struct Waiter {
    Ticket ticket;
    Durability level;
    std::function<void(Status)> then;
  };
  mutable base::Mutex mutex_;
  // For a sync or a joined commit. A list: the thread that answers them needs no memory for it.
  std::list<Waiter> waiters_ SEMEL_GUARDED_BY(mutex_);
  Status sync_status_ SEMEL_GUARDED_BY(mutex_){Done{}};   // an error: nothing is synced any more
  Status drain_status_ SEMEL_GUARDED_BY(mutex_){Done{}};  // of the newest round of draining
  std::uint64_t syncs_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t mutations_drained_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t mutations_ended_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t mutations_superseded_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t rewrites_ SEMEL_GUARDED_BY(mutex_) = 0;
  double bytes_ratio_ SEMEL_GUARDED_BY(mutex_) = 1;  // of files to records, after a rewrite

  base::Mutex map_mutex_;
  Version map_version_ SEMEL_GUARDED_BY(map_mutex_) = 0;  // of the newest map of databases
  std::string map_ SEMEL_GUARDED_BY(map_mutex_);
  // Of the draining thread. Calm: less than a segment was appended in calm_after_ms of the durable
  // clock. What was there when that was decided.
  static constexpr std::uint64_t calm_after_ms = 5'000;
  bool calm_ = false;
  std::uint64_t looked_ms_ = 0;
  storage::LogOffset looked_tail_ = 0;
  // Of the draining thread: whether new segments are written full of zeros, and the state when that
  // was decided.
  bool zeroes_ = true;
  bool has_reserve_ = false;
  std::uint64_t prepared_rounds_ = 0;     // value of requested_rounds_
  storage::LogOffset prepared_tail_ = 0;  // of the log
  std::uint64_t drain_next_ = 0;          // the first segment not drained; of the draining thread
  std::uint64_t filled_ = 0;              // segments, while the newest batch was drained
  Status old_status_{Done{}};             // of the newest drain_old(); likewise
  storage::Stopwatch old_failed_;         // when it failed; likewise
  std::size_t old_failed_at_ = 0;         // bytes that were free then; likewise
  storage::Stopwatch since_drain_;        // of the draining thread
  storage::SpanNumber running_span_ = 0;  // of the draining thread
  base::SharedMutex engine_mutex_;
  Engine* engine_ SEMEL_GUARDED_BY(engine_mutex_) = nullptr;
  std::uint64_t restores_ SEMEL_GUARDED_BY(engine_mutex_) = 0;  // by recover()
  std::atomic<bool> drops_{false};  // whether superseded mutations need not be drained
  base::Mutex dropping_mutex_;      // held for a batch
  int keeps_all_ SEMEL_GUARDED_BY(dropping_mutex_) = 0;
  std::atomic<bool> lost_one_{false};   // [storage.lost]
  std::thread rewriter_;                // of the draining thread
  std::atomic<bool> rewriting_{false};  // [storage.rewriting]
  std::atomic<bool> rewrite_ends_{false};
  std::atomic<std::uint64_t> starved_{0};  // rounds of background threads
  std::atomic<std::uint64_t> callbacks_threw_{0};
  std::atomic<bool> backing_up_{false};  // [storage.backup]

  std::thread syncer_;
  std::thread drainer_;
};

/// Gives other parts of the storage access to the implementation.
struct StorageAccess {
  [[nodiscard]] static Storage::Impl& impl(Storage& storage) noexcept { return *storage.impl_; }
};

}  // namespace semel
