// A host with a few commands on a map, and a helper that runs one script.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lua_compat/interpreter/interpreter.hpp"

namespace semel::tests {

class FakeHost final : public lua::Host {
 public:
  void call(std::span<const std::string_view> words, net::Resp dialect,
            std::string& reply) override {
    ++calls;
    net::RespWriter out{reply, dialect};
    const std::string name{words[0]};
    if (name == "raw")
      reply += words[1];  // any bytes as a reply
    else if (name == "set")
      set(words, out);
    else if (name == "get" && values.contains(std::string{words[1]}))
      out.bulk(values[std::string{words[1]}]);
    else if (name == "get")
      out.null();
    else if (name == "join")
      join(words, out);
    else
      out.error("ERR Unknown Redis command called from script");
  }
  [[nodiscard]] std::optional<bool> may_call(std::span<const std::string_view> words) override {
    if (words[0] == "nosuch") return std::nullopt;
    return words[0] != "set";
  }
  void log(lua::LogLevel level, std::string_view text) override {
    logged.emplace_back(level, text);
  }
  [[nodiscard]] lua::Stop pause() override {
    ++pauses;
    return pauses > pauses_max ? stop : lua::Stop::none;
  }

  std::map<std::string, std::string> values{};
  std::vector<std::pair<lua::LogLevel, std::string>> logged{};
  std::size_t calls = 0;
  std::size_t pauses = 0;
  std::size_t pauses_max = 0;
  lua::Stop stop = lua::Stop::none;

 private:
  void set(std::span<const std::string_view> words, net::RespWriter& out) {
    values[std::string{words[1]}] = words[2];
    out.ok();
  }
  static void join(std::span<const std::string_view> words, net::RespWriter& out) {
    std::string text;
    for (const std::string_view word : words.subspan(1)) text.append(word).append("|");
    out.bulk(text);
  }
};

/// The reply of EVAL.
inline std::string run_script(lua::Interpreter& interpreter, lua::Host& host,
                              const std::string& script, net::Resp dialect = net::Resp::two,
                              const std::vector<std::string_view>& keys = {},
                              const std::vector<std::string_view>& args = {}) {
  const std::string sha(40, 'a');
  std::string reply;
  if (const Status compiled = interpreter.compile(sha, script); !compiled.ok()) {
    net::RespWriter{reply, dialect}.error("ERR Error compiling script (new function): " +
                                          compiled.error().detail);
    return reply;
  }
  interpreter.run(sha, {.keys = keys, .args = args, .dialect = dialect}, host, reply);
  return reply;
}

}  // namespace semel::tests
