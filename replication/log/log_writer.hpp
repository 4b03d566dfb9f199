// The thread that writes the replicated log of a replica: all that waits is appended, and one sync
// is for all of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "replication/core/message.hpp"
#include "replication/log/entry_log.hpp"

namespace semel::replication {

class LogWriter {
 public:
  /// The newest entry on the disk, or the error after which no entry will reach it.
  struct Written {
    LogIndex last = 0;  ///< of the newest entry
    Term term = 0;      ///< of that entry
    Status status = Done{};
  };
  /// Called on the writer's thread after each sync that followed entries. Must be quick. After an
  /// error it is not called again.
  using Report = std::function<void(const Written&)>;

  /// `pause`: between two tries on a full disk.
  LogWriter(std::unique_ptr<EntryLog> log, Report report, Millis pause = Millis{100});
  /// Writes all waiting entries first, unless the disk is full or has failed.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // --- from one thread: the order of calls is that of the log ---------------------------------
  /// Each entry follows the one before, or replaces one that is there with all behind it.
  void append(LogIndex first, std::vector<RaftEntry> entries);
  /// A snapshot has taken the place of all entries.
  void restart(LogIndex index, Term term);
  /// Entries up to `index` are needed no longer.
  void forget(LogIndex index);
  /// Calls `task` on the writer's thread, when that has written what it is at. Entries that come
  /// during the call wait. It must not throw. A later task takes the place of one that was not
  /// called yet. It is not called if the writer ends before that because its disk is full or has
  /// failed.
  void run_after_write(std::function<void()> task);

  // --- from any thread ------------------------------------------------------------------------
  /// Of the data that waits to be written.
  [[nodiscard]] std::size_t bytes_waiting() const;
  /// The disk is full: it is tried again.
  [[nodiscard]] bool is_full() const;
  /// A write of waiting entries has begun and not ended.
  [[nodiscard]] bool is_writing() const;
  [[nodiscard]] std::uint64_t syncs() const;
  /// Of all that the log has on disk.
  [[nodiscard]] std::uint64_t disk_bytes() const;

 private:
  struct Append {
    LogIndex first = 0;
    std::vector<RaftEntry> entries{};
  };
  struct Restart {
    LogIndex index = 0;
    Term term = 0;
  };
  struct Forget {
    LogIndex index = 0;
  };
  using Job = std::variant<Append, Restart, Forget>;

  void add(Job job, std::size_t bytes);
  void run();
  void run_task();
  /// False: the writer ends.
  [[nodiscard]] bool write(std::vector<Job>& jobs);
  [[nodiscard]] Status carry_out(const Job& job);
  /// Tries again while the disk is full. False: the writer is ending.
  [[nodiscard]] bool wait_for_space();

  std::unique_ptr<EntryLog> log_;
  const Report report_;
  const Millis pause_;
  mutable base::Mutex mutex_;
  base::Condition wakeup_;
  std::vector<Job> waiting_ SEMEL_GUARDED_BY(mutex_);
  std::function<void()> after_write_ SEMEL_GUARDED_BY(mutex_);
  std::size_t bytes_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t syncs_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t disk_bytes_ SEMEL_GUARDED_BY(mutex_);
  bool is_full_ SEMEL_GUARDED_BY(mutex_) = false;
  bool is_writing_ SEMEL_GUARDED_BY(mutex_) = false;
  bool ends_ SEMEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace semel::replication
