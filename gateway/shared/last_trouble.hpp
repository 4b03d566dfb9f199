// Why there is no connection to a node, as the link has it that failed last.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "base/mutex.hpp"

namespace semel::gateway {

/// Thread-safe.
class LastTrouble {
 public:
  /// Keeps what was there where there is no memory.
  void set(std::string_view text) noexcept {
    try {
      const base::MutexLock lock{mutex_};
      text_ = text;
    } catch (const std::bad_alloc&) {
      return;  // text_ is unchanged
    }
  }
  /// Empty: nothing has failed yet.
  [[nodiscard]] std::string get() const {
    const base::MutexLock lock{mutex_};
    return text_;
  }

 private:
  mutable base::Mutex mutex_;
  std::string text_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::gateway
