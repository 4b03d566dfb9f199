// The clock of a node that may follow another server: for what that server's stream does, nothing
// that has an end has ended yet.
//
// What a key's end means was decided where the stream comes from, and its end comes as a DEL. If
// this node judged by its own clock, a key that was renewed there a moment before its end could be
// gone here when the renewal arrives.
#pragma once

#include <cstdint>

#include "semel/clock.hpp"

namespace semel::net {

/// Another clock, except for threads within a Hold, where it stands before every end.
class HeldClock final : public Clock {
 public:
  /// `under` must outlive this; null: the system's.
  explicit HeldClock(const Clock* under = nullptr) noexcept : under_(under) {}

  [[nodiscard]] Timestamp now() const noexcept override {
    if (is_held) [[unlikely]]
      return Timestamp{Millis{1}};
    return under_ == nullptr ? system_.now() : under_->now();
  }
  /// Within a Hold too: absolute ends, and times that a value has, are as elsewhere.
  [[nodiscard]] std::int64_t unix_ms() const noexcept override {
    return under_ == nullptr ? system_.unix_ms() : under_->unix_ms();
  }
  [[nodiscard]] std::int64_t wall_offset_ms() const noexcept override {
    return under_ == nullptr ? system_.wall_offset_ms() : under_->wall_offset_ms();
  }

  /// While it lives, calls of this thread see every record that was not removed, and remove none
  /// for its end. A relative end would be counted from 1970 or so: none may be given.
  class Hold {
   public:
    explicit Hold(bool is_wanted = true) noexcept : before_(is_held) {
      is_held = is_held || is_wanted;
    }
    ~Hold() { is_held = before_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const bool before_;
  };

 private:
  static inline constinit thread_local bool is_held = false;

  const SystemClock system_;
  const Clock* const under_;
};

}  // namespace semel::net
