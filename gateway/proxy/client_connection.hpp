// The client's side of an exchange: its stream, the bytes that were read ahead, and what it waits
// for. Every read and write has a deadline. Used by one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/config/settings.hpp"
#include "gateway/guard/memory.hpp"
#include "gateway/proxy/client_wait.hpp"
#include "gateway/shared/stream.hpp"

namespace semel::gateway {

namespace http = beast::http;

/// One step of a body: the number of bytes in `room`, and whether the body is complete. A step may
/// have none. `stream` needs its own deadline.
struct BodyStep {
  error_code error{};
  std::size_t bytes = 0;
  bool is_done = false;
};
template <class Parser>
asio::awaitable<BodyStep> read_step(Stream& stream, beast::flat_buffer& buffer, Parser& parser,
                                    std::string& room) {
  BodyStep step;
  if (parser.is_done()) {
    step.is_done = true;
    co_return step;
  }
  auto& body = parser.get().body();
  body.data = room.data();
  body.size = room.size();
  auto [error, used] = co_await http::async_read_some(stream, buffer, parser, no_throw);
  static_cast<void>(used);
  if (error && error != http::error::need_buffer) step.error = error;
  step.bytes = room.size() - body.size;
  step.is_done = parser.is_done();
  co_return step;
}

class ClientConnection {
 public:
  /// Of read_head().
  enum class HeadRead : std::uint8_t {
    complete,
    ended,      ///< the client has gone
    late,       ///< it has begun, and was not complete within head-timeout
    busy,       ///< there is no memory for it
    too_large,  ///< more than head-bytes
  };

  ClientConnection(const Settings& settings, MemoryBudget& memory, Stream stream);
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  /// The handshake of TLS, if that is spoken. False: it failed.
  [[nodiscard]] asio::awaitable<bool> begin();
  /// Waits for a request. Then head() is its head, until consume_head().
  [[nodiscard]] asio::awaitable<HeadRead> read_head();
  [[nodiscard]] std::string_view head() const noexcept;
  void consume_head() noexcept;
  /// The bytes of a head that Beast's parser may hold.
  [[nodiscard]] std::size_t header_limit() const noexcept;
  [[nodiscard]] asio::awaitable<BodyStep> read_body(http::request_parser<http::buffer_body>& parser,
                                                    std::string& room, Millis within);
  /// False: the client has gone, or does not read: no progress within body-timeout, or not all of
  /// it within transfer-timeout.
  [[nodiscard]] asio::awaitable<bool> send(std::string_view bytes);
  /// Sends a message without copying its body. Consumes `head`.
  [[nodiscard]] asio::awaitable<bool> send(std::string& head, std::string_view body);
  /// Before a close with unread input, which resets the connection, so that the reply may be lost.
  [[nodiscard]] asio::awaitable<void> linger();
  /// The end of TLS, if that is spoken.
  [[nodiscard]] asio::awaitable<void> end();

  /// Closes the connection if no request has begun.
  void close_if_idle();
  /// From here on a gateway that drains closes it at once.
  void be_idle() noexcept { is_idle_ = true; }
  /// Gives the spare room of the buffer back, while the upstream works.
  void shrink() { buffer_.shrink_to_fit(); }
  /// Bytes that were read ahead of the parser.
  [[nodiscard]] std::string_view unread() const noexcept;
  /// Since it was asked the last time.
  [[nodiscard]] std::uint64_t take_bytes_sent() noexcept;
  [[nodiscard]] Stream& stream() noexcept { return stream_; }
  [[nodiscard]] ClientWait& wait() noexcept { return wait_; }

 private:
  [[nodiscard]] bool count_buffer() noexcept;

  const Settings& settings_;
  Stream stream_;
  ClientWait wait_{stream_};
  beast::flat_buffer buffer_;
  MemoryShare buffer_share_;
  std::size_t head_bytes_ = 0;
  std::uint64_t bytes_sent_ = 0;
  bool is_idle_ = true;
};

}  // namespace semel::gateway
