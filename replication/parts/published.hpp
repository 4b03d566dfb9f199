// What other threads see of a replica: its status, and the group's time.
//
// Concurrency
//   [replica.leads]  release by the loop, acquire by callers: a hint.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.hpp"
#include "engine/logged/group_time.hpp"
#include "replication/parts/replica_options.hpp"
#include "replication/state/state_machine.hpp"
#include "semel/clock.hpp"

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

/// The group's time: the time of the newest entry plus the time passed since. Set by the loop's
/// thread, read by any.
class PublishedTime final : public engine::GroupTime {
 public:
  /// `clock`: of the loop; it must outlive this.
  explicit PublishedTime(const Clock& clock) noexcept : clock_(clock) {}
  /// Once, before any thread reads it.
  void begin(const StateMachine& state) noexcept { state_ = &state; }

  [[nodiscard]] Timestamp now() const noexcept override { return at(clock_.now()); }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    return now().time_since_epoch().count();
  }
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override { return 0; }
  [[nodiscard]] std::optional<Timestamp> if_current() const noexcept override {
    const Timestamp here = clock_.now();
    // mo: relaxed: a time, not an order
    const std::int64_t until = current_until_.load(std::memory_order_relaxed);
    if (here.time_since_epoch().count() >= until) return std::nullopt;
    return at(here);
  }

  /// Of the group's time from the loop's clock.
  void set_offset(std::int64_t offset_ms) noexcept {
    offset_.store(offset_ms, std::memory_order_relaxed);  // mo: relaxed: a time, not an order
  }
  /// Until when callers may answer repeats from this replica, on the loop's clock; 0: not now.
  void set_current_until(std::int64_t until_ms) noexcept {
    current_until_.store(until_ms, std::memory_order_relaxed);  // mo: relaxed: as where it is read
  }

 private:
  [[nodiscard]] Timestamp at(Timestamp here) const noexcept {
    // mo: relaxed: as where it is set
    const Timestamp passed = here + Millis{offset_.load(std::memory_order_relaxed)};
    return std::max(passed, state_->now());
  }

  const Clock& clock_;
  const StateMachine* state_ = nullptr;
  std::atomic<std::int64_t> offset_{0};
  std::atomic<std::int64_t> current_until_{0};
};

}  // namespace semel::replication
