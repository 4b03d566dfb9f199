// The memory that requests may hold: one budget for all threads, each byte of it counted once.
//
//   MemoryBudget   how much is left
//   MemoryShare    a part of it, given back at its end
//   CountedText    a text that grows, counted before its memory is taken
//
// Counted are the bodies of guarded requests, their replies while they are recorded and sent, and
// heads above 4 KiB. What is not is bounded by the number of connections.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace semel::gateway {

/// What becomes of a request that gets no memory.
enum class Need : std::uint8_t {
  refusable,  ///< nothing has happened yet: it leaves a quarter of the budget to the others
  urgent,     ///< its effect is there: all of the budget is for it
};

/// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) noexcept : bytes_(bytes) {}
  /// False: there is not so much left, and nothing was taken.
  [[nodiscard]] bool take(std::size_t bytes, Need need) noexcept {
    constexpr std::size_t reserved_part = 4;
    const std::size_t limit = need == Need::urgent ? bytes_ : bytes_ - bytes_ / reserved_part;
    // mo: relaxed: a number alone; a neighbour may be refused while this one gives back
    const std::size_t held = held_.fetch_add(bytes, std::memory_order_relaxed);
    if (held <= limit && bytes <= limit - held) return true;
    give_back(bytes);
    return false;
  }
  void give_back(std::size_t bytes) noexcept {
    // mo: relaxed: a number alone
    held_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t held() const noexcept {
    // mo: relaxed: a statistic
    return held_.load(std::memory_order_relaxed);
  }

 private:
  const std::size_t bytes_;
  std::atomic<std::size_t> held_{0};
};

/// Used by one thread. The budget must outlive it.
class MemoryShare {
 public:
  explicit MemoryShare(MemoryBudget& budget, Need need = Need::refusable) noexcept
      : budget_(budget), need_(need) {}
  ~MemoryShare() { budget_.give_back(bytes_); }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  /// From now on it is so many bytes. False: it is what it was. Less is always possible.
  [[nodiscard]] bool hold(std::size_t bytes) noexcept {
    if (bytes > bytes_ && !budget_.take(bytes - bytes_, need_)) return false;
    if (bytes < bytes_) budget_.give_back(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  void release() noexcept { static_cast<void>(hold(0)); }  // less is always possible

 private:
  MemoryBudget& budget_;
  const Need need_;
  std::size_t bytes_ = 0;
};

/// Used by one thread.
class CountedText {
 public:
  explicit CountedText(MemoryBudget& budget, Need need = Need::refusable) noexcept
      : share_(budget, need) {}
  /// So that append() has room for `more` bytes, or for as many as make `size_max` of them. False:
  /// the budget has none. No more than `size_max` is ever taken.
  [[nodiscard]] bool make_room(std::size_t more, std::size_t size_max);
  /// What make_room() has made room for.
  void append(std::string_view more) { text_.append(more); }
  [[nodiscard]] std::string_view view() const noexcept { return text_; }
  /// Ends it.
  void clear() noexcept {
    std::string{}.swap(text_);
    share_.release();
  }

 private:
  MemoryShare share_;
  std::string text_;
};

}  // namespace semel::gateway
