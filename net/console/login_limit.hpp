// Limits login attempts, by address and in all. An attempt with the right password counts as well,
// so that an attacker learns nothing from a refusal. The price: guesses from one address delay
// logins from it by up to console_limits::try_of_address_after.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "net/console/console_limits.hpp"
#include "semel/types.hpp"

namespace semel::net {

class LoginLimit {
 public:
  /// Takes one try of `address` ("127.0.0.1:4711", "[2001:db8::1]:4711"; of IPv6 the first 64 bits
  /// count). Zero: a try was taken; else the time until the next try, and none was taken.
  [[nodiscard]] Millis take(std::string_view address, Timestamp now);
  [[nodiscard]] std::size_t addresses() const noexcept { return by_address_.size(); }

 private:
  /// Tries come back with time; kept as the time at which all are back.
  struct Tries {
    Timestamp full_at{};
  };
  [[nodiscard]] static Millis wait_of(const Tries& tries, std::size_t most, Millis each,
                                      Timestamp now) noexcept;
  static void use(Tries& tries, Millis each, Timestamp now) noexcept;
  [[nodiscard]] Tries& tries_of(std::string_view address, Timestamp now);

  std::map<std::string, Tries, std::less<>> by_address_;
  Tries others_;  // of addresses that have no room above
  Tries all_;
};

}  // namespace semel::net
