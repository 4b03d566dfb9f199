#include "replication/log/log_writer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {

LogWriter::LogWriter(std::unique_ptr<EntryLog> log, Report report, Millis pause)
    : log_(std::move(log)),
      report_(std::move(report)),
      pause_(pause),
      disk_bytes_(log_->disk_bytes()),
      thread_([this] { run(); }) {}

LogWriter::~LogWriter() {
  {
    const base::MutexLock lock{mutex_};
    ends_ = true;
  }
  wakeup_.notify_all();
  thread_.join();
}

void LogWriter::append(LogIndex first, std::vector<RaftEntry> entries) {
  std::size_t bytes = 0;
  for (const RaftEntry& entry : entries) bytes += entry.data->size();
  add(Append{first, std::move(entries)}, bytes);
}

void LogWriter::restart(LogIndex index, Term term) {
  add(Restart{index, term}, 0);
}

void LogWriter::forget(LogIndex index) {
  add(Forget{index}, 0);
}

void LogWriter::run_after_write(std::function<void()> task) {
  {
    const base::MutexLock lock{mutex_};
    after_write_ = std::move(task);
  }
  wakeup_.notify_one();
}

void LogWriter::add(Job job, std::size_t bytes) {
  {
    const base::MutexLock lock{mutex_};
    waiting_.push_back(std::move(job));
    bytes_ += bytes;
  }
  wakeup_.notify_one();
}

std::size_t LogWriter::bytes_waiting() const {
  const base::MutexLock lock{mutex_};
  return bytes_;
}

bool LogWriter::is_full() const {
  const base::MutexLock lock{mutex_};
  return is_full_;
}

bool LogWriter::is_writing() const {
  const base::MutexLock lock{mutex_};
  return is_writing_;
}

std::uint64_t LogWriter::syncs() const {
  const base::MutexLock lock{mutex_};
  return syncs_;
}

std::uint64_t LogWriter::disk_bytes() const {
  const base::MutexLock lock{mutex_};
  return disk_bytes_;
}

void LogWriter::run() {
  storage::name_thread("semel-raft-log");
  std::vector<Job> jobs;
  for (;;) {
    {
      base::MutexLock lock{mutex_};
      while (waiting_.empty() && !after_write_ && !ends_) wakeup_.wait(lock);
      if (waiting_.empty() && !after_write_) return;
      jobs.clear();
      jobs.swap(waiting_);
      bytes_ = 0;
      is_writing_ = true;
    }
    try {
      if (!jobs.empty() && !write(jobs)) return;
      run_task();
    } catch (const std::bad_alloc&) {
      // Some of the jobs may be written: what the log has is not what the node thinks.
      // Short enough to need no memory itself.
      return report_({.status = Error{ErrorCode::memory_full, "no memory (log)"}});
    }
  }
}

void LogWriter::run_task() {
  std::function<void()> task;
  {
    const base::MutexLock lock{mutex_};
    task.swap(after_write_);
  }
  if (task) task();
  const base::MutexLock lock{mutex_};
  is_writing_ = false;
}

bool LogWriter::write(std::vector<Job>& jobs) {
  Written written;
  for (Job& job : jobs) {
    Status done = carry_out(job);
    while (!done && !log_->has_failed() && done.error().code == ErrorCode::storage_failed) {
      if (!wait_for_space()) return false;
      done = carry_out(job);
    }
    if (!done) {
      report_({.status = done});
      return false;
    }
    if (const Append* append = std::get_if<Append>(&job)) {
      written.last = append->first + append->entries.size() - 1;
      written.term = append->entries.back().term;
    }
  }
  written.status = log_->sync();
  {
    const base::MutexLock lock{mutex_};
    ++syncs_;
    disk_bytes_ = log_->disk_bytes();
    is_full_ = false;
  }
  if (!written.status) {
    report_({.status = written.status});
    return false;
  }
  if (written.last != 0) report_(written);
  return true;
}

Status LogWriter::carry_out(const Job& job) {
  if (const Restart* restart = std::get_if<Restart>(&job)) {
    return log_->restart(restart->index, restart->term);
  }
  if (const Forget* forget = std::get_if<Forget>(&job)) {
    return forget->index > log_->last() ? Status{Done{}} : log_->forget(forget->index);
  }
  const Append& append = std::get<Append>(job);
  SEMEL_ASSERT(!append.entries.empty());
  // After a full disk some of them are written already, and are not written twice.
  std::size_t done = 0;
  std::vector<LogEntry> entries;
  entries.reserve(append.entries.size());
  for (const RaftEntry& entry : append.entries) {
    const LogIndex index = append.first + done;
    ++done;
    if (log_->term_of(index) == entry.term && index <= log_->last() && index >= log_->first()) {
      continue;
    }
    entries.push_back({.index = index,
                       .term = entry.term,
                       .type = static_cast<std::uint8_t>(entry.type),
                       .data = *entry.data});
  }
  return log_->append(entries);
}

bool LogWriter::wait_for_space() {
  base::MutexLock lock{mutex_};
  is_full_ = true;
  if (ends_) return false;
  wakeup_.wait_for(lock, pause_);
  return !ends_;
}

}  // namespace semel::replication
