// The bytes of requests and of replies, as a socket carries them.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace semel::tests {

using Words = std::vector<std::string>;

inline std::string request_of(const Words& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

/// A socket that says nothing of its own.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : socket_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// Everything that is answered to one request. An ECHO behind it tells where that ends.
  [[nodiscard]] std::string call(const Words& words) { return talk(request_of(words)); }
  /// The same of any bytes, after which an ECHO must be answered.
  [[nodiscard]] std::string talk(std::string bytes) {
    const std::string marker = "end" + std::to_string(++calls_);
    bytes += request_of({"ECHO", marker});
    REQUIRE(send(socket_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    const std::string end = "$" + std::to_string(marker.size()) + "\r\n" + marker + "\r\n";
    std::string reply;
    while (!reply.ends_with(end)) {
      char room[4096];
      const ssize_t got = recv(socket_, room, sizeof room, 0);
      REQUIRE(got > 0);
      reply.append(room, static_cast<std::size_t>(got));
    }
    reply.resize(reply.size() - end.size());
    return reply;
  }

  /// At least `bytes` bytes of what is answered, and what has come with them; less if no more comes
  /// for 5 s.
  [[nodiscard]] std::string plain(const std::string& request, std::size_t bytes) {
    REQUIRE(send(socket_, request.data(), request.size(), 0) ==
            static_cast<ssize_t>(request.size()));
    std::string reply;
    while (reply.size() < bytes) {
      char room[4096];
      pollfd readable{socket_, POLLIN, 0};
      if (poll(&readable, 1, 5'000) != 1) break;
      const ssize_t got = recv(socket_, room, sizeof room, 0);
      REQUIRE(got > 0);
      reply.append(room, static_cast<std::size_t>(got));
    }
    return reply;
  }

 private:
  const int socket_;
  std::uint64_t calls_ = 0;
};

}  // namespace semel::tests
