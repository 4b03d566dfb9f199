// Lifetimes that claims are bound to.
#pragma once

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/mutex.hpp"
#include "semel/claim.hpp"

namespace semel::engine {

/// Safe from any thread. is_closed() of the engine's own session and of 0 takes no lock.
class Sessions {
 public:
  /// `seed` differs from engine to engine, so that a session of an earlier life is unknown here.
  /// 0: of a replica, which knows the sessions of its log alone, and has none of its own.
  explicit Sessions(std::uint64_t seed) noexcept
      : own_(seed == 0 ? 0 : (seed << 20) | 1), next_(own_ + 1) {}

  /// The session of claims that name none: as long as this engine.
  [[nodiscard]] SessionId own() const noexcept { return own_; }

  [[nodiscard]] SessionId open() {
    const base::MutexLock lock{mutex_};
    open_.insert(next_);
    return next_++;
  }
  /// One that a replicated log has named. False: it is open already.
  bool open(SessionId given) {
    const base::MutexLock lock{mutex_};
    return open_.insert(given).second;
  }
  /// False: it was not open.
  bool close(SessionId session) {
    const base::MutexLock lock{mutex_};
    return open_.erase(session) != 0;
  }
  /// True if the owner is known to be gone. 0, a remote owner, is never known to be.
  [[nodiscard]] bool is_closed(SessionId session) const {
    if (session == 0 || session == own_) return false;
    const base::MutexLock lock{mutex_};
    return !open_.contains(session);
  }
  /// Ascending.
  [[nodiscard]] std::vector<SessionId> all_open() const {
    const base::MutexLock lock{mutex_};
    std::vector<SessionId> found{open_.begin(), open_.end()};
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  const SessionId own_;
  mutable base::Mutex mutex_;
  SessionId next_ SEMEL_GUARDED_BY(mutex_);
  std::unordered_set<SessionId> open_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::engine
