// The scripts of scripts.txt, run by a redis-server and by the interpreter, byte for byte.
//
// Words: the *server* runs the scripts itself; the *second* one carries out what the interpreter's
// scripts ask for, so that both have the same keys all the time.
#include <fstream>
#include <sstream>
#include "tests/support/catch.hpp"

#include "tests/lua_compat/forwarding_host.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

std::vector<std::string> scripts_of(const char* path) {
  std::ifstream file{path};
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::string separator = "\n%%\n";
  std::vector<std::string> scripts;
  std::size_t at = 0;
  while (at < all.size()) {
    const std::size_t end = std::min(all.find(separator, at), all.size() - 1);
    scripts.push_back(all.substr(at, end - at));
    at = end + separator.size();
  }
  return scripts;
}

/// "<sha>" where forty digits are, since no script knows its own.
std::string without_sha(std::string text) {
  std::size_t digits = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_hex =
        (text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f');
    digits = is_hex ? digits + 1 : 0;
    if (digits < 40) continue;
    text.replace(at - 39, 40, "<sha>");
    at -= 35;
    digits = 0;
  }
  return text;
}

class Comparison {
 public:
  Comparison(const RedisServer& server, const RedisServer& second, net::Resp dialect)
      : client_(server.socket_path()), host_(second.socket_path()), dialect_(dialect) {
    if (dialect == net::Resp::three) static_cast<void>(client_.call({"HELLO", "3"}));
  }

  std::string heard(const std::string& script) {
    return without_sha(client_.call({"EVAL", script, "1", "k1", "a1", "a2"}));
  }
  std::string said(const std::string& script) {
    std::string reply;
    std::string body = script;
    if (body.starts_with("#!")) body.erase(0, body.find('\n'));
    if (const Status compiled = interpreter_.compile(sha_, body); !compiled.ok()) {
      net::RespWriter{reply, dialect_}.error("ERR Error compiling script (new function): " +
                                             compiled.error().detail);
      return reply;
    }
    const std::vector<std::string_view> keys{"k1"};
    const std::vector<std::string_view> args{"a1", "a2"};
    interpreter_.run(sha_, {.keys = keys, .args = args, .dialect = dialect_}, host_, reply);
    return without_sha(reply);
  }

 private:
  RawClient client_;
  ForwardingHost host_;
  net::Resp dialect_;
  lua::Interpreter interpreter_{lua::Bounds{}};
  std::string sha_ = std::string(40, 'a');
};

}  // namespace

TEST_CASE("scripts: replies and errors are redis-server's", "[lua][script][differential]") {
  const auto server = redis_or_skip();
  if (!server) return;
  const auto second = redis_or_skip();
  const std::vector<std::string> scripts = scripts_of(SEMEL_LUA_SCRIPTS);
  REQUIRE(scripts.size() > 150);
  for (const net::Resp dialect : {net::Resp::two, net::Resp::three}) {
    Comparison beside{*server, *second, dialect};
    for (const std::string& script : scripts) {
      INFO(script);
      const std::string heard = beside.heard(script);
      CHECK(beside.said(script) == heard);
    }
  }
}

}  // namespace semel::tests
