#include "net/server/socket_names.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace semel::net {

namespace {

std::string name_of(const sockaddr_storage& address, socklen_t size) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return std::string{text} + ':' + std::to_string(ntohs(in.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    return '[' + std::string{text} + "]:" + std::to_string(ntohs(in.sin6_port));
  }
  if (address.ss_family == AF_UNIX) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(address);
    constexpr std::size_t before = offsetof(sockaddr_un, sun_path);
    const std::size_t room = size > before ? size - before : 0;
    return std::string{local.sun_path, strnlen(local.sun_path, room)} + ":0";
  }
  return "?:0";
}

}  // namespace

std::string local_name(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "?:0";
  return name_of(address, size);
}

std::string remote_name(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "?:0";
  // A client has not bound its end of a Unix socket; the server's end names it.
  return address.ss_family == AF_UNIX ? local_name(socket) : name_of(address, size);
}

unsigned short port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

}  // namespace semel::net
