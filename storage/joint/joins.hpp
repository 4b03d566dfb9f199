// Joined commits under way: changes that are visible in memory and on their way to the disk in a
// write of their own, beside the log.
//
// What the log gets by being one thing in one order must be kept here by hand:
// - Whoever waits for a ticket also waits for each join that took its place before it.
// - A later change of a key that is being joined stays behind the join: it follows it into the log.
//   Else that change could be on the disk, saying "done", and the effects not.
//
// Concurrency
//   [joins.count]     joins that have begun: release under the mutex, acquire by those who append
//                     or wait. Whoever sees a record that a join has changed sees the join too,
//                     because the record was published after it began.
//   [joins.oldest]    the smallest ticket of a join that is not written; release under the mutex
//                     when it is, acquire by those who wait.
//   [joins.unsynced]  the same of those that are written, but not synced.
//   mutex_            everything else, and what others look at in a Join.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/journal.hpp"
#include "storage/archive/archive.hpp"

namespace semel::storage {

class Joins;

/// Lives on the stack of the thread whose changes it collects.
struct Join {
  Ticket ticket = 0;  ///< of the first change; 0: nothing was changed
  BlobSet blobs;
  Durability level = Durability::logged;  ///< that the engine asked for
  bool lost = false;                      ///< a change could not be collected
  std::vector<std::function<void()>> afterwards;

 private:
  friend class Joins;
  struct Follower {
    std::string mutations;
    Timestamp when;
  };
  const Joins* of_ = nullptr;
  std::vector<std::pair<std::uint8_t, std::string>> keys_;
  std::vector<Follower> followers_;
  std::size_t followers_bytes_ = 0;
};

class Joins {
 public:
  static constexpr Ticket none = std::numeric_limits<Ticket>::max();
  /// Of changes that follow one join. More than a few is a loop over one finished claim.
  static constexpr std::size_t followers_bytes_max = std::size_t{4} << 20;

  /// False: nobody has begun, and nothing here matters. All that was stored before the end of a
  /// join that is not seen any more is visible.
  [[nodiscard]] bool any() const noexcept {
    return count_.load(std::memory_order_acquire) != 0;  // mo: acquire [joins.count]
  }
  /// The join that this thread is in; null: none.
  [[nodiscard]] Join* own() const noexcept;
  /// True: something up to `ticket` has not reached `level` yet.
  [[nodiscard]] bool hold(Ticket ticket, Durability level) const noexcept {
    // mo: acquire [joins.oldest], and then [joins.unsynced]: a join is in the second before it
    //     leaves the first.
    if (oldest_.load(std::memory_order_acquire) <= ticket) return true;
    return level == Durability::synced && unsynced_before(ticket);
  }
  [[nodiscard]] bool unsynced_before(Ticket ticket) const noexcept {
    return unsynced_.load(std::memory_order_acquire) <= ticket;  // mo: acquire [joins.unsynced]
  }

  // --- the joining thread ---------------------------------------------------------------------
  /// This thread's changes are `join`'s from now on. False: it is in one already.
  [[nodiscard]] bool begin(Join& join);
  /// Says where `join` is, and what it changes. Before anybody can see that it did.
  void add(Join& join, Ticket ticket, std::span<const Mutation> group);
  /// This thread's changes are its own again.
  void leave(Join& join) noexcept;
  /// After the write, good or not. `append` gets each group of changes that came after it, before
  /// anybody is told. `synced`: nobody needs to sync it any more.
  void end(Join& join, bool synced,
           const std::function<void(std::string_view mutations, Timestamp when)>& append);

  // --- those who change what is being joined --------------------------------------------------
  enum class Follow : std::uint8_t { no, yes, full };
  /// Keeps `group` behind the join that has changed one of its keys. `encode` makes it bytes.
  /// Full: it was not kept.
  [[nodiscard]] Follow follow(std::span<const Mutation> group, Timestamp when,
                              const std::function<std::string()>& encode);

  // --- the thread that syncs -------------------------------------------------------------------
  /// A wish to sync what was written. False: somebody has wished it already.
  [[nodiscard]] bool want_sync() noexcept {
    return !wanted_.exchange(true, std::memory_order_acq_rel);  // mo: acq_rel: with the signal
  }
  [[nodiscard]] bool wants_sync() const noexcept {
    return wanted_.load(std::memory_order_acquire);  // mo: acquire: with the signal
  }
  /// True: something was written and not synced; if RocksDB's log is synced after this, end_sync()
  /// says so.
  [[nodiscard]] bool begin_sync();
  void end_sync();

 private:
  /// Under mutex_.
  void publish() noexcept;

  alignas(64) std::atomic<std::uint32_t> count_{0};  // read by every append
  std::atomic<Ticket> oldest_{none};
  std::atomic<Ticket> unsynced_{none};
  std::atomic<bool> wanted_{false};
  std::mutex mutex_;
  std::vector<Join*> joins_;  // at most one a thread
  Ticket written_ = none;     // smallest that is written and not being synced
  Ticket syncing_ = none;     // smallest that is being synced
};

}  // namespace semel::storage
