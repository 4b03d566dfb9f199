#include "tests/support/socket.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace semel::tests {

namespace {

int connected(const sockaddr* address, socklen_t bytes) {
  const int descriptor = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  if (descriptor >= 0 &&
      ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
      ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
      ::connect(descriptor, address, bytes) == 0) {
    return descriptor;
  }
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  throw std::system_error{error, std::generic_category(), "cannot connect"};
}

}  // namespace

void Stream::send(std::string_view bytes) {
  if (!try_send(bytes)) throw std::runtime_error{"the connection takes no more bytes"};
}

std::string Stream::read(std::size_t count) {
  std::string bytes;
  while (bytes.size() < count) {
    if (receive(bytes, count - bytes.size()) != Received::bytes) break;
  }
  return bytes;
}

std::string Stream::line() {
  std::string text;
  while (!text.ends_with('\n')) {
    if (receive(text, 1) != Received::bytes) break;
  }
  return text;
}

std::optional<std::string> Stream::read_until(std::string_view end) {
  std::string bytes;
  while (!bytes.ends_with(end)) {
    if (receive(bytes) != Received::bytes) return std::nullopt;
  }
  return bytes;
}

std::string Stream::read_to_end() {
  std::string all;
  for (;;) {
    switch (receive(all)) {
      case Received::bytes:
        break;
      case Received::end:
        return all;
      case Received::timeout:
        return all + "(open)";
    }
  }
}

std::string Stream::ask(std::string_view request) {
  send(request);
  return line();
}

std::string Stream::ask(std::string_view request, std::size_t count) {
  send(request);
  return read(count);
}

Socket::Socket(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  descriptor_ = connected(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Socket::Socket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) throw std::invalid_argument{"too long: " + path};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  descriptor_ = connected(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  close();
}

bool Socket::try_send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Stream::Received Socket::receive(std::string& bytes, std::size_t count) {
  char chunk[64 * 1024];
  const ssize_t got = ::recv(descriptor_, chunk, std::min(count, sizeof chunk), 0);
  if (got <= 0) return got < 0 && errno == EAGAIN ? Received::timeout : Received::end;
  bytes.append(chunk, static_cast<std::size_t>(got));
  return Received::bytes;
}

void Socket::end_sending() {
  ::shutdown(descriptor_, SHUT_WR);
}

void Socket::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace semel::tests
