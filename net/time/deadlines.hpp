// Timed callbacks: ends of waits and of pauses. There are few, and most are cancelled in time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "semel/types.hpp"

namespace semel::net {

class Deadlines {
 public:
  using Id = std::uint64_t;  // 0: none

  /// Calls `run` from the first poll() at or after `when`, unless cancel() comes before.
  Id add(Timestamp when, std::function<void()> run) {
    const base::MutexLock lock{mutex_};
    const Id id = ++last_;
    times_.emplace(id, when);
    try {
      waiting_.emplace(std::pair{when, id}, std::move(run));
    } catch (...) {  // without memory: neither has it, or cancel() and poll() would disagree
      times_.erase(id);
      throw;
    }
    SEMEL_ASSERT(waiting_.size() == times_.size());
    return id;
  }
  /// Without effect if it has run. It may be running.
  void cancel(Id id) {
    const base::MutexLock lock{mutex_};
    const auto found = times_.find(id);
    if (found == times_.end()) return;
    waiting_.erase({found->second, id});
    times_.erase(found);
  }
  /// When poll() has something to do next.
  [[nodiscard]] std::optional<Timestamp> next() const {
    const base::MutexLock lock{mutex_};
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->first.first;
  }
  /// Runs the callbacks that are due, without a lock held.
  void poll(Timestamp now) {
    std::vector<std::function<void()>> due;
    {
      const base::MutexLock lock{mutex_};
      while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
        due.push_back(std::move(waiting_.begin()->second));
        times_.erase(waiting_.begin()->first.second);
        waiting_.erase(waiting_.begin());
      }
    }
    for (const auto& run : due) run();
  }
  [[nodiscard]] std::size_t size() const {
    const base::MutexLock lock{mutex_};
    return waiting_.size();
  }

 private:
  mutable base::Mutex mutex_;
  std::map<std::pair<Timestamp, Id>, std::function<void()>> waiting_ SEMEL_GUARDED_BY(mutex_);
  std::unordered_map<Id, Timestamp> times_ SEMEL_GUARDED_BY(mutex_);
  Id last_ SEMEL_GUARDED_BY(mutex_) = 0;
};

}  // namespace semel::net
