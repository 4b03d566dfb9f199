// What a Storage is made of: a log that callers write, a thread that syncs it, a thread that drains
// it into the archive, and a mark that says how far all of them are.
//
// Concurrency
//   [storage.synced]   release store of the syncing thread, acquire loads of those who wait.
//   [storage.wanted]   the place that somebody wants synced; with synced_ one of two words of which
//                      each side writes one and then reads the other (both seq_cst), so that the
//                      syncing thread cannot fall asleep over a wish.
//   [storage.round]    where the round that is under way, or was the last, ends, and then its
//   number:
//                      release stores of the syncing thread, acquire loads of those who choose by
//                      which rounds to be woken.
//   [storage.failed]   release store on trouble, acquire load before each change and wait.
//   archive_mutex_     one change of the files at a time: draining, rewriting, backup.
//   engine_mutex_      the engine does not end while its records are written anew.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "semel/process.hpp"
#include "semel/rocksdb.hpp"
#include "semel/storage.hpp"
#include "storage/archive/archive.hpp"
#include "storage/joint/joined_files.hpp"
#include "storage/joint/joins.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/mark.hpp"
#include "storage/log/signal.hpp"

namespace semel {

class Storage::Impl {
  const ProcessMark process_;

 public:
  Impl(const StorageOptions& options, const Clock& clock)
      : options_(options),
        clock_(clock),
        disk_(options.disk != nullptr ? *options.disk : own_disk_) {}
  ~Impl();

  [[nodiscard]] Status open(std::vector<rocksdb::ColumnFamilyDescriptor> families = {});
  [[nodiscard]] Version first_version() const noexcept { return first_version_; }
  /// Whether this is the copy of a child: the log is mapped by both, the rest has one owner.
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
  [[nodiscard]] std::size_t group_bytes_max() const noexcept { return log_->group_bytes_max(); }
  void engine_ends() noexcept;
  void spilled(Ticket cut, Ticket kept);
  [[nodiscard]] Status drain();
  [[nodiscard]] Status drop_ended();
  [[nodiscard]] Status rewrite(Engine& engine);
  [[nodiscard]] Status backup(const std::string& directory);
  [[nodiscard]] StorageStats stats() const;
  [[nodiscard]] Millis busy_for() const noexcept {
    return std::max(sync_round_.busy_for(), drain_round_.busy_for());
  }

  // Joined commits (storage_join.cpp)
  [[nodiscard]] static Result<std::unique_ptr<Storage>> open_joined(
      const StorageOptions& options, const Clock& clock,
      std::vector<rocksdb::ColumnFamilyDescriptor> families);
  [[nodiscard]] Result<JoinedOutcome> complete_joined(Claims& claims, const OwnerCall& call,
                                                      const rocksdb::WriteBatch& effects,
                                                      Durability level);
  [[nodiscard]] bool defer(std::function<void()>& then);

  [[nodiscard]] storage::Archive& archive() noexcept { return *archive_; }
  [[nodiscard]] const storage::TimeLine& line() const noexcept { return line_; }
  [[nodiscard]] Timestamp now() const noexcept { return clock_.now(); }

 private:
  /// A segment that an earlier process wrote.
  struct OldSegment {
    std::string path;
    storage::Place begin = 0;
    storage::Place end = 0;
    storage::Place stop = end;  // nothing from here on counts
  };

  /// Mutations out of the log, by span.
  struct Harvest {
    storage::Place from = 0;       // what lies before it is there already
    storage::PartCollector parts;  // of groups that begin in a segment that is still there
    storage::BlobSet blobs;
    Version largest = 0;
    std::uint64_t mutations = 0;
    std::uint64_t ended = 0;
    bool damaged = false;
  };

  // Opening (storage_open.cpp)
  [[nodiscard]] Status check_options() const;
  [[nodiscard]] Result<storage::Mark::Found> open_mark();
  [[nodiscard]] Status check_mark(storage::Mark::Found found, storage::Place drained) const;
  [[nodiscard]] Status find_segments(storage::Place drained);
  [[nodiscard]] Status stop_at_gaps(storage::Place drained);
  [[nodiscard]] Status start(storage::Place drained);
  [[nodiscard]] Status start_threads();

  // The syncing thread (storage_sync.cpp)
  void run_syncer();
  [[nodiscard]] bool sync_round(bool of_interval);
  void want(Ticket ticket);
  void wait_for_room();
  [[nodiscard]] std::uint32_t rounds_for(Ticket ticket) const noexcept;
  [[nodiscard]] static std::uint32_t bit_of_round(std::uint32_t round) noexcept {
    return std::uint32_t{1} << (round % 32);
  }
  [[nodiscard]] Status wait_until_settled(Ticket ticket, Durability level);
  [[nodiscard]] Error unknown() const;
  [[nodiscard]] Ticket or_failed(Ticket ticket);
  void want_joined(Ticket ticket);
  void answer(storage::Place synced);
  void answer_waiting(std::uint32_t rounds = storage::Signal::everybody);
  void write_mark() noexcept;
  void fail(const Error& error);
  void set_failed(const std::string& why);

  // Joined commits (storage_join.cpp)
  [[nodiscard]] Ticket append_beside_joins(std::span<const Mutation> group);
  [[nodiscard]] Ticket collect(storage::Join& join, std::span<const Mutation> group);
  [[nodiscard]] Status end_join(storage::Join& join, const rocksdb::WriteBatch& effects,
                                Durability level);
  [[nodiscard]] Status write_join(const storage::Join& join, const rocksdb::WriteBatch& effects,
                                  Durability level);
  [[nodiscard]] Status check_effects(const rocksdb::WriteBatch& effects) const;
  /// Nothing more is to be waited for: it is there, or will not be known to be.
  [[nodiscard]] bool is_settled(Ticket ticket, Durability level) const noexcept;
  [[nodiscard]] storage::JoinedFiles joined_files() const noexcept {
    return {archive_->database(), archive_->family(storage::joined_family)};
  }
  void reached_sequence(std::uint64_t sequence) noexcept;

  // The draining thread (storage_drain.cpp)
  [[nodiscard]] Status drain_round();
  void run_drainer();
  [[nodiscard]] bool takes_drain_request();
  [[nodiscard]] Status prepare_segments();
  [[nodiscard]] Status drain_some(bool all);
  [[nodiscard]] Status drain_old();
  [[nodiscard]] Status drain_complete(std::uint64_t end);
  void harvest_record(Harvest& harvest, storage::Place place, storage::RecordType type,
                      Bytes payload);
  [[nodiscard]] Status put_away(const Harvest& harvest, storage::Place drained);
  [[nodiscard]] Status forget_ended();
  /// Under archive_mutex_.
  [[nodiscard]] Result<storage::ScanReport> scan_old(const OldSegment& segment,
                                                     const storage::VisitRecord& visit) const;
  void rewrite_if_worth_it();
  void note_trouble(const Status& status);

  /// Versions an opened storage may hand out before it must write down that it goes on. A crash
  /// wastes what is left: 2^36 of 2^59.
  static constexpr Version version_reserve = Version{1} << 36;

  static constexpr std::size_t batch_ends_max = 1024;
  void end_batch(storage::Place end);
  [[nodiscard]] Status make_void(storage::Place floor);
  void note_map(const Mutation& mutation);

  class Recovery;
  [[nodiscard]] Status keep_remote_leases(Engine& engine);
  [[nodiscard]] storage::ScanRules rules() const noexcept;
  [[nodiscard]] storage::Anchor anchor_now() const {
    return {static_cast<std::int64_t>(line_now()), clock_.now().time_since_epoch().count(),
            clock_.unix_ms(), boot_id_};
  }
  [[nodiscard]] std::uint64_t line_now() const noexcept { return line_.to_line(clock_.now()); }

  const StorageOptions options_;
  const Clock& clock_;
  storage::Disk own_disk_;
  storage::Disk& disk_;
  std::unique_ptr<storage::Mark> mark_;
  std::unique_ptr<storage::Archive> archive_;
  storage::TimeLine line_{0};
  std::string boot_id_;
  std::uint64_t storage_id_ = 0;
  storage::MarkContent last_mark_;  // of the earlier process
  bool same_boot_ = false;
  std::vector<OldSegment> old_segments_;  // until they are drained; under archive_mutex_
  std::atomic<bool> old_left_{false};     // release by the drainer, acquire by the others
  std::atomic<storage::Place> floor_{0};  // nothing before it counts; grows in rewrite()
  Version first_version_ = 1;

  storage::Signal crossed_;  // for the draining thread
  std::unique_ptr<storage::Log> log_;
  storage::Place log_begin_ = 0;

  storage::Signal sync_wanted_;                   // for the syncing thread
  storage::Signal rounds_;                        // for those who wait
  std::atomic<storage::Place> wanted_{0};         // [storage.wanted]
  std::atomic<storage::Place> synced_{0};         // [storage.synced] [storage.wanted]
  std::atomic<storage::Place> target_{0};         // [storage.round] of the newest round
  std::atomic<std::uint32_t> round_{0};           // [storage.round] its number
  std::atomic<std::uint64_t> wanted_rounds_{0};   // that somebody waited for
  std::atomic<storage::Place> drained_{0};        // release by the drainer, for the mark
  std::atomic<std::uint64_t> rocks_sequence_{0};  // the same
  std::atomic<bool> failed_{false};               // [storage.failed]
  std::atomic<bool> stop_{false};                 // with sync_wanted_ and crossed_
  std::atomic<bool> is_drain_asked_{false};       // with crossed_
  std::atomic<storage::Place> drain_to_{0};       // the furthest anybody asked for
  std::atomic<bool> recovered_{false};            // old segments may be drained; with crossed_
  storage::WorkMark sync_round_;                  // of the syncing thread
  storage::WorkMark drain_round_;                 // of the draining thread
  bool told_failure_ = false;                     // of the syncing thread
  bool mark_unsynced_ = false;                    // of the syncing thread
  storage::MarkContent mark_content_;             // of the syncing thread

  storage::Joins joins_;

  struct Waiting {
    Ticket ticket;
    Durability level;
    std::function<void(Status)> then;
  };
  mutable std::mutex mutex_;      // of what follows
  std::vector<Waiting> waiting_;  // for a sync, or a join
  std::string failure_;           // why nothing more is synced
  std::string trouble_;           // why nothing more is drained, until it is
  std::uint64_t syncs_ = 0;
  std::uint64_t mutations_drained_ = 0;
  std::uint64_t mutations_ended_ = 0;
  std::uint64_t rewrites_ = 0;

  mutable std::mutex archive_mutex_;
  /// Places at which no blob goes on, so that what lies before one can be made void; the newest.
  std::vector<storage::Place> batch_ends_;  // under archive_mutex_; at most batch_ends_max
  std::mutex map_mutex_;
  Version map_version_ = 0;  // under map_mutex_, as the next: of the newest map of databases
  std::string map_;
  // Of the draining thread: whether segments are made full of zeros; as of when that was decided.
  bool zeroes_ = true;
  std::uint64_t prepared_rounds_ = 0;     // of wanted_rounds_
  storage::Place prepared_tail_ = 0;      // of the log
  std::uint64_t drain_next_ = 0;          // the first segment not drained; of the draining thread
  storage::SpanNumber running_span_ = 0;  // of the draining thread
  std::mutex engine_mutex_;
  Engine* engine_ = nullptr;  // under engine_mutex_
  std::thread rewriter_;      // of the draining thread
  std::atomic<bool> rewriting_{false};
  std::atomic<bool> rewrite_ends_{false};

  std::thread syncer_;
  std::thread drainer_;
};

/// The way of the storage's own parts to what a Storage hides.
struct StorageAccess {
  [[nodiscard]] static Storage::Impl& impl(Storage& storage) noexcept { return *storage.impl_; }
};

}  // namespace semel
