// Sockets that listen.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/server/descriptor.hpp"
#include "net/server/options.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// The file of a Unix socket, removed at the end.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path) noexcept : path_(std::move(path)) {}
  ~SocketFile() { remove(); }
  SocketFile(SocketFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    remove();
    path_ = std::exchange(other.path_, {});
    return *this;
  }

 private:
  void remove() noexcept;
  std::string path_;  // empty: none
};

struct Listener {
  Descriptor socket;
  Transport transport;
  SocketFile file{};
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
