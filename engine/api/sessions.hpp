// Lifetimes that claims are bound to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "semel/claim.hpp"

namespace semel::engine {

/// Of a session of a replicated log: the node that has opened it, and the number of its life. All
/// 0: no node.
struct SessionOwner {
  std::uint64_t node = 0;
  std::uint64_t life = 0;
  [[nodiscard]] bool operator==(const SessionOwner&) const = default;
};
struct OpenSession {
  SessionId id = 0;
  SessionOwner owner{};
};

/// Safe from any thread. is_closed() of the engine's own session and of 0 takes no lock.
class Sessions {
 public:
  /// `seed` differs from engine to engine, so that a session of an earlier life is unknown here.
  /// 0: of a replica, which knows the sessions of its replicated log alone, and has none of its
  /// own.
  explicit Sessions(std::uint64_t seed) noexcept
      : own_(seed == 0 ? 0 : (seed << 20) | 1), next_(own_ + 1) {}

  /// The session of claims that name none: as long as this engine.
  [[nodiscard]] SessionId own() const noexcept { return own_; }

  [[nodiscard]] SessionId open() {
    const base::MutexLock lock{mutex_};
    open_.emplace(next_, SessionOwner{});
    return next_++;
  }
  /// One that a replicated log has named. False: it is open already.
  bool open(const OpenSession& given) {
    const base::MutexLock lock{mutex_};
    return open_.emplace(given.id, given.owner).second;
  }
  /// Closes those of other lives of the owner's node. Returns them, ascending.
  [[nodiscard]] std::vector<SessionId> close_former(const SessionOwner& owner) {
    std::vector<SessionId> closed;
    const base::MutexLock lock{mutex_};
    for (const auto& [id, of] : open_) {
      if (of.node == owner.node && of.life != owner.life) closed.push_back(id);
    }
    for (const SessionId id : closed) open_.erase(id);
    std::sort(closed.begin(), closed.end());
    return closed;
  }
  /// False: it was not open.
  bool close(SessionId session) {
    const base::MutexLock lock{mutex_};
    return open_.erase(session) != 0;
  }
  /// Those that are never closed.
  [[nodiscard]] bool is_own_or_none(SessionId session) const noexcept {
    return session == 0 || session == own_;
  }
  /// True if the owner is known to be gone. 0, a remote owner, is never known to be.
  [[nodiscard]] bool is_closed(SessionId session) const {
    if (is_own_or_none(session)) return false;
    const base::MutexLock lock{mutex_};
    return !open_.contains(session);
  }
  /// Ascending.
  [[nodiscard]] std::vector<OpenSession> all_open() const {
    std::vector<OpenSession> found;
    {
      const base::MutexLock lock{mutex_};
      for (const auto& [id, owner] : open_) found.push_back({id, owner});
    }
    std::sort(found.begin(), found.end(),
              [](const OpenSession& one, const OpenSession& other) { return one.id < other.id; });
    return found;
  }
  [[nodiscard]] std::size_t count() const {
    const base::MutexLock lock{mutex_};
    return open_.size();
  }

 private:
  const SessionId own_;
  mutable base::Mutex mutex_;
  SessionId next_ SEMEL_GUARDED_BY(mutex_);
  std::unordered_map<SessionId, SessionOwner> open_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::engine
