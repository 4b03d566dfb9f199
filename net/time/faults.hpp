// Faults that a test has planted with SEMEL.FAULT: which request is delayed, refused or cut off.
//
// Goals: a request costs one load while there are none; which request a fault acts on depends only
// on the order of requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "semel/types.hpp"

namespace semel::net {

enum class FaultAction : std::uint8_t {
  delay,       ///< the request runs later
  error,       ///< it does not run; an error is its reply
  drop,        ///< it does not run; the connection is closed
  drop_reply,  ///< it runs; the connection is closed instead of the reply
};

/// "delay", "error", "drop", "drop-reply"
[[nodiscard]] std::string_view name_of(FaultAction action) noexcept;

struct FaultTerms {
  FaultAction action{};
  Millis delay{0};          ///< of a delay
  std::string error{};      ///< of an error: the whole reply behind its dash
  std::string command{};    ///< glob for the name, in small letters; empty: see Faults::next
  std::string key{};        ///< glob that one of its keys matches; empty: any, and none
  std::uint64_t nth = 1;    ///< the first of the matching requests that it acts on; at least 1
  std::uint64_t count = 1;  ///< how many of them in a row; 0: all that follow
};

/// A fault with its counts.
struct PlantedFault {
  std::uint64_t id = 0;
  FaultTerms fault{};
  std::uint64_t seen = 0;   ///< matching requests
  std::uint64_t acted = 0;  ///< of these, those that it acted on
};

/// What next() asks about.
struct FaultRequest {
  std::string_view command;  ///< small letters; of a subcommand "parent|name"
  bool needs_name = false;   ///< only a fault that names commands may act on it
  std::span<const std::string_view> keys;
};

/// Safe from any thread; calls block on one another.
class Faults {
 public:
  static constexpr std::size_t count_max = 128;

  /// Whether there may be any. A fault is seen at the latest by requests that are sent after the
  /// reply of the command that added it.
  [[nodiscard]] bool any() const noexcept {
    // mo: relaxed: a hint; next() decides under the lock, and the connection that is sent the
    // reply of SEMEL.FAULT orders what it does next behind it.
    return any_.load(std::memory_order_relaxed);
  }
  /// The number of the new fault, from 1. None: there are count_max.
  [[nodiscard]] std::optional<std::uint64_t> add(FaultTerms fault);
  /// Of one fault, or of all with 0: how many there were.
  std::size_t clear(std::uint64_t id);
  [[nodiscard]] std::vector<PlantedFault> all() const;

  /// Counts the request at each fault that it matches, and returns the first that acts on it. A
  /// fault without `command` matches all requests but those with needs_name.
  [[nodiscard]] std::optional<FaultTerms> next(const FaultRequest& request);

 private:
  mutable base::Mutex mutex_;
  std::vector<PlantedFault> faults_ SEMEL_GUARDED_BY(mutex_);
  std::uint64_t last_id_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> any_{false};  // whether faults_ has any
};

}  // namespace semel::net
