// Words: a client sends bytes to the admin port and reads until the server closes, or as much as
// an answer has.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include "tests/support/catch.hpp"

#include "net/admin/admin_server.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

class AdminClient {
 public:
  explicit AdminClient(std::uint16_t port) : socket_(port) {}

  void send(const std::string& bytes) { socket_.send(bytes); }
  void send_if_open(const std::string& bytes) { static_cast<void>(socket_.try_send(bytes)); }
  /// False: the server closed instead. Takes the answer, which is all that has come.
  [[nodiscard]] bool is_answered() { return socket_.read_until("ok\n").has_value(); }
  /// What comes until the server closes.
  [[nodiscard]] std::string rest() { return std::exchange(received_, {}) + socket_.read_to_end(); }
  /// True: the server closed, and had sent nothing.
  [[nodiscard]] bool is_closed() { return rest().empty(); }
  /// One answer with its body, the connection left open.
  [[nodiscard]] std::string answer(bool has_body = true) {
    std::size_t head = 0;
    while ((head = received_.find("\r\n\r\n")) == std::string::npos) receive();
    std::size_t bytes = head + 4;
    if (has_body) {
      const std::size_t length = received_.find("Content-Length: ");
      REQUIRE(length < head);
      bytes += std::stoul(received_.substr(length + 16));
    }
    while (received_.size() < bytes) receive();
    std::string all = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return all;
  }

 private:
  void receive() { REQUIRE(socket_.receive(received_) == Stream::Received::bytes); }

  Socket socket_;
  std::string received_;
};

struct Served {
  /// The common routes, and `more`.
  explicit Served(
      net::AdminOptions options = {}, net::AdminRoute more = {},
      std::function<Status()> ready = [] { return Done{}; }) {
    net::AdminSite site{
        .routes = net::common_routes([] { return std::string{"semel_up 1\n"}; }, std::move(ready))};
    if (more.handle) site.routes.push_back(std::move(more));
    server = net::AdminServer::start(options, std::move(site)).value();
    port = server->endpoints().front().port;
  }
  [[nodiscard]] std::string ask(const std::string& bytes) const {
    AdminClient client{port};
    client.send(bytes);
    return client.rest();
  }
  /// One request on a connection of its own.
  [[nodiscard]] std::string ask(const std::string& method, const std::string& path) const {
    return ask(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }

  std::unique_ptr<net::AdminServer> server;
  std::uint16_t port = 0;
};

inline int status_of(const std::string& answer) {
  REQUIRE(answer.starts_with("HTTP/1."));
  return std::stoi(answer.substr(9, 3));
}

inline std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace semel::tests
