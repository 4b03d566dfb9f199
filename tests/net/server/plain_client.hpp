// A blocking socket that gives up after a while.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include "tests/support/catch.hpp"

#include "net/server/descriptor.hpp"
#include "tests/net/server/line_peer.hpp"

namespace semel::tests {

class PlainClient {
 public:
  explicit PlainClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  explicit PlainClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      REQUIRE(sent > 0);
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  /// `count` bytes, or fewer: the other side has closed, or patience has ended.
  [[nodiscard]] std::string read(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t at = 0;
    while (at < count) {
      const ssize_t got = ::recv(socket_.get(), bytes.data() + at, count - at, 0);
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    bytes.resize(at);
    return bytes;
  }
  [[nodiscard]] std::string line() {
    std::string text;
    do {
      const std::string next = read(1);
      if (next.empty()) break;
      text += next;
    } while (text.back() != '\n');
    return text;
  }
  /// Everything up to the end; without one, what came is followed by "(open)".
  [[nodiscard]] std::string read_to_end() {
    std::string all;
    char room[16 * 1024];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), room, sizeof room, 0);
      if (got == 0 || (got < 0 && errno == ECONNRESET)) return all;
      if (got < 0) return all + "(open)";
      all.append(room, static_cast<std::size_t>(got));
    }
  }
  [[nodiscard]] std::string ask(std::string_view request) {
    send(request);
    return line();
  }
  void end_sending() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.reset(); }
  [[nodiscard]] int native() const noexcept { return socket_.get(); }

 private:
  void connect_to(const sockaddr* address, socklen_t size) {
    timeval time{};
    time.tv_sec = patience.count();
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    REQUIRE(::connect(socket_.get(), address, size) == 0);
  }

  net::Descriptor socket_;
};

}  // namespace semel::tests
