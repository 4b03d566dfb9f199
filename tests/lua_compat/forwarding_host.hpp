// A host that forwards the commands of scripts to a redis-server.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lua_compat/interpreter/interpreter.hpp"
#include "tests/support/raw_client.hpp"

namespace semel::tests {

/// The reply that a script gets where a client gets `reply`: redis-server changes two texts.
inline std::string_view reply_for_scripts(std::string_view reply) {
  if (reply.starts_with("-ERR unknown command"))
    return "-ERR Unknown Redis command called from script\r\n";
  if (reply.starts_with("-ERR wrong number of arguments"))
    return "-ERR Wrong number of args calling Redis command from script\r\n";
  return reply;
}

class ForwardingHost final : public lua::Host {
 public:
  explicit ForwardingHost(const std::string& socket_path) : two_(socket_path), three_(socket_path) {
    static_cast<void>(three_.call({"HELLO", "3"}));
  }

  void call(std::span<const std::string_view> words, net::Resp dialect,
            std::string& reply) override {
    if (words[0] == "eval") {
      reply += "-ERR This Redis command is not allowed from script\r\n";
      return;
    }
    const std::vector<std::string> copied{words.begin(), words.end()};
    const std::string answer = (dialect == net::Resp::two ? two_ : three_).call(copied);
    reply += reply_for_scripts(answer);
  }
  [[nodiscard]] std::optional<bool> may_call(std::span<const std::string_view> words) override {
    if (words[0] == "nosuch") return std::nullopt;
    return true;
  }
  void log(lua::LogLevel, std::string_view text) override { logged = text; }
  [[nodiscard]] lua::Stop pause() override { return lua::Stop::none; }

  std::string logged{};

 private:
  RawClient two_;
  RawClient three_;
};

}  // namespace semel::tests
