// A client that shows the bytes of a reply as they are, for tests that compare them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace semel::tests {

/// The bytes of a request.
[[nodiscard]] std::string request_bytes(const std::vector<std::string>& words);

class RawClient {
 public:
  explicit RawClient(const std::string& socket_path);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// False: refused. Before anything else where the server asks for it.
  [[nodiscard]] bool log_in(const std::string& name, const std::string& password);
  /// The reply, told from what follows by the answer of an ECHO behind it; so only for a connection
  /// that may use ECHO. Empty: the connection failed.
  [[nodiscard]] std::string call(const std::vector<std::string>& words);
  /// Sends any bytes and returns at least `bytes` bytes of what is answered, with what came with
  /// them; less if no more comes for 5 s.
  [[nodiscard]] std::string talk(const std::string& request, std::size_t bytes);

 private:
  [[nodiscard]] bool send_all(const std::string& bytes) const;
  [[nodiscard]] bool receive(std::string& bytes) const;

  int socket_ = -1;
  std::uint64_t calls_ = 0;
};

}  // namespace semel::tests
