#include "tests/support/raw_client.hpp"

namespace semel::tests {

bool RawClient::log_in(const std::string& name, const std::string& password) {
  return socket_.try_send(request_bytes({"AUTH", name, password})) &&
         socket_.read_until("\r\n") == "+OK\r\n";
}

std::string RawClient::call(const Words& words) {
  const std::string marker = "end" + std::to_string(++calls_);
  if (!socket_.try_send(request_bytes(words) + request_bytes({"ECHO", marker}))) return {};
  const std::string end = "$" + std::to_string(marker.size()) + "\r\n" + marker + "\r\n";
  std::string reply = socket_.read_until(end).value_or(end);
  reply.resize(reply.size() - end.size());
  return reply;
}

std::string RawClient::talk(const std::string& request, std::size_t bytes) {
  std::string reply;
  if (!socket_.try_send(request)) return reply;
  while (reply.size() < bytes) {
    if (socket_.receive(reply) != Stream::Received::bytes) break;
  }
  return reply;
}

}  // namespace semel::tests
