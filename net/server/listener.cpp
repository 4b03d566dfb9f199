#include "net/server/listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/server/socket_names.hpp"

namespace semel::net {

namespace {

using boost::asio::ip::tcp;

Error listen_error(std::string text) {
  return {ErrorCode::bad_option, std::move(text)};
}

/// The error of the call on `where`, from errno.
Error refused(std::string_view what, std::string_view where) {
  return listen_error(std::string{what} + ' ' + std::string{where} + ": " + std::strerror(errno));
}

/// The listener of `present` on that address, if there is one.
SharedListener found_in(const Listeners& present, const std::string& address, Transport transport,
                        std::uint16_t port) {
  for (const SharedListener& each : present.all) {
    const bool is_it = each->transport == transport && each->address == address;
    if (is_it && port != 0 && each->port == port) return each;
  }
  return nullptr;
}

Status listen_tcp(const ServerOptions& options, const std::string& address, Transport transport,
                  std::uint16_t& port, const Listeners& present, Listeners& listeners) {
  if (SharedListener open = found_in(present, address, transport, port)) {
    listeners.all.push_back(std::move(open));
    return Done{};
  }
  boost::system::error_code error;
  const tcp::endpoint endpoint{boost::asio::ip::make_address(address, error), port};
  if (error) return listen_error("bind '" + address + "': not an IPv4 or IPv6 address");
  const std::string where = address + " port " + std::to_string(port);
  const int family = endpoint.protocol().family();
  Descriptor socket{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket) return refused("socket for", where);
  const int on = 1;
  // A restarted server must not wait until the system forgets the last one's connections.
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
    return refused("bind", where);
  }
  if (::listen(socket.get(), options.backlog) != 0) return refused("listen on", where);
  port = port_of(socket.get());  // further addresses share what the first one was given
  listeners.all.push_back(std::make_shared<Listener>(Listener{
      .socket = std::move(socket), .transport = transport, .address = address, .port = port}));
  return Done{};
}

/// Removes a socket at `path` that no process listens on. Any other file is left and refused.
Status clear_path(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return Done{};
  if (!S_ISSOCK(found.st_mode))
    return listen_error("Unix socket '" + path + "': there is another file");
  Descriptor probe{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(probe.get(), name, sizeof address) == 0 || errno == EAGAIN) {
    return listen_error("Unix socket '" + path + "': another process listens there");
  }
  if (::unlink(path.c_str()) != 0) return refused("Unix socket", path);
  return Done{};
}

Status listen_unix(const ServerOptions& options, Listeners& listeners) {
  const std::string& path = options.unix_path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return listen_error("Unix socket '" + path + "' has " + std::to_string(path.size()) +
                        " bytes; the limit is " + std::to_string(sizeof address.sun_path - 1));
  }
  path.copy(address.sun_path, path.size());
  SEMEL_CHECK(clear_path(path, address));
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket) return refused("Unix socket", path);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  std::string copy = path;  // no memory is needed once there is a file
  if (::bind(socket.get(), name, sizeof address) != 0) return refused("Unix socket", path);
  SocketFile file{std::move(copy)};
  // Clients cannot connect before listen(), so none gets in under the mode that bind() gave it.
  if (::chmod(path.c_str(), options.unix_mode) != 0 ||
      ::listen(socket.get(), options.backlog) != 0) {
    return refused("Unix socket", path);
  }
  listeners.all.push_back(std::make_shared<Listener>(Listener{
      .socket = std::move(socket), .transport = Transport::unix_socket, .file = std::move(file)}));
  return Done{};
}

Result<Listeners> listen_on_ports(const ServerOptions& options, const Listeners& present) {
  Listeners opened;
  opened.port = options.port.value_or(0);
  opened.tls_port = options.tls_port.value_or(0);
  if (options.port) {
    for (const std::string& address : options.addresses) {
      SEMEL_CHECK(listen_tcp(options, address, Transport::tcp, opened.port, present, opened));
    }
  }
  if (options.tls_port) {
    for (const std::string& address : options.addresses) {
      SEMEL_CHECK(listen_tcp(options, address, Transport::tls, opened.tls_port, present, opened));
    }
  }
  return opened;
}

}  // namespace

void SocketFile::remove() noexcept {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<Listeners> open_listeners(const ServerOptions& options) {
  SEMEL_TRY(opened, listen_on_ports(options, {}));
  // Last, so that a refused port leaves no file behind.
  if (!options.unix_path.empty()) {
    SEMEL_CHECK(listen_unix(options, opened));
  }
  return opened;
}

namespace {

/// Whether it listens on a wanted port, but on an unwanted address.
bool may_be_in_the_way(const Listener& listener, const ServerOptions& options) {
  if (listener.transport == Transport::unix_socket) return false;
  const bool is_wanted = std::find(options.addresses.begin(), options.addresses.end(),
                                   listener.address) != options.addresses.end();
  const auto& port = listener.transport == Transport::tls ? options.tls_port : options.port;
  return !is_wanted && port && *port == listener.port;
}

/// Reopens a listener in the place of `listener`, which has been closed.
Status listen_again(const ServerOptions& options, SharedListener& listener) {
  Listeners again;
  std::uint16_t port = listener->port;
  SEMEL_CHECK(listen_tcp(options, listener->address, listener->transport, port, {}, again));
  listener = std::move(again.all.front());
  return Done{};
}

}  // namespace

Status change_listeners(const ServerOptions& options, Listeners& present) {
  auto opened = listen_on_ports(options, present);
  if (!opened) {
    // A listener to be removed may block a new one, as 127.0.0.1 blocks all addresses of the same
    // port. Closing it resets connections that are not accepted yet, and the system may give its
    // port away; so it is reopened if it was not the cause.
    std::vector<SharedListener*> stopped;
    for (SharedListener& each : present.all) {
      if (!may_be_in_the_way(*each, options)) continue;
      if (::shutdown(each->socket.get(), SHUT_RD) == 0) stopped.push_back(&each);
    }
    if (!stopped.empty()) opened = listen_on_ports(options, present);
    if (!opened) {
      std::string detail = opened.error().detail;
      for (SharedListener* const each : stopped) {
        const Status again = listen_again(options, *each);
        if (!again) detail += "; and no more: " + again.error().detail;
      }
      return listen_error(std::move(detail));
    }
  }
  for (const SharedListener& each : present.all) {
    if (each->transport == Transport::unix_socket) opened->all.push_back(each);
  }
  present = *std::move(opened);
  return Done{};
}

}  // namespace semel::net
