// Puts everything that is stored into an engine: one thread reads blobs and lists the segments of
// the journal, several put their mutations into the engine. Their order does not matter
// (docs/decisions/0002-order-of-versions.md), so they do not wait for each other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "semel/engine.hpp"
#include "semel/result.hpp"
#include "semel/storage.hpp"
#include "storage/archive/archive.hpp"
#include "storage/files/newest_map.hpp"
#include "storage/log/claim_namespaces.hpp"
#include "storage/log/ended_holds.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/stopwatch.hpp"
#include "storage/start/context.hpp"
#include "storage/start/earlier_process.hpp"
#include "storage/start/pending_deltas.hpp"

namespace semel::storage {

/// Held by an owner in another process, which may still be alive.
[[nodiscard]] bool is_remote_hold(const Mutation& mutation) noexcept;

class Restoring {
 public:
  struct Source {
    std::span<const OldSegment> segments;  // unchanged while this exists
    LogOffset floor = 0;                   // data before it is void
    std::uint64_t bytes_total = 0;
  };
  Restoring(const Context& context, const EarlierProcess& earlier, NewestMap& map, Engine& engine,
            const Source& source, const std::function<void(const RecoveryProgress&)>& progress)
      : context_(context),
        earlier_(earlier),
        map_(map),
        engine_(engine),
        source_(source),
        progress_(progress) {
    progress_now_.bytes_total = source.bytes_total;
  }

  /// Passes everything that is stored to the threads. Returns when they have ended; result() has
  /// their errors. Errors: no_thread, storage_damaged, storage_failed.
  [[nodiscard]] Status read_all(Archive& archive);
  /// Everything has to be read once more, for what supersedes the holds that were noted.
  [[nodiscard]] bool needs_second_pass() const { return !is_second_pass_ && holds_.any(); }
  void begin_second_pass() noexcept { is_second_pass_ = true; }
  /// After that pass, if there was one: puts the holds that are left into the engine; their lease
  /// begins now. Errors: those of EngineHost::restore().
  [[nodiscard]] Status restore_holds();

  /// When everything was read: applies the deltas that are left. Errors: storage_damaged, of one
  /// whose base is not there; those of restore_deltas().
  [[nodiscard]] Status restore_deltas();

  /// The first error is that of result().
  void fail(Error error) noexcept;
  [[nodiscard]] bool has_remote_holds() const noexcept {
    return remote_holds_.load(std::memory_order_relaxed);  // mo: relaxed: the threads have ended
  }
  [[nodiscard]] Result<RecoveryReport> result();

 private:
  struct Job;
  class JobQueue;
  class Workers;
  /// What one thread has seen.
  struct Seen {
    RecoveryReport report;  // of its present job
    ClaimNamespaces claim_namespaces;
  };

  void run(JobQueue& queue) noexcept;
  void work(JobQueue& queue);
  [[nodiscard]] Status restore_segment(std::size_t index, Seen& seen);
  /// Sixteen at a time, so that their cache misses overlap. `base`: of the near form, or null.
  [[nodiscard]] Status restore(Bytes mutations, const MutationBase* base, const std::string& from,
                               Seen& seen);
  [[nodiscard]] Status supersede(Bytes mutations, const MutationBase* base,
                                 const std::string& from);
  [[nodiscard]] bool note_ended_hold(const Mutation& mutation, Bytes bytes,
                                     const MutationBase* base);
  [[nodiscard]] bool lived_before(Timestamp end) const;
  [[nodiscard]] Result<std::map<std::string, std::uint64_t>> live_claims_without_namespace() const
      SEMEL_REQUIRES(mutex_);
  void report_progress(const RecoveryReport& seen);

  const Context& context_;
  const EarlierProcess& earlier_;
  NewestMap& map_;
  Engine& engine_;
  const Source source_;
  const std::function<void(const RecoveryProgress&)>& progress_;
  std::atomic<bool> remote_holds_{false};
  EndedHolds holds_;
  PendingDeltas deltas_;
  bool is_second_pass_ = false;  // set while no other thread runs
  const Stopwatch time_;
  PartCollector parts_;
  base::Mutex mutex_;
  RecoveryReport report_ SEMEL_GUARDED_BY(mutex_);
  ClaimNamespaces claim_namespaces_ SEMEL_GUARDED_BY(mutex_);
  RecoveryProgress progress_now_ SEMEL_GUARDED_BY(mutex_);
  std::optional<Error> error_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::storage
