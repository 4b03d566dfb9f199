#include "gateway/proxy/client_connection.hpp"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <utility>

#include "base/stopwatch.hpp"
#include "gateway/rules/head.hpp"
#include "gateway/rules/limits.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t client_read_bytes = 4'096;
constexpr std::size_t write_bytes = std::size_t{64} * 1024;
// Beast's buffer also holds the bytes behind the head: the lines of chunks.
constexpr std::size_t spare_bytes = std::size_t{16} * 1024;

}  // namespace

ClientConnection::ClientConnection(const Settings& settings, MemoryBudget& memory, Stream stream)
    : settings_(settings),
      stream_(std::move(stream)),
      buffer_(settings.head_bytes + spare_bytes),
      buffer_share_(memory) {}

asio::awaitable<bool> ClientConnection::begin() {
  auto* const tls = stream_.tls_layer();
  if (tls == nullptr) co_return true;
  stream_.expires_after(settings_.head_timeout);
  const ClientWait::Now now{wait_};
  auto [error] = co_await tls->async_handshake(asio::ssl::stream_base::server, no_throw);
  const bool is_open = !error;
  co_return is_open;
}

asio::awaitable<ClientConnection::HeadRead> ClientConnection::read_head() {
  std::optional<std::size_t> end;
  wait_.restart();
  is_idle_ = buffer_.size() == 0;
  if (buffer_.capacity() > limits::head_buffer_free) buffer_.shrink_to_fit();
  stream_.expires_after(is_idle_ ? settings_.idle_timeout : settings_.head_timeout);
  while (!(end = end_of_head(unread()))) {
    if (buffer_.size() >= settings_.head_bytes) break;
    const auto room =
        buffer_.prepare(std::min(client_read_bytes, buffer_.max_size() - buffer_.size()));
    if (!count_buffer()) co_return HeadRead::busy;
    const ClientWait::Now now{wait_};
    auto [error, bytes] = co_await stream_.async_read_some(room, no_throw);
    if (error == beast::error::timeout && !is_idle_) co_return HeadRead::late;
    if (error) co_return HeadRead::ended;
    buffer_.commit(bytes);
    // One deadline for the whole head: a client that sends a byte a second does not move it.
    if (std::exchange(is_idle_, false)) stream_.expires_after(settings_.head_timeout);
  }
  is_idle_ = false;
  wait_.restart();
  if (!end || *end > settings_.head_bytes) co_return HeadRead::too_large;
  head_bytes_ = *end;
  co_return HeadRead::complete;
}

std::string_view ClientConnection::head() const noexcept {
  return unread().substr(0, head_bytes_);
}

void ClientConnection::consume_head() noexcept {
  buffer_.consume(std::exchange(head_bytes_, 0));
}

std::size_t ClientConnection::header_limit() const noexcept {
  return settings_.head_bytes + spare_bytes;
}

/// Counts the head's bytes: in the buffer, and in the parser once it is complete. A small head is
/// part of the connection's own memory.
bool ClientConnection::count_buffer() noexcept {
  const std::size_t bytes = buffer_.capacity();
  return buffer_share_.hold(bytes <= limits::head_buffer_free ? 0 : 2 * bytes);
}

asio::awaitable<BodyStep> ClientConnection::read_body(
    http::request_parser<http::buffer_body>& parser, std::string& room, Millis within) {
  const ClientWait::Now now{wait_};
  stream_.expires_after(within);
  co_return co_await read_step(stream_, buffer_, parser, room);
}

asio::awaitable<bool> ClientConnection::send(std::string_view bytes) {
  const base::Stopwatch since;
  const ClientWait::Now now{wait_};
  while (!bytes.empty()) {
    const Millis left = settings_.transfer_timeout - since.passed();
    if (left <= Millis{0}) co_return false;
    const std::string_view piece = bytes.substr(0, write_bytes);
    stream_.expires_after(std::min(left, settings_.body_timeout));
    auto [error, sent] =
        co_await asio::async_write(stream_, asio::buffer(piece.data(), piece.size()), no_throw);
    bytes_sent_ += sent;
    if (error) co_return false;
    bytes.remove_prefix(piece.size());
  }
  co_return true;
}

asio::awaitable<bool> ClientConnection::send(std::string& head, std::string_view body) {
  // A short message is one packet; a long one is sent from where it is.
  const std::string_view first = body.substr(0, client_read_bytes);
  head.append(first);
  const bool is_begun = co_await send(head);
  std::string{}.swap(head);
  if (!is_begun) co_return false;
  const std::string_view rest = body.substr(first.size());
  co_return co_await send(rest);
}

asio::awaitable<void> ClientConnection::linger() {
  constexpr Millis linger_time{1'000};
  constexpr std::size_t linger_bytes = std::size_t{256} * 1024;
  if (stream_.tls_layer() != nullptr) co_return;
  error_code failed;
  stream_.tcp_layer().socket().shutdown(tcp::socket::shutdown_send, failed);
  stream_.expires_after(linger_time);
  std::string ignored(client_read_bytes, '\0');
  for (std::size_t all = 0; !failed && all < linger_bytes;) {
    auto [error, bytes] = co_await stream_.async_read_some(asio::buffer(ignored), no_throw);
    failed = error;
    all += bytes;
  }
}

asio::awaitable<void> ClientConnection::end() {
  auto* const tls = stream_.tls_layer();
  if (tls == nullptr) co_return;
  stream_.expires_after(settings_.head_timeout);
  auto [ignored] = co_await tls->async_shutdown(no_throw);
  static_cast<void>(ignored);
}

void ClientConnection::close_if_idle() {
  if (is_idle_) stream_.close();
}

std::string_view ClientConnection::unread() const noexcept {
  const auto bytes = buffer_.cdata();
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t ClientConnection::take_bytes_sent() noexcept {
  return std::exchange(bytes_sent_, 0);
}

}  // namespace semel::gateway
