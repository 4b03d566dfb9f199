// Opens a connection to a server by name, with or without TLS, within a time limit.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "gateway/shared/stream.hpp"

namespace semel::gateway {

/// The server, and how to connect. Lives as long as dial() runs.
struct DialTarget {
  const std::string& host;
  const std::string& port;
  asio::ssl::context* tls = nullptr;  ///< null: plain TCP
  bool is_verified = true;            ///< of TLS: certificate and name
  Millis within{3'000};               ///< for each of: the name, the connection, TLS
};

struct Dialed {
  std::optional<Stream> stream{};
  std::string trouble{};    ///< why there is no stream
  bool is_refused = false;  ///< a certificate was refused, or the server has no TLS
};

/// Opens one connection, without delay for small writes.
[[nodiscard]] asio::awaitable<Dialed> dial(asio::io_context& io, const DialTarget& target);

}  // namespace semel::gateway
