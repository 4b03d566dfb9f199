// Memory from the system for the keys of a run, and the limit of all of it together.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace semel::tool {

/// The part of --memory in use. Any thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}

  /// False: it would exceed the limit; nothing is taken.
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    // mo: relaxed: a count; the memory itself is used by the thread that took it.
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
      // mo: relaxed: the same.
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed,
                                          std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) noexcept {
    used_.fetch_sub(bytes, std::memory_order_relaxed);  // mo: relaxed: as in take()
  }
  [[nodiscard]] std::size_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);  // mo: relaxed: shown only
  }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

/// A range of addresses of which the front part is memory: it grows in place, so that nothing in
/// it ever moves. Zero where nothing was written. Not thread-safe.
class Pages {
 public:
  explicit Pages(MemoryBudget& budget) : budget_(&budget) {}
  ~Pages() { release(); }
  Pages(Pages&& other) noexcept { swap(other); }
  Pages& operator=(Pages&& other) noexcept {
    swap(other);
    return *this;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// Reserves addresses, at most `most` bytes of them; fewer if the process may not have as many
  /// (ulimit -v). False: not even a page.
  [[nodiscard]] bool reserve(std::size_t most);
  /// Makes the first `bytes` usable. False: no budget, no memory, or beyond the addresses.
  [[nodiscard]] bool grow_to(std::size_t bytes);
  void release();

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return usable_; }

 private:
  void swap(Pages& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(data_, other.data_);
    std::swap(reserved_, other.reserved_);
    std::swap(usable_, other.usable_);
  }

  MemoryBudget* budget_ = nullptr;
  char* data_ = nullptr;
  std::size_t reserved_ = 0;
  std::size_t usable_ = 0;
};

}  // namespace semel::tool
