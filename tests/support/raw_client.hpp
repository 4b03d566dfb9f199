// A client that shows the bytes of a reply as they are, for tests that compare them.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/resp.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

class RawClient {
 public:
  explicit RawClient(const std::string& socket_path) : socket_(socket_path) {}

  /// False: refused. Before anything else where the server asks for it.
  [[nodiscard]] bool log_in(const std::string& name, const std::string& password);
  /// The reply, separated from what follows by the answer to an ECHO behind it; so only for a
  /// connection that may use ECHO. Empty: the connection failed.
  [[nodiscard]] std::string call(const Words& words);
  /// Sends any bytes and returns at least `bytes` bytes of what is answered, with what came with
  /// them; less if no more comes for `patience`.
  [[nodiscard]] std::string talk(const std::string& request, std::size_t bytes);

 private:
  Socket socket_;
  std::uint64_t calls_ = 0;
};

}  // namespace semel::tests
