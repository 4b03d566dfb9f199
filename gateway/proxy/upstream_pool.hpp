// Connections of one thread to the upstream: unused ones are kept for a short time, their number is
// bounded, and requests wait in a bounded queue.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/stopwatch.hpp"
#include "gateway/config/settings.hpp"
#include "gateway/proxy/client_wait.hpp"
#include "gateway/rules/exchange_account.hpp"
#include "gateway/rules/outcome.hpp"
#include "gateway/shared/counters.hpp"
#include "gateway/shared/stream.hpp"

namespace semel::gateway {

/// An open connection, and the bytes that its exchange still owes.
struct UpstreamConnection {
  explicit UpstreamConnection(Stream opened) : stream(std::move(opened)) {}
  /// Writes all of it and counts the bytes written. The call has its own deadline.
  [[nodiscard]] asio::awaitable<error_code> write(std::string_view bytes, Millis within);
  /// The gateway's one rule for reuse: whether another request may be sent on the connection. False
  /// if this exchange owes a byte in either direction, or if unread bytes have arrived.
  [[nodiscard]] bool is_settled();

  Stream stream;
  beast::flat_buffer buffer{limits::reply_head_bytes_max};
  ExchangeAccount account{};
  base::Stopwatch unused_for{};
  bool is_reused = false;
};

/// Used by one thread. Shared by the holders of its connections.
class UpstreamPool : public std::enable_shared_from_this<UpstreamPool> {
 public:
  /// The right to one of the connections. At its end the connection returns to the pool if it is
  /// settled, and is closed if not.
  class Lease {
   public:
    Lease() = default;
    /// `wait` belongs to the client that the connection serves.
    Lease(std::shared_ptr<UpstreamPool> pool, ClientWait& wait) noexcept
        : pool_(std::move(pool)), wait_(&wait) {
      pool_->holders_.push_back(wait_);
    }
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      end();
      pool_ = std::move(other.pool_);
      wait_ = other.wait_;
      connection = std::move(other.connection);
      return *this;
    }
    ~Lease() { end(); }
    std::unique_ptr<UpstreamConnection> connection{};

   private:
    void end() noexcept;
    std::shared_ptr<UpstreamPool> pool_{};
    ClientWait* wait_ = nullptr;
  };
  struct Acquired {
    std::optional<Refusal> refusal{};
    Lease lease{};
  };

  /// `count`: connections in use; `queue`: requests that wait for one.
  UpstreamPool(asio::io_context& io, const Settings& settings, const UpstreamAddress& address,
               const CurrentTls& tls, Counters& counters, std::size_t count, std::size_t queue);

  /// A connection of the pool, or a new one. `fresh`: a new one. `wait` must live as long as the
  /// lease. A request that has to wait ends the exchange with the slowest client, if one is slow.
  /// After a refusal nothing was sent. Progress: waits at most queue_timeout and three times
  /// connect_timeout.
  [[nodiscard]] asio::awaitable<Acquired> acquire(ClientWait& wait, bool fresh = false);
  /// Closes the connections that are not in use; those in use close when they end.
  void close() noexcept;

 private:
  struct Waiter {
    explicit Waiter(asio::io_context& io) : timer(io) {}
    asio::steady_timer timer;
    bool is_next = false;
  };

  [[nodiscard]] asio::awaitable<bool> wait_for_turn();
  void drop_slowest() noexcept;
  [[nodiscard]] std::unique_ptr<UpstreamConnection> take_unused();
  [[nodiscard]] asio::awaitable<Acquired> connect(Lease& lease);
  void release() noexcept;
  void keep_or_close(std::unique_ptr<UpstreamConnection> connection) noexcept;

  asio::io_context& io_;
  const Settings& settings_;
  const UpstreamAddress& address_;
  const CurrentTls& tls_;
  Counters& counters_;
  const std::size_t count_max_;
  const std::size_t queue_max_;
  std::size_t in_use_ = 0;
  bool is_closed_ = false;
  std::vector<std::unique_ptr<UpstreamConnection>> unused_;  // the newest last
  std::deque<std::shared_ptr<Waiter>> waiters_;
  std::vector<ClientWait*> holders_;  // of leases: has room for all of them
};

}  // namespace semel::gateway
