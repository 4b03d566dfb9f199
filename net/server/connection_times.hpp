// Since when a connection has been what it may not be for long: silent, within a request, not
// logged in, or behind in reading. Pure; `now` is an argument.
#pragma once

#include <cstdint>

#include "net/server/session.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// Runs while a condition holds.
class Since {
 public:
  void set(bool holds, Timestamp now) noexcept {
    if (!holds) {
      at_ = no_end;
    } else if (at_ == no_end) {
      at_ = now;
    }
  }
  void restart(Timestamp now) noexcept { at_ = now; }
  [[nodiscard]] bool holds() const noexcept { return at_ != no_end; }
  /// The condition has held for longer than `limit`; 0: without limit.
  [[nodiscard]] bool is_over(Millis limit, Timestamp now) const noexcept {
    return holds() && limit > Millis{0} && now - at_ > limit;
  }

 private:
  Timestamp at_ = no_end;
};

struct ConnectionTimes {
  explicit ConnectionTimes(Timestamp now) noexcept {
    stage.restart(now);
    silent.restart(now);
  }

  /// A request's time runs from its first byte, and stops while the session waits.
  void watch_request(const SessionInput& input, bool stands, Timestamp now) noexcept {
    const bool is_partial = input.held != 0 && !stands;
    partial.set(is_partial, now);
    if (is_partial && input.requests != requests) partial.restart(now);
    requests = input.requests;
  }
  /// The server reads again, and has not read for a while.
  void resume(Timestamp now) noexcept {
    if (partial.holds()) partial.restart(now);
  }

  Since stage;                 ///< the handshake or, later, the closing
  Since silent;                ///< no byte has moved, either way
  Since partial;               ///< a request has begun and is not whole
  Since unauthenticated;       ///< it must log in, and has not
  Since over_soft;             ///< more output is pending than the soft limit
  std::uint64_t requests = 0;  ///< that had run when `partial` was last looked at
};

}  // namespace semel::net
