// One TCP connection, with TLS or without: what Beast and Asio read from and write to.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "gateway/config/settings.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;
using beast::error_code;
using tcp = asio::ip::tcp;

/// `auto [error, bytes] = co_await operation(.., no_throw)`.
inline constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

/// A body is read and passed on in steps of this size.
inline constexpr std::size_t body_step_bytes = std::size_t{16} * 1024;

/// Used by one thread. expires_after() of the TCP stream bounds every operation, also of TLS.
class Stream {
 public:
  using executor_type = beast::tcp_stream::executor_type;

  explicit Stream(tcp::socket socket) : plain_(std::in_place, std::move(socket)) {}
  Stream(tcp::socket socket, asio::ssl::context& tls)
      : secure_(std::in_place, std::move(socket), tls) {}

  [[nodiscard]] beast::tcp_stream& tcp_layer() noexcept {
    return secure_ ? secure_->next_layer() : *plain_;
  }
  /// Null: without TLS.
  [[nodiscard]] beast::ssl_stream<beast::tcp_stream>* tls_layer() noexcept {
    return secure_ ? &*secure_ : nullptr;
  }
  [[nodiscard]] executor_type get_executor() noexcept { return tcp_layer().get_executor(); }
  void expires_after(Millis time) { tcp_layer().expires_after(time); }
  /// Whether TLS holds bytes that were received and not read. Without TLS they are in the socket.
  [[nodiscard]] bool has_unread() noexcept;
  void close() noexcept {
    error_code ignored;
    tcp_layer().socket().close(ignored);
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (secure_) return secure_->async_read_some(buffers, std::forward<Token>(token));
    return plain_->async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (secure_) return secure_->async_write_some(buffers, std::forward<Token>(token));
    return plain_->async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  std::optional<beast::tcp_stream> plain_;
  std::optional<beast::ssl_stream<beast::tcp_stream>> secure_;
};

/// The TLS context of new connections; replaced when certificates are reloaded. Thread-safe.
class CurrentTls {
 public:
  [[nodiscard]] std::shared_ptr<asio::ssl::context> get() const {
    const base::MutexLock lock{mutex_};
    return tls_;
  }
  /// The old context lives until its last connection has ended.
  void set(std::shared_ptr<asio::ssl::context> tls) {
    const base::MutexLock lock{mutex_};
    tls_ = std::move(tls);
  }

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<asio::ssl::context> tls_ SEMEL_GUARDED_BY(mutex_);
};

/// Checks that all files of the TLS settings exist and match each other: a line for each error.
[[nodiscard]] std::vector<std::string> check_tls_files(const Settings& settings);
/// TLS for clients: 1.2 and 1.3, HTTP/1.1 by ALPN. None: plain HTTP. Errors: bad_option (names the
/// file).
[[nodiscard]] Result<std::shared_ptr<asio::ssl::context>> client_tls(const Settings& settings);
/// TLS to the upstream, whose certificate and name are verified. None: http. Errors: bad_option.
[[nodiscard]] Result<std::shared_ptr<asio::ssl::context>> upstream_tls(const Settings& settings);
/// TLS to the nodes of the store, which are verified. None: plain TCP. Errors: bad_option.
[[nodiscard]] Result<std::shared_ptr<asio::ssl::context>> node_tls(const NodeSettings& node);
/// Whether certificates or versions do not match, so that a retry cannot help. False for a
/// connection that broke. With TLS 1.3 the first read reports a server's refusal.
[[nodiscard]] bool is_refused_by_tls(const error_code& error) noexcept;
/// To be called before the handshake: the name that the certificate must have.
[[nodiscard]] bool expect_name(Stream& stream, const std::string& host, bool is_verified);

}  // namespace semel::gateway
