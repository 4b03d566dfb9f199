// The newest map of databases that was appended or recovered: a spill writes it again, as it makes
// the one in the journal void.
#pragma once

#include <string>

#include "base/mutex.hpp"
#include "semel/journal.hpp"

namespace semel::storage {

/// Thread-safe. Invariant: the version never goes back.
class NewestMap {
 public:
  void remember(const Mutation& mutation) {
    const base::MutexLock lock{mutex_};
    if (mutation.version < version_) return;
    version_ = mutation.version;
    value_ = mutation.value;
  }
  /// The mutation that wrote it, whose value is in `value`. False: there is none.
  [[nodiscard]] bool read(Mutation& mutation, std::string& value) const {
    const base::MutexLock lock{mutex_};
    value = value_;
    mutation.type = Mutation::Type::db_map;
    mutation.version = version_;
    mutation.value = value;
    return !value.empty();
  }

 private:
  mutable base::Mutex mutex_;
  Version version_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::string value_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::storage
