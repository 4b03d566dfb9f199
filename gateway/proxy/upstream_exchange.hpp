// One request to the upstream, and its reply up to the head.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/proxy/client_connection.hpp"
#include "gateway/proxy/heads.hpp"
#include "gateway/proxy/incoming.hpp"
#include "gateway/proxy/upstream_pool.hpp"

namespace semel::gateway {

/// A request as it goes to the upstream.
struct OutgoingRequest {
  std::string head{};
  std::string_view body{};  ///< if all of it is there
  Framing later{};          ///< of a body that follows
  bool is_fresh = false;    ///< on a connection that has served none
  /// The size of the request. None: it ends with a chunk.
  [[nodiscard]] std::optional<std::uint64_t> bytes() const noexcept {
    if (later.kind == Framing::Kind::chunked) return std::nullopt;
    return head.size() + body.size() + later.length;
  }
};

/// A reply of the upstream up to its head; or a refusal.
struct UpstreamReply {
  enum class How : std::uint8_t { replied, not_sent, broken, timed_out };
  How how = How::not_sent;
  Refusal refusal{};  ///< unless replied
  UpstreamPool::Lease lease{};
  std::unique_ptr<http::response_parser<http::buffer_body>> parser{};
  std::vector<Field> fields{};
};

/// Set by a coroutine when it ends, waited for by another one of the same thread.
class Event {
 public:
  explicit Event(asio::io_context& io) : timer_(io, asio::steady_timer::time_point::max()) {}
  void set() {
    is_set_ = true;
    timer_.cancel();
  }
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }
  [[nodiscard]] asio::awaitable<void> wait() {
    while (!is_set_) co_await timer_.async_wait(no_throw);
  }

 private:
  asio::steady_timer timer_;
  bool is_set_ = false;
};

/// Sends the request on a connection of the pool. `wait` is its client's, and lives as long as the
/// reply's lease. Each write ends within `within`.
[[nodiscard]] asio::awaitable<UpstreamReply> exchange(UpstreamPool& pool, ClientWait& wait,
                                                      const OutgoingRequest& request,
                                                      Millis within);
/// Reads the head of the reply to `in`, behind interim replies, within the route's timeout. A reply
/// whose end has two readings is a refusal.
[[nodiscard]] asio::awaitable<void> read_reply_head(const Incoming& in, UpstreamReply& reply);
/// The framing of the reply's body towards the client.
[[nodiscard]] Framing framing_of_reply(const Incoming& in,
                                       const http::response_parser<http::buffer_body>& reply);
/// Answers `client` with the reply, status 101, and copies both ways until one side ends or is
/// silent for `within`. Closes both.
[[nodiscard]] asio::awaitable<void> tunnel(asio::io_context& io, ClientConnection& client,
                                           UpstreamReply& reply, Millis within);

}  // namespace semel::gateway
