// The error of the link that failed last, for the report why no node is connected.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "base/mutex.hpp"

namespace semel::gateway {

/// Thread-safe.
class LastTrouble {
 public:
  /// Without memory the previous text stays.
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
