#include "storage/sync/health.hpp"

#include "base/assert.hpp"
#include "storage/archive/rocks_guard.hpp"

namespace semel::storage {

void Health::fail(const Error& error) noexcept {
  {
    const base::MutexLock lock{mutex_};
    if (cause_) {
      try {
        cause_ = error;
      } catch (...) {
        cause_ = Error{error.code, no_memory};
      }
    }
    failed_.store(true, std::memory_order_release);  // mo: release [storage.failed]
    SEMEL_ASSERT(!cause_);
  }
  // Release writers that wait for a segment; their changes are not acknowledged anyway.
  log_.stop();
  syncer_.raise();
  progress_.raise();
}

void Health::close() noexcept {
  closing_.store(true, std::memory_order_release);  // mo: release [storage.stop]
  log_.stop();
  syncer_.raise();
  drainer_.raise();
}

void Health::refused() {
  if (is_closing()) return;  // the journal was stopped; no caller waits
  fail({ErrorCode::outcome_unknown,
        "the log could not be written, or a change was larger than the room left in it and no more "
        "became free within " +
            std::to_string(confirm_within_.count()) + " ms; open the storage again"});
}

std::string Health::cause() const {
  const base::MutexLock lock{mutex_};
  return cause_ ? std::string{} : cause_.error().detail;
}

Error Health::unknown() const noexcept {
  try {
    return {ErrorCode::outcome_unknown, cause()};
  } catch (...) {
    return {ErrorCode::outcome_unknown, no_memory};
  }
}

}  // namespace semel::storage
