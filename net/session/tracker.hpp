// What CLIENT TRACKING has asked for on one connection. Filled in by net/session/tracking.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "net/session/client_handle.hpp"

namespace semel::net {

struct TrackingOptions {
  std::uint64_t redirect = 0;  ///< a client's number; 0: to the connection itself
  bool broadcasts = false;     ///< BCAST: changes of all keys with its prefixes
  bool opts_in = false;        ///< OPTIN: reads are remembered behind CLIENT CACHING YES
  bool opts_out = false;       ///< OPTOUT: .. unless behind CLIENT CACHING NO
  bool no_loop = false;        ///< NOLOOP: not of its own changes
};

/// A connection that tracks. Its thread alone changes it, under the mutex of Tracking, and may read
/// it without.
struct Tracker {
  std::shared_ptr<ClientHandle> handle;
  TrackingOptions options{};
  std::set<std::string, std::less<>> prefixes{};  ///< with BCAST
  std::size_t prefix_bytes = 0;
  bool caching = false;  ///< CLIENT CACHING, for the next command. Of its thread alone

  /// Whether the present command's reads are remembered.
  [[nodiscard]] bool remembers() const noexcept {
    if (options.broadcasts) return false;
    return options.opts_in ? caching : !(options.opts_out && caching);
  }
};

}  // namespace semel::net
