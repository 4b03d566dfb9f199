// Sockets that listen.
#pragma once

#include <string>
#include <vector>

#include "net/server/descriptor.hpp"
#include "net/server/options.hpp"
#include "semel/result.hpp"

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

/// Opens one listener for each address and port, and one for the Unix socket. With an error,
/// nothing stays open.
[[nodiscard]] Result<Listeners> open_listeners(const ServerOptions& options);

}  // namespace semel::net
