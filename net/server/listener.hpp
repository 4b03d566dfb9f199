// Sockets that listen.
#pragma once

#include <cstdint>
#include <memory>
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
  std::string address{};   ///< empty: of a Unix socket
  std::uint16_t port = 0;  ///< that it has
};
using SharedListener = std::shared_ptr<const Listener>;

/// The listeners that were opened; for a port of 0, the port that the system chose.
struct Listeners {
  std::vector<SharedListener> all{};
  std::uint16_t port = 0;
  std::uint16_t tls_port = 0;
};

/// Opens one listener for each address and port, and one for the Unix socket. On an error none
/// stays open.
[[nodiscard]] Result<Listeners> open_listeners(const ServerOptions& options);
/// The same for a server that has the listeners `present`: wanted ones stay, and so does the Unix
/// socket. On an error `present` listens as before, possibly by other sockets. The caller closes
/// those that it no longer contains.
[[nodiscard]] Status change_listeners(const ServerOptions& options, Listeners& present);

}  // namespace semel::net
