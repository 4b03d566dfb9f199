// One connection of an admin port: waits for a first byte, reads a request, responds, and waits
// again. On the thread of the server.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "base/giving_way.hpp"
#include "base/stopwatch.hpp"
#include "net/admin/admin_guard.hpp"
#include "net/admin/admin_http.hpp"
#include "net/admin/admin_route.hpp"

namespace semel::net::admin {

class Session : public std::enable_shared_from_this<Session> {
 public:
  /// Constant for all sessions of a server. All of it must outlive the sessions.
  struct Terms {
    const AdminSite& site;
    const AdminGuard& guard;
    std::chrono::milliseconds request_within;
    std::chrono::milliseconds idle_within;
    std::function<void(const Session*)> ended;  ///< destroys the server's pointer to it
  };

  Session(const Terms& terms, boost::asio::ip::tcp::socket socket);

  /// Waits for requests until either side ends the connection.
  void start() noexcept {
    step([this] { wait(); });
  }
  void end() noexcept;
  [[nodiscard]] base::TakenPlace place() const noexcept { return {doing_, since_.passed()}; }

 private:
  using Doing = base::TakenPlace::Doing;

  /// A step of the conversation. Without memory only this connection ends.
  template <class Work>
  void step(Work&& work) noexcept {
    try {
      work();
    } catch (const std::exception&) {
      end();
    }
  }
  void begin(Doing doing) noexcept {
    doing_ = doing;
    since_.restart();
  }
  void wait();
  void read();
  /// The header has arrived.
  void admit();
  void read_body();
  void handle();
  void fail(boost::beast::error_code error);
  void refuse(AdminResponse response);
  void send(AdminResponse response);
  void write(bool stays);
  void ignore(std::size_t bytes_so_far);

  const Terms& terms_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  // Of the request that is being read; none before its header has arrived.
  std::optional<AdminRequest> request_;
  const AdminRoute* route_ = nullptr;  // null also if it has been refused
  HttpResponse response_;
  Doing doing_ = Doing::awaits;
  base::Stopwatch since_;
};

}  // namespace semel::net::admin
