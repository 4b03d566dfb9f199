#include "tools/semel/shared/stop_signals.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/assert.hpp"

namespace semel::tool {
namespace {

// A handler has no argument of ours, so its state is global.
std::atomic<int> first_signal{0};
std::atomic<int> wakeup{-1};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not wait");

void on_signal(int number) {
  const int error = errno;
  int none = 0;
  // mo: relaxed: only its own value is looked at.
  static_cast<void>(first_signal.compare_exchange_strong(none, number, std::memory_order_relaxed,
                                                         std::memory_order_relaxed));
  const std::uint64_t one = 1;
  // mo: relaxed: set before the handler was installed. A full counter is readable as well.
  static_cast<void>(!write(wakeup.load(std::memory_order_relaxed), &one, sizeof one));
  errno = error;
}

}  // namespace

StopSignals::StopSignals() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  // mo: relaxed: there is one StopSignals at a time, so no other thread writes it.
  SEMEL_ASSERT(wakeup.load(std::memory_order_relaxed) == -1);
  first_signal.store(0, std::memory_order_relaxed);      // mo: relaxed: no handler is there yet
  wakeup.store(descriptor_, std::memory_order_relaxed);  // mo: relaxed: the same
  struct sigaction action {};
  action.sa_handler = on_signal;
  // The second signal finds the default: a run whose reader has stalled can still be ended.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < signal_count; ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (int i = 0; i < signal_count; ++i) sigaction(signals[i], &before_[i], nullptr);
  wakeup.store(-1, std::memory_order_relaxed);  // mo: relaxed: no handler is there any more
  if (descriptor_ >= 0) close(descriptor_);
}

int StopSignals::received() const noexcept {
  return first_signal.load(std::memory_order_relaxed);  // mo: relaxed: as in the handler
}

}  // namespace semel::tool
