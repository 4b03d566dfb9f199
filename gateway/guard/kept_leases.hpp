// The leases that an engine's watchdog renews for requests under way. Shared with the requests: one
// that is cut off at a forced end gives its lease back after the engine has ended.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/mutex.hpp"
#include "semel/patterns/watchdog.hpp"
#include "semel/types.hpp"

namespace semel::gateway {

struct Route;
struct Work;

/// Thread-safe.
class KeptLeases {
 public:
  /// Renewed by `guard`'s watchdog from now on, until stop() or clear().
  void keep(const Work& work, Watchdog::Guard&& guard);
  /// Needs no memory: without memory, too, no lease may be renewed forever.
  void stop(const Work& work);
  /// Stops all renewals. After that keep() stops at once.
  void clear();

 private:
  /// Two owners of a key may be here at a time: one that has lost its lease, and its successor.
  using Name = std::tuple<const Route*, Epoch, std::string>;

  base::Mutex mutex_;
  std::map<Name, Watchdog::Guard, std::less<>> kept_ SEMEL_GUARDED_BY(mutex_);
  bool is_closed_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::gateway
