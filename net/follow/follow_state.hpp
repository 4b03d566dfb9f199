// What the thread of a link to a master and the commands of clients share.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/mutex.hpp"
#include "net/session/node_role.hpp"

namespace semel::net {

/// REPLICAOF begins a turn. Work for an earlier turn has no effect.
///
/// Concurrency: [follow.turn] the number grows before next_turn() takes the mutex, so that work in
/// small parts ends soon; work that holds the mutex is of the present turn until it lets go.
class FollowState {
 public:
  using Turn = std::uint64_t;

  /// While it lives, no turn begins. False: another turn has begun, and the caller leaves.
  class Work {
   public:
    Work(FollowState& state, Turn turn)
        : lock_(state.working_), is_present_(state.turn() == turn) {}
    [[nodiscard]] explicit operator bool() const noexcept { return is_present_; }

   private:
    const base::MutexLock lock_;
    const bool is_present_;
  };

  [[nodiscard]] Turn turn() const noexcept {
    return turn_.load(std::memory_order_acquire);  // mo: acquire [follow.turn]
  }
  /// Makes `change` after the work under way, and before work of the turn that it returns.
  template <class Change>
  Turn next_turn(Change&& change) {
    // mo: acq_rel [follow.turn]: the next Work sees it, and leaves
    const Turn turn = turn_.fetch_add(1, std::memory_order_acq_rel) + 1;
    const base::MutexLock lock{working_};
    change();
    return turn;
  }

  [[nodiscard]] FollowView view() const {
    const base::MutexLock lock{mutex_};
    return view_;
  }
  void show(FollowView view) {
    const base::MutexLock lock{mutex_};
    view_ = std::move(view);
  }

 private:
  std::atomic<Turn> turn_{0};
  base::Mutex working_;
  mutable base::Mutex mutex_;
  FollowView view_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::net
