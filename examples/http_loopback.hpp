// HTTP on loopback, as little as an example needs: a server with a thread for each connection and
// one request on it, and a client that waits for its answer. A server for the Internet has
// deadlines and limits; this one is asked by its own program only.
#pragma once

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace loopback {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using net::ip::tcp;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

inline std::string text(beast::string_view view) {
  return {view.data(), view.size()};
}

inline Response answer(int status, std::string body, const char* type = "application/json") {
  Response response{static_cast<http::status>(status), 11};
  response.set(http::field::content_type, type);
  response.body() = std::move(body);
  return response;
}

/// RFC 9457.
inline Response problem(int status, const std::string& title) {
  return answer(status,
                R"({"type":"about:blank","status":)" + std::to_string(status) + R"(,"title":")" +
                    title + R"("})",
                "application/problem+json");
}

/// On a free port; answers until it ends.
class Server {
 public:
  using Handler = std::function<Response(const Request&)>;
  explicit Server(Handler handler) : handler_(std::move(handler)) {
    accept();
    thread_ = std::thread{[this] { context_.run(); }};
  }
  ~Server() {
    context_.stop();
    thread_.join();
    for (std::thread& each : connections_) each.join();
  }
  [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

 private:
  void accept() {
    acceptor_.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return;
      connections_.emplace_back(&Server::serve, this, std::move(socket));
      accept();
    });
  }
  void serve(tcp::socket socket) {
    beast::error_code error;
    beast::flat_buffer buffer;
    Request request;
    http::read(socket, buffer, request, error);
    if (error) return;
    Response response = handler_(request);
    response.keep_alive(false);
    response.prepare_payload();
    http::write(socket, response, error);
    socket.shutdown(tcp::socket::shutdown_send, error);
  }

  Handler handler_;
  net::io_context context_;
  tcp::acceptor acceptor_{context_, {net::ip::address_v4::loopback(), 0}};
  std::vector<std::thread> connections_;
  std::thread thread_;
};

inline Response ask(const Server& server, Request request) {
  net::io_context context;
  tcp::socket socket{context};
  socket.connect(server.endpoint());
  request.set(http::field::host, "localhost");
  request.prepare_payload();
  http::write(socket, request);
  beast::flat_buffer buffer;
  Response response;
  http::read(socket, buffer, response);
  return response;
}

}  // namespace loopback
