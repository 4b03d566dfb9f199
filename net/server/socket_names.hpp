// Addresses of sockets as texts.
#pragma once

#include <string>

namespace semel::net {

/// "127.0.0.1:4711", "[::1]:4711", "/path:0"; "?:0" if the system reports no address.
[[nodiscard]] std::string local_name(int socket);
[[nodiscard]] std::string remote_name(int socket);
/// The port of a bound socket; 0: it has none.
[[nodiscard]] unsigned short port_of(int socket);

}  // namespace semel::net
