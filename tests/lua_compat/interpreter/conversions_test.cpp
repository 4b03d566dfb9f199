// Replies of commands as scripts see them, what scripts return as clients see it, and what one
// script can leave behind for another.
#include "tests/support/catch.hpp"

#include "tests/lua_compat/fake_host.hpp"

namespace semel::tests {
namespace {

using net::Resp;

std::string lua_string(const std::string& bytes) {
  std::string text = "'";
  for (const char c : bytes) {
    if (c == '\r')
      text += "\\r";
    else if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text + "'";
}

const std::string describe = R"(
local function shown(v)
  if type(v) ~= 'table' then return type(v) .. ':' .. tostring(v) end
  local parts = {}
  for i = 1, #v do parts[#parts + 1] = shown(v[i]) end
  for _, k in ipairs({'ok', 'err', 'double', 'big_number', 'ignore_error_stats_update', 'string',
                      'format', 'map', 'set', 'a', 'b', 7}) do
    if v[k] ~= nil then parts[#parts + 1] = k .. '=' .. shown(v[k]) end
  end
  if v.verbatim_string then parts[#parts + 1] = 'verbatim=' .. shown(v.verbatim_string) end
  return '{' .. table.concat(parts, ' ') .. '}'
end
return shown(redis.pcall('raw', )";

}  // namespace

TEST_CASE("conversions: each form of a reply is a value of Lua", "[lua][conversion]") {
  const auto [bytes, value] = GENERATE(table<std::string, std::string>({
      {"+OK\r\n", "{ok=string:OK}"},
      {"+\r\n", "{ok=string:}"},
      {"-ERR a b\r\n", "{err=string:ERR a b ignore_error_stats_update=boolean:true}"},
      {":12\r\n", "number:12"},
      {":-1\r\n", "number:-1"},
      {"$3\r\na\nb\r\n", "string:a\nb"},
      {"$0\r\n\r\n", "string:"},
      {"$-1\r\n", "boolean:false"},
      {"*-1\r\n", "boolean:false"},
      {"_\r\n", "nil:nil"},
      {"#t\r\n", "boolean:true"},
      {"#f\r\n", "boolean:false"},
      {",1.5\r\n", "{double=number:1.5}"},
      {",inf\r\n", "{double=number:inf}"},
      {",-inf\r\n", "{double=number:-inf}"},
      {"(12345678901234567890\r\n", "{big_number=string:12345678901234567890}"},
      {"=7\r\ntxt:abc\r\n", "{verbatim={string=string:abc format=string:txt}}"},
      {"*0\r\n", "{}"},
      {"*3\r\n:1\r\n$-1\r\n*1\r\n+OK\r\n", "{number:1 boolean:false {{ok=string:OK}}}"},
      {"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n*1\r\n:2\r\n", "{map={b={number:2}}}"},
      {"%1\r\n:7\r\n:1\r\n", "{map={7=number:1}}"},
      {"%1\r\n_\r\n:1\r\n", "{map={}}"},
      {"~2\r\n$1\r\na\r\n$1\r\nb\r\n", "{set={a=boolean:true b=boolean:true}}"},
      {"*2\r\n-ERR x\r\n:1\r\n",
       "{{err=string:ERR x ignore_error_stats_update=boolean:true} number:1}"},
  }));
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::string reply = run_script(interpreter, host, describe + lua_string(bytes) + "))");
  CHECK(reply == "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n");
}

TEST_CASE("conversions: bytes that are not a reply become an error", "[lua][conversion]") {
  const std::string bytes =
      GENERATE("", "x", ":\r\n", ":1", ":a\r\n", "$5\r\nab\r\n", "$\r\n", "*1\r\n",
               "*9999999999\r\n", "*2147483647\r\n", "%1\r\n:1\r\n", "+OK\r\n+OK\r\n",
               "=2\r\nab\r\n", "~1\r\n", "!\r\n", "$-x\r\n:", "*1\r\n*1\r\n*1\r\n");
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  INFO(bytes);
  CHECK(run_script(interpreter, host, "return redis.pcall('raw', " + lua_string(bytes) + ")") ==
        "-ERR The reply of a command cannot be converted for a script\r\n");
}

TEST_CASE("conversions: arguments reach the command as they are", "[lua][conversion]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::string reply = run_script(
      interpreter, host,
      "return redis.call('join', 1, -1, 0, -0, 1.5, 10/3, 1e14, 1e15, 1e16, 1e17, 2^53, 1e100, "
      "0.1, 1/0, -1/0, 'a\\0b', '', KEYS[1], ARGV[1], ARGV[2])",
      Resp::two, {"k\r\n"}, {"", "v"});
  const std::string text =
      std::string{
          "1|-1|0|-0|1.5|3.3333333333333335|100000000000000|1000000000000000|"
          "10000000000000000|1e+17|9007199254740992|1e+100|0.10000000000000001|inf|-inf|a"} +
      '\0' + "b||k\r\n||v|";
  CHECK(reply == "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n");
}

TEST_CASE("conversions: nothing that a script returns ends a line of the protocol",
          "[lua][conversion]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::string evil = "'x\\r\\n+OK\\r\\n'";
  const char* const form =
      GENERATE("return {ok=E}", "return {err=E}", "error(E)", "error({err=E})",
               "return redis.error_reply(E)", "return redis.status_reply(E)",
               "return {big_number=E}", "error(E, 0)", "loadstring(E .. ')', '=' .. E)()",
               "return {verbatim_string={format=E, string=''}}", "local t = {} t[E]()", "x = E",
               "return _G[E]", "assert(loadstring('error(1)', '=' .. E))()");
  std::string script = form;
  for (std::size_t at = script.find('E'); at != std::string::npos; at = script.find('E', at + 9))
    script.replace(at, 1, evil);
  for (const Resp dialect : {Resp::two, Resp::three}) {
    const std::string reply = run_script(interpreter, host, script, dialect);
    INFO(script << reply);
    if (reply.front() == '$' || reply.front() == '=') continue;  // framed by its length
    CHECK(reply.find('\n') == reply.size() - 1);
    CHECK(reply.find('\r') == reply.size() - 2);
  }
}

TEST_CASE("environment: a script leaves nothing behind for the next", "[lua][environment]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  const char* const script =
      GENERATE("x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "string.x = 1", "string.len = 1",
               "redis.call = 1", "redis.x = 1", "server.x = 1", "rawset(string, 'x', 1)",
               "rawset(redis, 'call', 1)", "setmetatable(_G, {})", "setmetatable(string, {})",
               "setmetatable(redis, nil)", "getmetatable('').__index = 1", "getmetatable('').x = 1",
               "getmetatable(_G).__index = nil", "getmetatable(_G).__newindex = 1",
               "getmetatable('').__index.len = 1", "table.insert(string, 1)", "table.insert(_G, 1)",
               "table.insert(getmetatable(''), 1)", "cjson.encode = 1", "cjson.x = 1", "math.x = 1",
               "bit.x = 1", "coroutine.x = 1", "_G._G = 1", "KEYS = 1", "ARGV = {}",
               "for k, v in pairs(_G) do if type(v) == 'table' then v.x = 1 end end",
               "for k, v in pairs(string) do string[k] = nil end", "table.x = 1",
               "local n, t = pairs(string) rawset(t, 'x', 1)", "__redis__err__handler = 1");
  INFO(script);
  const std::string reply = run_script(interpreter, host, script);
  INFO(reply);
  CHECK(reply.find("Attempt to modify a readonly table") != std::string::npos);
  CHECK(run_script(interpreter, host,
                   "return {rawget(_G, 'x') == nil, string.x == nil, redis.x == nil, type(KEYS), "
                   "('abc'):len(), string.len('ab'), string[1] == nil, rawget(_G, 1) == nil}") ==
        "*8\r\n:1\r\n:1\r\n:1\r\n$5\r\ntable\r\n:3\r\n:2\r\n:1\r\n:1\r\n");
}

TEST_CASE("environment: KEYS and ARGV are the run's own", "[lua][environment]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::string script = "KEYS[3] = 'x' ARGV.y = 1 return {#KEYS, #ARGV, KEYS[1], ARGV[2]}";
  CHECK(run_script(interpreter, host, script, Resp::two, {"a", "b"}, {"c", "d"}) ==
        "*4\r\n:3\r\n:2\r\n$1\r\na\r\n$1\r\nd\r\n");
  CHECK(run_script(interpreter, host, "return {#KEYS, #ARGV, ARGV.y == nil, KEYS[3] == nil}") ==
        "*4\r\n:0\r\n:0\r\n:1\r\n:1\r\n");
}

TEST_CASE("redis: setresp holds for one run", "[lua][environment]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::string ask = "return redis.call('get', 'nothing') == nil";
  CHECK(run_script(interpreter, host, "redis.setresp(3) " + ask) == ":1\r\n");
  CHECK(run_script(interpreter, host, ask) == "$-1\r\n");
}

TEST_CASE("redis: log and acl_check_cmd reach the host", "[lua][environment]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  run_script(interpreter, host, "redis.log(redis.LOG_WARNING, 'a', 1, nil, {}, 'b')");
  REQUIRE(host.logged.size() == 1);
  CHECK(host.logged[0].first == lua::LogLevel::warning);
  CHECK(host.logged[0].second == "a 1 b");
  CHECK(run_script(interpreter, host,
                   "return {redis.acl_check_cmd('get', 'x'), redis.acl_check_cmd('set', 'x')}") ==
        "*2\r\n:1\r\n$-1\r\n");
  CHECK(run_script(interpreter, host, "return redis.acl_check_cmd('nosuch')")
            .starts_with("-ERR Invalid command passed to redis.acl_check_cmd() script: "));
}

TEST_CASE("interpreter: scripts are kept by their sha until they are forgotten", "[lua]") {
  FakeHost host;
  lua::Interpreter interpreter{lua::Bounds{}};
  CHECK_FALSE(interpreter.has("one"));
  REQUIRE(interpreter.compile("one", "return 1").ok());
  REQUIRE(interpreter.compile("two", "return 2").ok());
  REQUIRE(interpreter.compile("one", "return 11").ok());
  CHECK(interpreter.compile("three", "return return").error().detail ==
        "user_script:1: unexpected symbol near 'return'");
  CHECK_FALSE(interpreter.has("three"));
  std::string reply;
  interpreter.run("one", {}, host, reply);
  interpreter.run("two", {}, host, reply);
  CHECK(reply == ":11\r\n:2\r\n");
  interpreter.forget("one");
  CHECK_FALSE(interpreter.has("one"));
  reply.clear();
  interpreter.run("one", {}, host, reply);
  CHECK(reply == "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

}  // namespace semel::tests
