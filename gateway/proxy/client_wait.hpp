// How long an exchange has waited for its client, so that the slowest client gives up its
// connection when another needs it. Otherwise clients that send a byte now and then would hold all
// connections.
#pragma once

#include <algorithm>

#include "base/stopwatch.hpp"
#include "gateway/shared/stream.hpp"

namespace semel::gateway {

/// Belongs to one connection of a client. Used by one thread.
class ClientWait {
 public:
  /// The stream must live as long as this.
  explicit ClientWait(Stream& client) noexcept : client_(client) {}
  ClientWait(const ClientWait&) = delete;
  ClientWait& operator=(const ClientWait&) = delete;

  /// Counts the wait while it lives; nested ones count once.
  class Now {
   public:
    explicit Now(ClientWait& wait) noexcept : wait_(wait) {
      if (wait_.depth_++ == 0) wait_.since_.restart();
    }
    ~Now() {
      if (--wait_.depth_ == 0) wait_.total_ += wait_.since_.passed();
    }
    Now(const Now&) = delete;
    Now& operator=(const Now&) = delete;

   private:
    ClientWait& wait_;
  };

  /// Begins the next part of the dialogue: the head of a request, or the exchange behind it.
  void restart() noexcept {
    total_ = Millis{0};
    since_.restart();
  }
  /// Ends the exchange with an error, and its connection.
  void end() noexcept {
    is_ended_ = true;
    client_.close();
  }
  /// The slower of the two. Null if there is only `other` and it is not slow: it is not waiting
  /// now, or has waited for less than a second.
  [[nodiscard]] static ClientWait* slower_of(ClientWait* one, ClientWait& other) noexcept {
    constexpr Millis slow{1'000};
    const Millis least = one == nullptr ? slow : std::max(slow, one->passed());
    return other.passed() >= least ? &other : one;
  }

 private:
  [[nodiscard]] Millis passed() const noexcept {
    return depth_ == 0 || is_ended_ ? Millis{0} : total_ + since_.passed();
  }

  Stream& client_;
  base::CoarseStopwatch since_{};
  Millis total_{0};
  unsigned depth_ = 0;
  bool is_ended_ = false;
};

}  // namespace semel::gateway
