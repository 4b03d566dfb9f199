// Joined commits in progress: changes that are visible in memory and are being written to RocksDB
// directly, beside the journal. The journal is one sequence in one order. Joined commits must keep
// two of its properties
// themselves:
// - A wait for a ticket includes each joined commit that reserved its offset before the ticket.
// - A later change of a key in a joined commit is appended after the commit was written. Otherwise
//   that change, for instance "done", could be on disk without the effects.
//
// Concurrency
//   [joined.count]     commits that have begun: release under the mutex, acquire by threads that
//                      append or wait. A thread that sees a record changed by a commit sees the
//                      commit too, because the record was published after the commit had begun.
//   [joined.oldest]    the smallest ticket of a commit that is not written: release under the
//                      mutex, acquire by waiters.
//   [joined.unsynced]  the smallest ticket of a commit that is written, but not synced: the same.
//   [joined.wanted]    that a sync was requested: acq_rel exchange by the requesting thread,
//                      release store by the syncing thread when it begins one.
//   mutex_             guards everything else, also what other threads read in a JoinedCommit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "semel/journal.hpp"
#include "storage/archive/blob_set.hpp"

namespace semel::storage {

class JoinedCommits;

/// On the stack of the thread whose changes it collects.
struct JoinedCommit {
  Ticket ticket = 0;  ///< of the first change; 0: nothing was changed
  BlobSet blobs;
  Durability level = Durability::logged;  ///< that the engine requested
  bool lost = false;                      ///< a change could not be collected
  std::vector<Function<void()>> afterwards;

  /// Whether it has the change with this version. For the committing thread.
  [[nodiscard]] bool has_changed(Version version) const noexcept;

 private:
  friend class JoinedCommits;
  struct Follower {
    std::string mutations;
    Timestamp when;
  };
  struct Change {
    std::uint8_t db;
    std::string key;
    Version version;
  };
  const JoinedCommits* of_ = nullptr;
  std::vector<Change> changes_;
  std::vector<Follower> followers_;
  std::size_t followers_bytes_ = 0;
};

class JoinedCommits {
 public:
  static constexpr Ticket none = std::numeric_limits<Ticket>::max();
  /// Bytes of changes that follow one commit. Reached only by a loop over one finished claim.
  static constexpr std::size_t followers_bytes_max = std::size_t{4} << 20;

  /// False: no commit is in progress, and all stores before the end of the last commit are visible.
  [[nodiscard]] bool any() const noexcept {
    return count_.load(std::memory_order_acquire) != 0;  // mo: acquire [joined.count]
  }
  /// Whether this thread is in a commit, of any storage.
  [[nodiscard]] static bool is_joining() noexcept;
  /// The commit that this thread is in; null: none.
  [[nodiscard]] JoinedCommit* own() const noexcept;
  /// True: a commit up to `ticket` has not reached `level` yet.
  [[nodiscard]] bool hold(Ticket ticket, Durability level) const noexcept {
    // mo: acquire [joined.oldest], then [joined.unsynced]: a commit is in the second before it
    //     leaves the first.
    if (oldest_.load(std::memory_order_acquire) <= ticket) return true;
    return level == Durability::synced && unsynced_before(ticket);
  }
  [[nodiscard]] bool unsynced_before(Ticket ticket) const noexcept {
    return unsynced_.load(std::memory_order_acquire) <= ticket;  // mo: acquire [joined.unsynced]
  }

  // --- the committing thread ---------------------------------------------------------------------
  /// Collects this thread's changes in `join` from now on. False: the thread is in a commit
  /// already.
  [[nodiscard]] bool begin(JoinedCommit& join);
  /// Registers the ticket and the keys of a change. Called before the change is visible.
  void add(JoinedCommit& join, Ticket ticket, std::span<const Mutation> group);
  /// Stops collecting this thread's changes.
  void leave(JoinedCommit& join) noexcept;
  /// Called after the write, successful or not. `append` gets each group that followed the commit,
  /// before waiters are notified. `synced`: no further sync is needed.
  void end(JoinedCommit& join, bool synced,
           const std::function<void(std::string_view mutations, Timestamp when)>& append);

  // --- other writers of the same keys ---------------------------------------------------------
  enum class Follow : std::uint8_t { no, yes, full };
  /// If a commit has changed one of the keys, keeps the encoded `group` until that commit ends.
  /// Full: it was not kept.
  [[nodiscard]] Follow follow(std::span<const Mutation> group, Timestamp when,
                              const std::function<std::string()>& encode);

  // --- the syncing thread ---------------------------------------------------------------------
  /// Requests a sync of written commits. False: it was requested already.
  [[nodiscard]] bool request_sync() noexcept {
    return !requested_.exchange(true, std::memory_order_acq_rel);  // mo: acq_rel [joined.wanted]
  }
  [[nodiscard]] bool is_sync_requested() const noexcept {
    return requested_.load(std::memory_order_acquire);  // mo: acquire [joined.wanted]
  }
  /// True: there are unsynced commits. Call end_sync() when RocksDB's log has been synced after
  /// this.
  [[nodiscard]] bool begin_sync();
  void end_sync();

 private:
  void publish() noexcept SEMEL_REQUIRES(mutex_);

  alignas(64) std::atomic<std::uint32_t> count_{0};  // read by every append
  std::atomic<Ticket> oldest_{none};
  std::atomic<Ticket> unsynced_{none};
  std::atomic<bool> requested_{false};
  base::Mutex mutex_;
  std::vector<JoinedCommit*> joined_commits_ SEMEL_GUARDED_BY(mutex_);  // at most one a thread
  // The smallest ticket that is written and not being synced, and that is being synced.
  Ticket written_ SEMEL_GUARDED_BY(mutex_) = none;
  Ticket syncing_ SEMEL_GUARDED_BY(mutex_) = none;
};

}  // namespace semel::storage
