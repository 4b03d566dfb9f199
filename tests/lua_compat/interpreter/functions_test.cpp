// Libraries of functions, loaded and called beside a redis-server, byte for byte.
#include "tests/support/catch.hpp"

#include "tests/lua_compat/forwarding_host.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

const std::vector<std::string> codes{
    "redis.register_function('f', function(k, a) return redis.call('incr', k[1]) end)",
    "redis.register_function('f', function(k, a) error('boom') end)",
    "redis.register_function('f', function(k, a) return KEYS end)",
    "redis.register_function('f', function(k, a) x = 1 end)",
    "x = 1 redis.register_function('f', function(k, a) return x end)",
    "local x = 1 redis.register_function('f', function(k, a) x = x + 1 return x end)",
    "redis.register_function('f', function() redis.register_function('g', function() end) end)",
    "local r = redis redis.register_function('f', function() return r.call('get', 'k1') end)",
    "local r = redis.register_function r('f', function() r('g', function() end) end)",
    "redis.register_function('f', function(k, a) return y end)",
    "redis.register_function('f', function(k, a) return redis.foo end)",
    "redis.register_function('f', function(k, a) return {type(k), #k, #a, k[1], a[1]} end)",
    "redis.register_function{function_name='f', callback=function() return 1 end, "
    "flags={'no-writes'}, description='d'}",
    "redis.register_function{function_name='f', callback=function() return 1 end, flags={'bogus'}}",
    "redis.register_function{function_name='f', callback=function() return 1 end, flags='x'}",
    "redis.register_function{function_name='f', callback=function() return 1 end, flags={1}}",
    "redis.register_function{function_name='f', callback=function() end, flags={a='no-writes'}}",
    "redis.register_function{function_name='f', callback=function() return 1 end, description=5}",
    "redis.register_function{function_name='f', callback=function() return 1 end, description={}}",
    "redis.register_function{FUNCTION_NAME='f', Callback=function() return 1 end}",
    "redis.register_function{function_name=5, callback=function() return 1 end}",
    "redis.register_function{function_name={}, callback=function() return 1 end}",
    "redis.register_function{function_name='f', callback=5}",
    "redis.register_function{function_name='f'}",
    "redis.register_function{callback=function() end}",
    "redis.register_function{function_name='f', callback=function() return 1 end, bogus=1}",
    "redis.register_function{function_name='f', callback=function() return 1 end, [1]=1}",
    "redis.register_function{}",
    "redis.register_function()",
    "redis.register_function('f')",
    "redis.register_function(5)",
    "redis.register_function('f', 5)",
    "redis.register_function('f', function() end, 1)",
    "redis.register_function({}, function() end)",
    "redis.register_function('f-x', function() end)",
    "redis.register_function('', function() end)",
    "redis.register_function('f', function() end) redis.register_function('f', function() end)",
    "error('x')",
    "syntax error here",
    "redis.call('get', 'x')",
    "redis.setresp(3)",
    "redis.x = 1",
    "return redis.foo",
    "return foo",
    "redis.log(3, 'x') redis.register_function('f', function() return 1 end)",
    "math.foo = 1",
    "local function q() return 1 end redis.register_function('f', function() return q() end)",
    "redis.register_function('f', function() local e = redis.pcall('incr', 'k1') error(e) end)",
    "redis.register_function('f', function() error({err='x'}) end)",
    "redis.register_function('f', function() return loadstring('return 5')() end)",
    "redis.register_function('f', function() redis.setresp(3) return true end)",
    "redis.register_function('f', function() return _G.redis ~= nil end)",
    "redis.register_function('f', function() return redis.breakpoint() end)",
    "redis.register_function('f', function()\n\n return redis.call('incr', 'k1') end)",
    "redis.register_function('f', function() getmetatable(_G).__index = 1 end)",
    "local a = redis.register_function('f', function() return math.floor(1.5) end) return a",
};

std::string after_error(const std::string& reply) {
  const std::string_view begin = "-ERR Error ";
  return reply.starts_with(begin) ? reply.substr(begin.size()) : reply;
}

}  // namespace

TEST_CASE("functions: loading and calling are redis-server's", "[lua][function][differential]") {
  const auto server = redis_or_skip();
  if (!server) return;
  const auto second = redis_or_skip();
  RawClient client{server->socket_path()};
  ForwardingHost host{second->socket_path()};
  RawClient keys_of_second{second->socket_path()};
  CHECK(client.call({"SET", "k1", "text"}) == keys_of_second.call({"SET", "k1", "text"}));
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::vector<std::string_view> keys{"k1"};
  const std::vector<std::string_view> args{"a1"};
  for (const std::string& code : codes) {
    INFO(code);
    CHECK(client.call({"FUNCTION", "FLUSH"}) == "+OK\r\n");
    const std::string heard = client.call({"FUNCTION", "LOAD", "#!lua name=lib\n" + code});
    const auto functions = interpreter.load_library("lib", "\n" + code);
    CHECK(functions.ok() == heard.starts_with("$3"));
    if (!functions.ok()) {
      CHECK(after_error(heard) == functions.error().detail + "\r\n");
      continue;
    }
    // Twice: what a function keeps stays.
    for (int round = 0; round < 2; ++round) {
      std::string reply;
      interpreter.run_function("lib", "f", {.keys = keys, .args = args}, host, reply);
      CHECK(reply == client.call({"FCALL", "f", "1", "k1", "a1"}));
    }
    interpreter.forget_library("lib");
  }
}

TEST_CASE("functions: FUNCTION LIST shows all that was registered", "[lua][function]") {
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::vector<lua::RegisteredFunction> functions =
      interpreter
          .load_library("lib",
                        "redis.register_function{description='d', flags={'no-writes', "
                        "'allow-oom'}, function_name='one', callback=function() return 1 end} "
                        "redis.register_function('two', function() return 2 end)")
          .value();
  REQUIRE(functions.size() == 2);
  CHECK(functions[0].name == "one");
  CHECK(functions[0].has_description);
  CHECK(functions[0].description == "d");
  CHECK(functions[0].flags == std::vector<std::string>{"no-writes", "allow-oom"});
  CHECK(functions[1].name == "two");
  CHECK_FALSE(functions[1].has_description);
  CHECK(functions[1].flags.empty());
}

TEST_CASE("functions: a library that fails to load leaves the one that is there",
          "[lua][function]") {
  lua::Interpreter interpreter{lua::Bounds{}};
  REQUIRE(interpreter.load_library("lib", "redis.register_function('f', function() return 1 end)")
              .ok());
  REQUIRE_FALSE(interpreter.load_library("lib", "redis.register_function('f')").ok());
  REQUIRE(interpreter.load_library("lib", "while true do end").error().detail ==
          "registering functions: ERR FUNCTION LOAD timeout");
}

}  // namespace semel::tests
