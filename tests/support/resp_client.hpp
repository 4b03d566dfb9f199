// A RESP client over a Unix socket: one command, one reply, both blocking.
#pragma once

#include <string>

#include "tests/support/resp.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

/// Reads values from a stream, which must outlive it.
class RespReader {
 public:
  explicit RespReader(Stream& stream) : stream_(stream) {}

  /// Waits for the next value. One of type broken: the stream ended, or it is no RESP.
  [[nodiscard]] RespValue next();

 private:
  Stream& stream_;
  std::string buffer_;  ///< received, not yet returned
};

class RespClient {
 public:
  explicit RespClient(const std::string& socket_path) : socket_(socket_path), reader_(socket_) {}
  RespClient(const RespClient&) = delete;
  RespClient& operator=(const RespClient&) = delete;

  /// A reply of type broken: the connection failed, and every later call fails, too.
  [[nodiscard]] RespValue call(const Words& command);

 private:
  Socket socket_;
  RespReader reader_;
};

}  // namespace semel::tests
