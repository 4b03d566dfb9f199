// Claims of remote owners that ended while no process ran.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/journal.hpp"

namespace semel::storage {

/// Remote holds that ended while no process ran: their owners could not renew them, so the lease
/// starts again. Of each key the newest. It is over if something newer of the key is found, which
/// has ended as well or is in the engine; or if it had ended before, and is stored longer than
/// that. First all holds are noted, then what supersedes some of them. Thread-safe.
class EndedHolds {
 public:
  struct Hold {
    Version version = 0;
    std::string bytes{};
    bool is_over = false;
  };
  /// `bytes`: the mutation as it is on disk. `lived`: the process before still had it. A hold is
  /// stored again with each new lease, under the same version.
  void note(const Mutation& hold, Bytes bytes, bool lived) {
    const base::MutexLock lock{mutex_};
    Hold& known = holds_[key_of(hold)];
    const bool lives_on = known.version == hold.version && known.is_over && lived;
    if (known.version >= hold.version && !lives_on) return;
    known = {hold.version, std::string{bytes}, !lived};
  }
  /// Another mutation of the key ended too.
  void supersede(const Mutation& mutation) {
    const base::MutexLock lock{mutex_};
    const auto found = holds_.find(key_of(mutation));
    if (found == holds_.end() || found->second.version >= mutation.version) return;
    found->second.is_over = true;
  }
  /// Whether one is not over yet.
  [[nodiscard]] bool any() const {
    const base::MutexLock lock{mutex_};
    return std::any_of(holds_.begin(), holds_.end(),
                       [](const auto& each) { return !each.second.is_over; });
  }
  [[nodiscard]] std::vector<Hold> take() {
    const base::MutexLock lock{mutex_};
    std::vector<Hold> all;
    all.reserve(holds_.size());
    for (auto& [key, hold] : holds_) all.push_back(std::move(hold));
    holds_.clear();
    return all;
  }

 private:
  [[nodiscard]] static std::string key_of(const Mutation& mutation) {
    return std::string(1, static_cast<char>(mutation.db)).append(mutation.key);
  }
  mutable base::Mutex mutex_;
  std::map<std::string, Hold> holds_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::storage
