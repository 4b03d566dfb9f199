// Claims of remote owners that ended while no process ran.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "semel/journal.hpp"

namespace semel::storage {

/// Remote holds that ended while no process ran: their owners could not renew them, so the lease
/// starts again. Of each key the newest, until something newer of the key is found, which has ended
/// as well or is in the engine. First all holds are noted, then what supersedes some of them.
/// Thread-safe.
class EndedHolds {
 public:
  /// `bytes`: the mutation as it is on disk.
  void note(const Mutation& hold, Bytes bytes) {
    const base::MutexLock lock{mutex_};
    Hold& known = holds_[key_of(hold)];
    if (known.version < hold.version) known = {hold.version, std::string{bytes}};
  }
  /// Another mutation of the key ended too.
  void supersede(const Mutation& mutation) {
    const base::MutexLock lock{mutex_};
    const auto found = holds_.find(key_of(mutation));
    if (found != holds_.end() && found->second.version < mutation.version) holds_.erase(found);
  }
  [[nodiscard]] bool any() const {
    const base::MutexLock lock{mutex_};
    return !holds_.empty();
  }
  [[nodiscard]] std::vector<std::string> take() {
    const base::MutexLock lock{mutex_};
    std::vector<std::string> all;
    all.reserve(holds_.size());
    for (auto& [key, hold] : holds_) all.push_back(std::move(hold.bytes));
    holds_.clear();
    return all;
  }

 private:
  struct Hold {
    Version version = 0;
    std::string bytes;
  };
  [[nodiscard]] static std::string key_of(const Mutation& mutation) {
    return std::string(1, static_cast<char>(mutation.db)).append(mutation.key);
  }
  mutable base::Mutex mutex_;
  std::map<std::string, Hold> holds_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::storage
