// SLOWLOG: the last commands that took longer than a limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"

namespace semel::net {

struct SlowCall {
  std::uint64_t id = 0;
  std::int64_t unix_seconds = 0;
  std::int64_t us = 0;
  std::vector<std::string> args{};  ///< shortened: of a few the beginning, of many the first
  std::string address{};
  std::string name{};
};

class SlowLog {
 public:
  static constexpr std::size_t args_max = 32;
  static constexpr std::size_t word_bytes_max = 128;
  static constexpr std::uint64_t length_max = 1U << 20U;  ///< whatever set_length() says

  /// Negative: nothing is logged.
  void set_limit_us(std::int64_t us) noexcept {
    limit_us_.store(us, std::memory_order_relaxed);  // mo: relaxed: takes effect soon
  }
  void set_length(std::uint64_t count);
  [[nodiscard]] bool takes(std::int64_t ns) const noexcept {
    const std::int64_t limit = limit_us_.load(std::memory_order_relaxed);  // mo: relaxed: a setting
    return limit >= 0 && ns / 1'000 >= limit;
  }

  /// Fills in the id; `args` are those of the request.
  void add(SlowCall call, std::span<const std::string_view> args);
  /// The newest first, at most `count`.
  [[nodiscard]] std::vector<SlowCall> newest(std::size_t count) const;
  [[nodiscard]] std::size_t size() const;
  void clear();

 private:
  std::atomic<std::int64_t> limit_us_{10'000};
  mutable base::Mutex mutex_;
  std::deque<SlowCall> calls_ SEMEL_GUARDED_BY(mutex_);  // the newest first
  std::uint64_t next_id_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t length_ SEMEL_GUARDED_BY(mutex_) = 128;
};

}  // namespace semel::net
