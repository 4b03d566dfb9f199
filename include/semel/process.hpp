// Which process an object belongs to: fork() copies its memory, but neither its threads nor its
// right to what other processes see of it (docs/process-life.md).
#pragma once

#include <atomic>
#include <cstdint>

namespace semel {

/// Made in one process, and still a mark of it in the copy that a fork() left in the child.
/// Thread-safe. Of a child that clone(2) made without the C library's fork() it knows nothing.
class ProcessMark {
 public:
  ProcessMark() noexcept;
  /// False: this is a copy, in a child of the process that made it. Progress: wait-free.
  [[nodiscard]] bool is_here() const noexcept {
    // mo: relaxed: written in a child while it has a single thread.
    return made_ == forks_.load(std::memory_order_relaxed);
  }
  /// False: the C library had no memory to watch fork() with; then every mark is here.
  [[nodiscard]] static bool is_watching() noexcept;

 private:
  static void note_fork() noexcept;

  static constinit std::atomic<std::uint32_t> forks_;  // from the first process to this one
  const std::uint32_t made_;
};

}  // namespace semel
