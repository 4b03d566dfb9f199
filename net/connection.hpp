// A conversation without a socket: bytes of requests in, bytes of replies out.
#pragma once

#include <string>
#include <string_view>

#include "net/command.hpp"
#include "net/resp_parser.hpp"

namespace semel::net {

class Connection {
 public:
  /// `engine` must live as long as this.
  Connection(Engine& engine, std::uint64_t id) : engine_(engine) { client_.id = id; }

  /// Takes what was received, carries out every request that is whole, and appends the replies to
  /// `out`. Nothing more is read after a protocol error or a QUIT.
  void receive(std::string_view bytes, std::string& out);

  /// The other side is to be closed when the replies are sent.
  [[nodiscard]] bool closes() const noexcept { return client_.closes; }
  [[nodiscard]] const ClientState& client() const noexcept { return client_; }

 private:
  Engine& engine_;
  ClientState client_;
  RespParser parser_;
  std::string input_;  // of a request that is not whole
};

}  // namespace semel::net
