#include "net/ticks.hpp"

#include <chrono>

namespace semel::net {

std::int64_t SystemTicks::ns() const noexcept {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace semel::net
