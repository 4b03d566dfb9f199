// A limit on bytes a second. Pure: the time comes in as an argument.
#pragma once

#include <algorithm>
#include <cstdint>

#include "semel/types.hpp"

namespace semel::storage {

/// Time that was not used is not made up for: after a pause the stream goes on at the same rate.
class BackupPace {
 public:
  /// 0: no limit.
  explicit BackupPace(std::uint64_t bytes_per_second) noexcept : rate_(bytes_per_second) {}

  /// `bytes` were moved, and it is `now`, counted from any fixed moment. Returns how long to wait
  /// before the next are moved.
  [[nodiscard]] Millis after(std::uint64_t bytes, Millis now) noexcept {
    if (rate_ == 0) return Millis{0};
    constexpr double ms_per_second = 1000;
    const double now_ms = static_cast<double>(now.count());
    free_ms_ = std::max(free_ms_, now_ms) +
               ms_per_second * static_cast<double>(bytes) / static_cast<double>(rate_);
    return Millis{static_cast<std::int64_t>(free_ms_ - now_ms)};
  }
  /// A piece takes a twentieth of a second at the rate, within bounds: the disk is never kept busy
  /// for long, and reading stays efficient.
  [[nodiscard]] std::size_t piece_bytes() const noexcept {
    constexpr std::uint64_t least = std::uint64_t{16} << 10;
    constexpr std::uint64_t most = std::uint64_t{256} << 10;
    return rate_ == 0 ? most : std::clamp(rate_ / 20, least, most);
  }

 private:
  const std::uint64_t rate_;
  double free_ms_ = 0;  // the bytes so far take until then
};

}  // namespace semel::storage
