// Sockets that listen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/server/descriptor.hpp"
#include "net/server/options.hpp"

namespace semel::net {

struct Listener {
  Descriptor socket;
  Transport transport;
};

/// What was opened; with a port of 0, which one it became.
struct Listeners {
  std::vector<Listener> all{};
  std::uint16_t port = 0;
  std::uint16_t tls_port = 0;
};

/// None: `listeners` has one for each address and port, and for the Unix socket. Otherwise what was
/// refused; nothing stays open.
[[nodiscard]] std::optional<std::string> open_listeners(const ServerOptions& options,
                                                        Listeners& listeners);

}  // namespace semel::net
