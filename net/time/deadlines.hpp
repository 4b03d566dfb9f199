// What is to happen at a time: ends of waits and of pauses. Few, and mostly taken back before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "semel/types.hpp"

namespace semel::net {

class Deadlines {
 public:
  using Id = std::uint64_t;  // 0: none

  /// Calls `run` from the first poll() at or after `when`, unless cancel() comes before.
  Id add(Timestamp when, std::function<void()> run) {
    const std::lock_guard lock{mutex_};
    const Id id = ++last_;
    waiting_.emplace(std::pair{when, id}, std::move(run));
    times_.emplace(id, when);
    return id;
  }
  /// Without effect if it has run. It may be running.
  void cancel(Id id) {
    const std::lock_guard lock{mutex_};
    const auto found = times_.find(id);
    if (found == times_.end()) return;
    waiting_.erase({found->second, id});
    times_.erase(found);
  }
  /// When poll() has something to do next.
  [[nodiscard]] std::optional<Timestamp> next() const {
    const std::lock_guard lock{mutex_};
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->first.first;
  }
  /// Runs what is due, without a lock held.
  void poll(Timestamp now) {
    std::vector<std::function<void()>> due;
    {
      const std::lock_guard lock{mutex_};
      while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
        due.push_back(std::move(waiting_.begin()->second));
        times_.erase(waiting_.begin()->first.second);
        waiting_.erase(waiting_.begin());
      }
    }
    for (const auto& run : due) run();
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock{mutex_};
    return waiting_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<Timestamp, Id>, std::function<void()>> waiting_;  // all under mutex_
  std::unordered_map<Id, Timestamp> times_;
  Id last_ = 0;
};

}  // namespace semel::net
