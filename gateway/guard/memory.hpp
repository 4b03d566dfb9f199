// The memory that requests may hold: one budget for all threads, each byte of it counted once.
//
//   MemoryBudget   how much is left
//   MemoryShare    a part of it, given back at its end
//   CountedText    a text that grows, counted before its memory is taken
//
// Counted are the bodies of guarded requests, their replies while they are recorded and sent, and
// heads above 4 KiB. The number of connections bounds all other memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace semel::gateway {

/// How a request without memory ends, and its share of the budget.
enum class Need : std::uint8_t {
  refusable,  ///< nothing has happened yet: it leaves a quarter of the budget to the others
  urgent,     ///< its effect has happened: it may use all of the budget
};

/// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) noexcept : bytes_(bytes) {}
  /// False: the budget has less left, and nothing was taken.
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

  /// Changes the share to this number of bytes. False: unchanged. Shrinking always succeeds.
  [[nodiscard]] bool hold(std::size_t bytes) noexcept {
    if (bytes > bytes_ && !budget_.take(bytes - bytes_, need_)) return false;
    if (bytes < bytes_) budget_.give_back(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  void release() noexcept { static_cast<void>(hold(0)); }  // shrinking always succeeds

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
  /// Reserves room for append() of `more` bytes, up to a size of `size_max`. False: the budget has
  /// no room. Never takes more than `size_max`.
  [[nodiscard]] bool make_room(std::size_t more, std::size_t size_max);
  /// Appends within the room that make_room() has reserved.
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
