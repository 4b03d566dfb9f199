// Descriptors in the epoll set of an io thread that are no connections: listeners. On that thread,
// or before it starts.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "net/server/waker.hpp"
#include "semel/result.hpp"

namespace semel::net {

class WatchedDescriptors {
 public:
  /// The set; before the first call.
  void use(int epoll) noexcept { epoll_ = epoll; }

  /// Calls `ready` each round in which `descriptor` is readable and switched on. The returned
  /// number is for the two calls below, and is reused after forget(). Errors: no_thread (the system
  /// watches no more descriptors, or not this one).
  [[nodiscard]] Result<std::size_t> watch(int descriptor, std::function<void()> ready);
  void set(std::size_t index, bool on);
  void forget(std::size_t index) noexcept;

  /// Whether an event of the set with this name is for call().
  [[nodiscard]] static bool is_of_this(ConnectionName name) noexcept { return (name & bit) != 0; }
  void call(ConnectionName name) const;

 private:
  struct Watched {
    int descriptor = -1;  // less than 0: none
    std::function<void()> ready{};
  };
  static constexpr ConnectionName bit = ConnectionName{1} << 63;

  int epoll_ = -1;
  std::vector<Watched> watched_;
};

/// Adds a descriptor to an epoll set, to be told of input. False: errno says why.
[[nodiscard]] bool add_to(int epoll, int descriptor, ConnectionName name) noexcept;

}  // namespace semel::net
