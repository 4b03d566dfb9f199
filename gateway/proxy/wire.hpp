// One connection, plain or TLS, as a stream of Beast's. Used by coroutines of one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <memory>
#include <string>
#include <utility>

#include "semel/types.hpp"

namespace semel::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Tcp = asio::ip::tcp;

class Wire {
 public:
  explicit Wire(Tcp::socket socket) : tcp_(std::move(socket)) {}
  explicit Wire(const asio::any_io_executor& executor) : tcp_(executor) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  using executor_type = beast::tcp_stream::executor_type;
  [[nodiscard]] executor_type get_executor() noexcept { return tcp_.get_executor(); }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return tls_ ? tls_->async_read_some(buffers, std::forward<Token>(token))
                : tcp_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return tls_ ? tls_->async_write_some(buffers, std::forward<Token>(token))
                : tcp_.async_write_some(buffers, std::forward<Token>(token));
  }

  [[nodiscard]] beast::tcp_stream& tcp() noexcept { return tcp_; }
  /// What follows fails if it is not done by then.
  void close_in(Millis time) { tcp_.expires_after(time); }
  void close_never() { tcp_.expires_never(); }
  void close() noexcept { tcp_.close(); }

  [[nodiscard]] asio::awaitable<void> accept_tls(asio::ssl::context& context) {
    tls_ = std::make_unique<beast::ssl_stream<beast::tcp_stream&>>(tcp_, context);
    co_await tls_->async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
  }
  /// `host`: the certificate must be of it.
  [[nodiscard]] asio::awaitable<void> connect_tls(asio::ssl::context& context,
                                                  const std::string& host) {
    tls_ = std::make_unique<beast::ssl_stream<beast::tcp_stream&>>(tcp_, context);
    SSL* const ssl = tls_->native_handle();
    const bool is_number = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
    const bool is_set = is_number || (SSL_set1_host(ssl, host.c_str()) == 1 &&
                                      SSL_set_tlsext_host_name(ssl, host.c_str()) == 1);
    // Without the name any certificate would do.
    if (!is_set)
      throw boost::system::system_error{
          asio::error::make_error_code(asio::error::invalid_argument)};
    co_await tls_->async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
  }
  /// Tells the other end that nothing more comes. Its reads go on.
  [[nodiscard]] asio::awaitable<void> finish() {
    boost::system::error_code ignored;
    if (tls_) {
      co_await tls_->async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
    }
    tcp_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
  }
  /// Whether the other end has closed it, or has sent what nobody asked for.
  [[nodiscard]] bool is_stale() {
    char byte;
    boost::system::error_code error;
    Tcp::socket& socket = tcp_.socket();
    if (!socket.is_open()) return true;
    socket.non_blocking(true, error);
    if (error) return true;
    socket.receive(asio::buffer(&byte, 1), Tcp::socket::message_peek, error);
    return error != asio::error::would_block;
  }
  [[nodiscard]] std::string peer() const {
    boost::system::error_code error;
    const auto remote = tcp_.socket().remote_endpoint(error);
    return error ? std::string{} : remote.address().to_string();
  }

 private:
  beast::tcp_stream tcp_;
  std::unique_ptr<beast::ssl_stream<beast::tcp_stream&>> tls_;  // null: plain
};

}  // namespace semel::gateway
