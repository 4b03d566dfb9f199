// Which scripts are proven to touch nothing but what KEYS names.
#include "tests/support/catch.hpp"

#include "lua_compat/matcher/known_scripts.hpp"
#include "net/scripts/native_scripts.hpp"

namespace semel::tests {
namespace {

bool declares(const char* text) {
  return lua::shape_of(text, net::key_positions).declares_keys;
}

}  // namespace

TEST_CASE("shape: keys that are elements of KEYS are declared", "[lua][shape]") {
  for (const char* text : {
           "return 1",
           "return redis.call('get', KEYS[1])",
           "return redis.call('GET', KEYS[1])",
           "return redis['call']('get', KEYS[ARGV[1] + 0])",
           "return server.call('get', KEYS[1])",
           "local k = KEYS[1] return redis.call('get', k)",
           "local k, v = KEYS[1], ARGV[1] return redis.call('set', k, v)",
           "for i = 1, #KEYS do redis.call('del', KEYS[i]) end",
           "for i, k in ipairs(KEYS) do redis.call('del', k) end",
           "for _, k in pairs(KEYS) do redis.call('del', k) end",
           "return redis.call('del', unpack(KEYS))",
           "return redis.call('del', KEYS[1], unpack(KEYS, 2))",
           "return redis.call('mset', KEYS[1], ARGV[1], KEYS[2], ARGV[2])",
           "return redis.call('set', KEYS[1], unpack(ARGV))",
           "return redis.call('hset', KEYS[1], unpack(ARGV))",
           "local call = redis.call call('set', KEYS[1], 1) return call('get', KEYS[1])",
           "redis.call('publish', ARGV[1], KEYS[1]) return redis.call('time')",
           "return redis.error_reply('NO ' .. KEYS[1])",
           "return redis.sha1hex(KEYS[1])",
           "redis.log(redis.LOG_WARNING, KEYS[1]) return cjson.encode({KEYS[1], unpack(KEYS)})",
           "local function f() return redis.call('get', KEYS[1]) end return f()",
           "local t = {} t.x = KEYS[1] t[KEYS[2]] = 1 return redis.call('get', KEYS[1])",
           "return redis.call('get', KEYS[redis.call('incr', KEYS[2])])",
           "local ok = pcall(function() redis.call('set', KEYS[1], 1) end) return ok",
           "return redis.call('rename', KEYS[1], KEYS[2])",
       }) {
    INFO(text);
    CHECK(declares(text));
  }
}

TEST_CASE("shape: in doubt keys are not declared", "[lua][shape]") {
  for (const char* text : {
           "return redis.call('get', ARGV[1])",
           "return redis.call('get', 'k')",
           "return redis.call('get', KEYS[1] .. ':x')",
           "return redis.call('get', KEYS[1], f())",
           "return redis.call('get', (KEYS[1] or 'x'))",
           "return redis.call('mset', KEYS[1], 1, ARGV[1], 2)",
           "return redis.call('mset', KEYS[1], unpack(ARGV))",
           "return redis.call('del', unpack(ARGV))",
           "return redis.call('del', KEYS[1], unpack(ARGV))",
           "return redis.call('rename', KEYS[1], ARGV[1])",
           "return redis.call('del', f(unpack(KEYS)))",
           "return redis.call(ARGV[1], KEYS[1])",
           "return redis.call(unpack(ARGV))",
           "return redis.call('keys', '*')",
           "return redis.call('scan', 0)",
           "return redis.call('randomkey')",
           "return redis.call('dbsize')",
           "return redis.call('flushall')",
           "redis.call('select', 1) return redis.call('get', KEYS[1])",
           "return redis.call('copy', KEYS[1], KEYS[2])",
           "return redis.call('move', KEYS[1], 1)",
           "return redis.call('swapdb', 0, 1)",
           "return redis.call('object', 'encoding', KEYS[1])",
           "return redis.call('nosuchcommand', KEYS[1])",
           "local k = KEYS[1] k = ARGV[1] return redis.call('get', k)",
           "local k = KEYS[1] local function f() k = 'x' end f() return redis.call('get', k)",
           "local k = ARGV[1] return redis.call('get', k)",
           "for k in pairs(KEYS) do redis.call('get', k) end",
           "for i, k in ipairs(KEYS) do k = 'x' redis.call('get', k) end",
           "for i, k in ipairs(ARGV) do redis.call('get', k) end",
           "local KEYS = {'x'} return redis.call('get', KEYS[1])",
           "local ipairs = f for i, k in ipairs(KEYS) do redis.call('get', k) end",
           "local unpack = f return redis.call('del', unpack(KEYS))",
           "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
           "KEYS = {'x'} return redis.call('get', KEYS[1])",
           "local k = KEYS k[1] = 'x' return redis.call('get', KEYS[1])",
           "local t = {KEYS} t[1][1] = 'x' return redis.call('get', KEYS[1])",
           "table.insert(KEYS, 1, 'x') return redis.call('get', KEYS[1])",
           "local f, t = ipairs(KEYS) t[1] = 'x' return redis.call('get', KEYS[1])",
           "local f = redis.call return g(f)",
           "local f = redis.call f = g return f('get', 'x')",
           "local r = redis return r.call('get', 'x')",
           "return redis[ARGV[1]]('get', 'x')",
           "local t = {redis.call} return t[1]('get', 'x')",
           "return pcall(redis.call, 'get', 'x')",
           "return (function(r) return r.call('get', 'x') end)(redis)",
           "return _G.redis.call('get', 'x')",
           "return _G['redis']['call']('get', 'x')",
           "return getfenv().redis.call('get', 'x')",
           "setfenv(1, {}) return redis.call('get', KEYS[1])",
           "return loadstring('return redis.call(\"get\", \"x\")')()",
           "return load(f)()",
           "setmetatable(KEYS, {}) return 1",
           "rawset(KEYS, 1, 'x') return redis.call('get', KEYS[1])",
           "redis.call = f return redis.call('get', KEYS[1])",
           "string.format = f return redis.call('get', KEYS[1])",
           "function unpack() return 'x' end return redis.call('del', unpack(KEYS))",
           "local function f(k) return redis.call('get', k) end return f(KEYS[1])",
           "local a, k = f(), KEYS[1], 1 k = a return redis.call('get', k)",
           "local k for i = 1, 2 do k = KEYS[i] end return redis.call('get', k)",
           "local debug = debug return 1",
           "return redis.call('eval', 'return 1', 0)",
           "return 'unread",
       }) {
    INFO(text);
    CHECK_FALSE(declares(text));
  }
}

}  // namespace semel::tests
