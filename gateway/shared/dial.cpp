#include "gateway/shared/dial.hpp"

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

namespace semel::gateway {
namespace {

Dialed not_dialed(const std::string& what, const error_code& error) {
  Dialed dialed;
  dialed.trouble = what + ": " + error.message();
  dialed.is_refused = is_refused_by_tls(error);
  return dialed;
}

}  // namespace

asio::awaitable<Dialed> dial(asio::io_context& io, const DialTarget& target) {
  // Shared with the timer's handler, which may run after this has ended.
  const auto resolver = std::make_shared<tcp::resolver>(io);
  asio::steady_timer deadline{io};
  deadline.expires_after(target.within);
  deadline.async_wait([resolver](error_code stopped) {
    if (!stopped) resolver->cancel();
  });
  auto [resolve_error, endpoints] =
      co_await resolver->async_resolve(target.host, target.port, no_throw);
  deadline.cancel();
  if (resolve_error) co_return not_dialed("resolving " + target.host, resolve_error);
  beast::tcp_stream opened{io};
  opened.expires_after(target.within);
  auto [error, endpoint] = co_await opened.async_connect(endpoints, no_throw);
  if (error) co_return not_dialed("connecting to " + target.host + ":" + target.port, error);
  static_cast<void>(endpoint);
  error_code ignored;
  opened.socket().set_option(tcp::no_delay{true}, ignored);
  tcp::socket socket = opened.release_socket();
  Dialed dialed;
  if (target.tls == nullptr) {
    dialed.stream.emplace(std::move(socket));
    co_return dialed;
  }
  dialed.stream.emplace(std::move(socket), *target.tls);
  if (!expect_name(*dialed.stream, target.host, target.is_verified)) {
    co_return not_dialed("TLS", error_code{asio::error::invalid_argument});
  }
  dialed.stream->expires_after(target.within);
  auto [tls_error] = co_await dialed.stream->tls_layer()->async_handshake(
      asio::ssl::stream_base::client, no_throw);
  if (tls_error) co_return not_dialed("TLS with " + target.host, tls_error);
  co_return dialed;
}

}  // namespace semel::gateway
