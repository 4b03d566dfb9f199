// A small RESP2 client over a unix socket: one command, one reply, both blocking.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::tests {

struct Reply {
  enum class Type : std::uint8_t { broken, status, error, integer, bulk, null, array };
  Type type = Type::broken;
  std::string text{};  ///< of status, error, integer and bulk
  std::vector<Reply> items{};

  /// One line that tells replies apart: `+OK`, `-ERR ..`, `:5`, `"bytes"`, `nil`, `[..]`.
  [[nodiscard]] std::string show() const;
};

/// `bytes` in quotes, with what cannot be printed as \xHH.
[[nodiscard]] std::string quoted(std::string_view bytes);

class RespClient {
 public:
  explicit RespClient(const std::string& socket_path);
  ~RespClient();
  RespClient(const RespClient&) = delete;
  RespClient& operator=(const RespClient&) = delete;

  [[nodiscard]] bool connected() const noexcept { return socket_ >= 0; }
  /// A reply of type broken: the connection failed, and every later call fails, too.
  [[nodiscard]] Reply call(const std::vector<std::string>& command);

 private:
  [[nodiscard]] bool send(std::string_view bytes);
  [[nodiscard]] bool fill();
  [[nodiscard]] bool read_line(std::string& line);
  [[nodiscard]] bool read_bytes(std::size_t count, std::string& bytes);
  [[nodiscard]] Reply read_reply(int depth);
  void close();

  int socket_ = -1;
  std::string buffer_;
  std::size_t at_ = 0;  ///< first byte of buffer_ not consumed
};

}  // namespace semel::tests
