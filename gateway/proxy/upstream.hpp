// Connections to the upstream, of one worker.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "gateway/proxy/wire.hpp"
#include "semel/clock.hpp"
#include "semel/result.hpp"

namespace semel::gateway {

/// "http://host:port" or "https://host[:port]".
struct UpstreamAddress {
  std::string host{};
  std::string port{};
  bool is_tls = false;
};
/// Errors: bad_option.
[[nodiscard]] Result<UpstreamAddress> upstream_of(const std::string& url);

class UpstreamPool {
 public:
  /// `tls` null: plain. Both must outlive this.
  UpstreamPool(UpstreamAddress address, asio::ssl::context* tls, const Clock& clock)
      : address_(std::move(address)), tls_(tls), clock_(clock) {}

  /// One that was used within `fresh`, and that the upstream has not closed; null: connect().
  [[nodiscard]] std::unique_ptr<Wire> take(Millis fresh);
  /// A new one. Throws boost::system::system_error: nothing was sent.
  [[nodiscard]] asio::awaitable<std::unique_ptr<Wire>> connect(Millis within);
  /// It has read a whole reply, and may be used again.
  void give_back(std::unique_ptr<Wire> wire);
  void close() noexcept { idle_.clear(); }
  [[nodiscard]] const UpstreamAddress& address() const noexcept { return address_; }

 private:
  static constexpr std::size_t idle_max = 128;
  struct Idle {
    std::unique_ptr<Wire> wire;
    Timestamp since;
  };
  const UpstreamAddress address_;
  asio::ssl::context* const tls_;
  const Clock& clock_;
  std::deque<Idle> idle_;  // the one used last at the end
};

}  // namespace semel::gateway
