// What other threads see of a replica.
//
// Concurrency
//   [replica.leads]  release by the loop, acquire by callers: a hint.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.hpp"
#include "replication/node/replica_options.hpp"

namespace semel::replication {

/// Set by the loop's thread, read by any.
class PublishedStatus {
 public:
  [[nodiscard]] ReplicaStatus get() const {
    const base::MutexLock lock{mutex_};
    return status_;
  }
  [[nodiscard]] bool leads() const noexcept {
    return leads_.load(std::memory_order_acquire);  // mo: acquire [replica.leads]
  }

  /// All of it but why the replica has stopped.
  void set(ReplicaStatus status) {
    const base::MutexLock lock{mutex_};
    status.failed = std::move(status_.failed);
    status.needs_reopen = status_.needs_reopen;
    status_ = std::move(status);
  }
  /// At once: a caller that is answered that the level is raised looks here.
  void set_level(FeatureLevel level) noexcept {
    const base::MutexLock lock{mutex_};
    status_.level = level;
  }
  void set_leads(bool leads) noexcept {
    leads_.store(leads, std::memory_order_release);  // mo: release [replica.leads]
  }
  /// The first reason stays. A short one takes no memory.
  void set_failed(std::string_view why) {
    const base::MutexLock lock{mutex_};
    if (status_.failed.empty()) status_.failed = why;
    status_.role = Role::follower;
  }
  void set_needs_reopen() noexcept {
    const base::MutexLock lock{mutex_};
    status_.needs_reopen = true;
  }

 private:
  mutable base::Mutex mutex_;
  ReplicaStatus status_ SEMEL_GUARDED_BY(mutex_);
  std::atomic<bool> leads_{false};
};

}  // namespace semel::replication
