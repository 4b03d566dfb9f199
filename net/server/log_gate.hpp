// Log lines about single connections: clients cause them, so their rate is bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/server/options.hpp"

namespace semel::net {

/// Used by one thread.
class LogGate {
 public:
  static constexpr unsigned lines_max = 10;  ///< a second
  static constexpr Millis period{1000};

  explicit LogGate(const ServerHooks& hooks) noexcept : hooks_(hooks) {}

  void line(LogLevel level, std::string_view text, Timestamp now) {
    if (!hooks_.log) return;
    renew(now);
    if (++lines_ <= lines_max) hooks_.log(level, text);
  }
  /// Reports how many lines were omitted when their second is over.
  void renew(Timestamp now) {
    if (now - since_ < period) return;
    if (lines_ > lines_max && hooks_.log) {
      hooks_.log(LogLevel::warning,
                 std::to_string(lines_ - lines_max) + " more lines about connections left out");
    }
    lines_ = 0;
    since_ = now;
  }

 private:
  const ServerHooks& hooks_;
  Timestamp since_{};
  std::uint64_t lines_ = 0;
};

}  // namespace semel::net
