// Which commands a script's text is found to send.
#include <string>
#include "tests/support/catch.hpp"

#include "lua_compat/matcher/script_calls.hpp"
#include "lua_compat/matcher/script_tokens.hpp"

namespace semel::tests {
namespace {

/// "name.line" of each call; `?` without a name, `!` where an error is caught.
std::string sent_by(const std::string& text) {
  std::string all;
  for (const lua::SentCommand& sent : lua::sent_commands(text)) {
    if (!all.empty()) all += ' ';
    all += (sent.is_named ? sent.name : "?") + "." + std::to_string(sent.line);
    if (sent.has_subcommand) all += "/" + sent.subcommand;
    if (sent.is_caught) all += '!';
  }
  return all;
}

}  // namespace

TEST_CASE("calls: a name is found in every spelling of a call", "[lua][calls]") {
  for (const std::string call :
       {"redis.call('zadd')", "redis.call(\"ZADD\")", "redis.call 'zAdd'", "redis.call[[zadd]]",
        "redis.call([==[zadd]==])", "redis['call']('zadd')", "server.call('zadd')",
        "redis . call ( 'zadd' )", "redis --[[x]] .call --[==[ ]] ]==] ('zadd')",
        "redis.call('\\122add')", "redis.call('z\\97dd')", "(redis.call)('zadd')",
        "redis.call(('zadd'))", "redis[ [[call]] ] 'zadd'"}) {
    INFO(call);
    CHECK(sent_by("return " + call) == "zadd.1");
  }
  CHECK(sent_by("local call = redis.call\ncall('zadd')") == "zadd.2");
  CHECK(sent_by("local r = redis\nlocal c = r.call\nc('zadd')") == "zadd.3");
  CHECK(sent_by("local function f()\n\n return redis.call('zadd') end") == "zadd.3");
  CHECK(sent_by("return {a = redis.call('get', redis.call('zadd'))}") == "get.1 zadd.1");
  CHECK(sent_by("if x then redis.call('a') elseif redis.call('b') then else redis.call('c') end") ==
        "a.1 b.1 c.1");
  CHECK(sent_by("return redis.call('config', 'get', 'x')") == "config.1/get");
}

TEST_CASE("calls: what only looks like a call is none", "[lua][calls]") {
  for (const char* text :
       {"-- redis.call('zadd')\nreturn 1", "--[[ redis.call('zadd') ]] return 1",
        "return \"redis.call('zadd')\"", "return [[redis.call('zadd')]]",
        "local redis = {call = type} return redis.call('zadd')", "return x.redis.call('zadd')",
        "local call = redis.call return 1", "return redis.call", "return (", "\\x"}) {
    INFO(text);
    const std::string sent = sent_by(text);
    CHECK((sent.empty() || sent == "?.1!"));
  }
}

TEST_CASE("calls: of a name that the text does not show nothing is said", "[lua][calls]") {
  for (const char* text :
       {"redis.call(ARGV[1])", "redis.call('z' .. 'add')", "redis.call(x and 'zadd' or 'set')",
        "local name = 'zadd' redis.call(name)", "redis.call(unpack(ARGV))", "redis.call(...)",
        "redis.call({'zadd'})", "redis.call()"}) {
    INFO(text);
    CHECK(sent_by(text) == "?.1");
  }
  CHECK(sent_by("local c = redis.call c = type return c('zadd')") == "?.1!");
  CHECK(sent_by("local function f(c) return c('zadd') end f(redis.call)") == "?.1!");
}

TEST_CASE("calls: what is caught is marked", "[lua][calls]") {
  for (const char* text : {"redis.pcall('zadd')", "local p = redis.pcall p('zadd')",
                           "pcall(function() return redis.call('zadd') end)",
                           "xpcall(function() return redis.call('zadd') end, type)",
                           "local ok = pcall(function() if x then redis.call('zadd') end end)",
                           "local function f() redis.call('zadd') end return pcall(f)",
                           "local f = function() redis.call('zadd') end return pcall(f)",
                           "local f f = function() redis.call('zadd') end return pcall(f)"}) {
    INFO(text);
    CHECK(sent_by(text) == "zadd.1!");
  }
  CHECK(sent_by("return pcall(redis.call, 'zadd')") == "?.1!");
  CHECK(sent_by("pcall(type) redis.call('zadd')") == "zadd.1");
}

TEST_CASE("calls: texts are read up to a bound, and not beyond", "[lua][calls]") {
  const std::string call = "redis.call('zadd')";
  const std::string most(lua::script_bytes_max - call.size(), '\n');
  CHECK(sent_by(most + call) == "zadd." + std::to_string(most.size() + 1));
  CHECK(sent_by(most + '\n' + call).empty());
}

}  // namespace semel::tests
