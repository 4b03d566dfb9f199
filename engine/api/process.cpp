#include "semel/process.hpp"

#include <pthread.h>

#include "engine/memory/threads.hpp"

namespace semel {

constinit std::atomic<std::uint32_t> ProcessMark::forks_{0};

bool ProcessMark::is_watching() noexcept {
  // Once a process, and a child inherits it.
  static const bool watching = pthread_atfork(nullptr, nullptr, [] { note_fork(); }) == 0;
  return watching;
}

ProcessMark::ProcessMark() noexcept
    : made_((static_cast<void>(is_watching()),
             // mo: relaxed: as in is_here().
             forks_.load(std::memory_order_relaxed))) {}

void ProcessMark::note_fork() noexcept {
  forks_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: the only thread of the child
  engine::Threads::forget_bindings();
}

}  // namespace semel
