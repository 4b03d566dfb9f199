#include "tests/support/raw_client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace semel::tests {

std::string request_bytes(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return bytes;
}

RawClient::RawClient(const std::string& socket_path) {
  sockaddr_un address{};
  if (socket_path.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return;
  close(socket_);
  socket_ = -1;
}

RawClient::~RawClient() {
  if (socket_ >= 0) close(socket_);
}

bool RawClient::send_all(const std::string& bytes) const {
  return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool RawClient::receive(std::string& bytes) const {
  char room[16'384];
  const ssize_t got = recv(socket_, room, sizeof(room), 0);
  if (got <= 0) return false;
  bytes.append(room, static_cast<std::size_t>(got));
  return true;
}

bool RawClient::log_in(const std::string& name, const std::string& password) {
  std::string reply;
  if (!send_all(request_bytes({"AUTH", name, password}))) return false;
  while (!reply.ends_with("\r\n")) {
    if (!receive(reply)) return false;
  }
  return reply == "+OK\r\n";
}

std::string RawClient::call(const std::vector<std::string>& words) {
  const std::string marker = "end" + std::to_string(++calls_);
  if (!send_all(request_bytes(words) + request_bytes({"ECHO", marker}))) return {};
  const std::string end = "$" + std::to_string(marker.size()) + "\r\n" + marker + "\r\n";
  std::string reply;
  while (!reply.ends_with(end)) {
    if (!receive(reply)) return {};
  }
  reply.resize(reply.size() - end.size());
  return reply;
}

std::string RawClient::talk(const std::string& request, std::size_t bytes) {
  std::string reply;
  if (!send_all(request)) return reply;
  while (reply.size() < bytes) {
    pollfd readable{socket_, POLLIN, 0};
    if (poll(&readable, 1, 5'000) != 1 || !receive(reply)) break;
  }
  return reply;
}

}  // namespace semel::tests
