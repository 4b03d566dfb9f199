// Scripts that try to end the process or to keep it busy for ever. Each runs on the stack of a
// fibre, ends with the expected error, and leaves the interpreter usable.
//
// Words: a *bound* is one of lua::Bounds.
#include <pthread.h>

#include <functional>
#include "tests/support/catch.hpp"

#include "tests/lua_compat/fake_host.hpp"

namespace semel::tests {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_bytes = std::size_t{2} << 20;  // their frames are larger
#else
constexpr std::size_t stack_bytes = std::size_t{256} << 10;
#endif

/// Runs `work` on a thread with the stack of a fibre.
void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  REQUIRE(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
  pthread_t thread{};
  const auto start = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  const int error =
      pthread_create(&thread, &attributes, start, const_cast<std::function<void()>*>(&work));
  if (error == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  REQUIRE(error == 0);  // not before: Catch2 takes assertions from one thread at a time
}

lua::Bounds small_bounds() {
  lua::Bounds bounds;
  bounds.steps = 3'000'000;
  bounds.memory_bytes = std::size_t{8} << 20;
  bounds.allocated_bytes = std::uint64_t{64} << 20;
  bounds.reply_bytes = std::size_t{1} << 20;
  return bounds;
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t at = 0; at < times; ++at) all += text;
  return all;
}

/// Returns the reply, and checks that the interpreter is usable afterwards.
std::string outcome(const std::string& script) {
  std::string reply;
  std::string after;
  std::size_t kept = 0;
  on_small_stack([&] {
    lua::Interpreter interpreter{small_bounds()};
    FakeHost host;
    static_cast<void>(run_script(interpreter, host, "return 1"));
    interpreter.collect();
    const std::size_t before = interpreter.memory_bytes();
    reply = run_script(interpreter, host, script);
    after = run_script(interpreter, host, "local t = {} for i = 1, 100 do t[i] = i end return #t");
    // A buffer of LuaJIT's is halved by each.
    for (int round = 0; round < 4; ++round) interpreter.collect();
    kept = interpreter.memory_bytes() - std::min(before, interpreter.memory_bytes());
  });
  CHECK(after == ":100\r\n");
  // What is kept is the present script, and LuaJIT's tables that grew.
  CHECK(kept < (1 << 20));
  return reply;
}

/// Kills the script at the first pause after it has set a key, or at its very first.
class KilledHost final : public lua::Host {
 public:
  explicit KilledHost(bool kills) noexcept : kills_(kills) {}
  void call(std::span<const std::string_view> words, net::Resp dialect,
            std::string& reply) override {
    kills_ = kills_ || words[0] == "set";
    net::RespWriter{reply, dialect}.ok();
  }
  [[nodiscard]] std::optional<bool> may_call(std::span<const std::string_view>) override {
    return true;
  }
  void log(lua::LogLevel, std::string_view) override {}
  [[nodiscard]] lua::Stop pause() override {
    if (!kills_) return lua::Stop::none;
    ++pauses_since;
    return lua::Stop::killed;
  }
  std::size_t pauses_since = 0;

 private:
  bool kills_;
};

const char* const steps = "script ran for too many steps";
const char* const no_memory = "not enough memory";

}  // namespace

TEST_CASE("hostile: what runs for ever ends, whatever it catches", "[lua][hostile]") {
  const char* const script = GENERATE(
      "while true do end", "repeat until false", "local function f() return f() end return f()",
      "while true do pcall(function() while true do end end) end", "while true do pcall(error) end",
      "local function f() pcall(f) return f() end f()",
      "while true do xpcall(function() while true do end end, function() while true do end end) "
      "end",
      "xpcall(function() error('x') end, function() while true do end end) while true do end",
      "while true do local c = coroutine.create(function() while true do end end) "
      "coroutine.resume(c) end",
      "while true do local c = coroutine.wrap(function() while true do end end) pcall(c) end",
      "local c = coroutine.wrap(function() while true do coroutine.yield() end end) "
      "while true do c() end",
      "while true do load(function() while true do end end) end", "load(function() return 'x' end)",
      "while true do loadstring('while') end", "while true do collectgarbage() end",
      "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
      "while true do redis.pcall('get', 'x') end", "while true do redis.sha1hex('x') end",
      "while true do redis.log(1, 'x') end",
      "return setmetatable({}, {__call = function(t) while true do end end})()",
      "for k in pairs(setmetatable({}, {})) do end while true do ipairs({}) end",
      "while true do tostring(setmetatable({}, {__tostring = function() while true do end end})) "
      "end",
      "local function f() while true do pcall(coroutine.wrap(function() pcall(f) end)) end end "
      "f()");
  INFO(script);
  const std::string reply = outcome(script);
  INFO(reply.substr(0, 200));
  // Some of them meet another bound first.
  const bool ended = reply.find(steps) != std::string::npos ||
                     reply.find("stack overflow") != std::string::npos ||
                     reply.find(no_memory) != std::string::npos ||
                     reply.find("script allocated too much") != std::string::npos;
  CHECK(ended);
  CHECK(reply.starts_with("-ERR "));
}

// Each is one call of a C function that would take all of the script's steps, or many of them.
TEST_CASE("hostile: one call of a C function pauses, and ends when it is killed",
          "[lua][hostile][attack][fault-5]") {
  const char* const script = GENERATE(
      "return string.find(string.rep('a', 100000), string.rep('a-', 50) .. 'b')",
      "return string.match(string.rep('a', 100000), string.rep('a*', 50) .. 'b')",
      "return string.gsub(string.rep('a', 100000), string.rep('a?', 50) .. 'b', '')",
      "return string.gmatch(string.rep('a', 100000), string.rep('a-', 50) .. 'b')()",
      "return string.find(string.rep('a', 30000), '(a*)%1b')",
      "return string.find(string.rep('(', 30000), '%b()')",
      "return string.gsub(string.rep('a', 1000000), '.', '%0')",
      "return string.gsub(string.rep('a', 1000000), '', 'b')",
      "return string.gsub(string.rep('a', 1000000), 'a', {a = 'b'})",
      "local t = {} for i = 1, 100000 do t[i] = (i * 7919) % 100003 end PAUSED() table.sort(t)",
      "local t = {} for i = 1, 100000 do t[i] = 'x' end PAUSED() return table.concat(t, ',')",
      "local t = {} for i = 1, 100000 do t[i] = i end PAUSED() return cjson.encode(t)",
      "local t = {} for i = 1, 100000 do t[i] = i end PAUSED() return cmsgpack.pack(t)",
      "local s = '[' .. string.rep('1,', 200000) .. '1]' PAUSED() return cjson.decode(s)",
      "local s = cmsgpack.pack({1, 2, 3}) s = string.rep(s, 50000) PAUSED() return "
      "cmsgpack.unpack(s)",
      "local t = {} for i = 1, 100000 do t[i] = i end PAUSED() for i = 1, 20 do "
      "table.insert(t, 1, 0) end",
      "local t = {} for i = 1, 100000 do t[i] = i end PAUSED() for i = 1, 20 do "
      "table.remove(t, 1) end",
      "local s = string.rep('x', 1000000) PAUSED() for i = 1, 9 do redis.sha1hex(s) end",
      "local s = string.rep('x', 1000000) PAUSED() for i = 1, 9 do struct.pack('s', s) end",
      "local s = string.rep('a = 1 ', 100000) PAUSED() return loadstring(s)",
      "local s = string.rep('x', 1000000) PAUSED() for i = 1, 9 do string.format('%q', s) end",
      "return string.rep('ab', 1000000)");
  INFO(script);
  std::string text = script;
  // What prepares the input may pause as often as it likes: it is killed from here on.
  const std::size_t mark = text.find("PAUSED()");
  if (mark != std::string::npos) text.replace(mark, 8, "redis.call('set', 'mark', '1')");
  std::string reply;
  std::size_t pauses = 0;
  on_small_stack([&] {
    lua::Bounds bounds;
    bounds.steps = 20'000'000;
    lua::Interpreter interpreter{bounds};
    KilledHost host{mark == std::string::npos};
    reply = run_script(interpreter, host, text);
    pauses = host.pauses_since;
  });
  INFO(reply.substr(0, 200));
  CHECK(reply.find("Script killed by user") != std::string::npos);
  CHECK(pauses == 1);
}

TEST_CASE("hostile: a library's code is asked for pauses while it is loaded",
          "[lua][hostile][attack][fault-5]") {
  const char* const code =
      GENERATE("local _ = (('a'):rep(100000)):find(('a-'):rep(50) .. 'b')", "while true do end");
  INFO(code);
  std::string error;
  on_small_stack([&] {
    lua::Interpreter interpreter{lua::Bounds{}};
    FakeHost host;
    host.pauses_max = 3'000;
    host.stop = lua::Stop::time;
    error = interpreter.load_library("lib", code, &host).error().detail;
    CHECK(host.calls == 0);
    CHECK(host.pauses == host.pauses_max + 1);
  });
  CHECK(error == "registering functions: ERR FUNCTION LOAD timeout");
}

TEST_CASE("hostile: memory is bounded, at once and altogether", "[lua][hostile]") {
  const auto [script, error] = GENERATE(table<const char*, const char*>({
      {"local s = 'x' while true do s = s .. s end", no_memory},
      {"local t = {} while true do t[#t + 1] = {} end", no_memory},
      {"local t = {} for i = 1, 1e9 do t[i] = i end", no_memory},
      {"local t = {} for i = 1, 1e9 do t[{}] = i end", no_memory},
      {"local t = {} for i = 1, 1e9 do t[i] = coroutine.create(function() end) end", no_memory},
      {"local t = {} for i = 1, 1e9 do t[i] = function() return i end end", no_memory},
      {"local s = string.rep('x', 1e5) local i = 0 while true do i = i + 1 local t = s .. i end",
       "script allocated too much memory"},
      {"local s = string.rep('x', 1e5) local i = 0 while true do pcall(function() i = i + 1 local "
       "t = s .. i end) end",
       "script allocated too much memory"},
      {"while true do pcall(function() local s = 'x' while true do s = s .. s end end) end",
       "script allocated too much memory"},
  }));
  INFO(script);
  const std::string reply = outcome(script);
  INFO(reply.substr(0, 200));
  CHECK(reply.starts_with("-ERR "));
  CHECK(reply.find(error) != std::string::npos);
}

TEST_CASE("hostile: garbage is not taken for memory in use", "[lua][hostile]") {
  CHECK(outcome("local s = string.rep('x', 3e5) for i = 1, 200 do local t = s .. i end return 7") ==
        ":7\r\n");
  CHECK(outcome("for i = 1, 2e5 do local t = {i, i, i} end return 7") == ":7\r\n");
  CHECK(outcome("local ok, e = pcall(string.rep, 'x', 1e8) return e").find(no_memory) !=
        std::string::npos);
}

TEST_CASE("hostile: calls within calls end before the stack does", "[lua][hostile]") {
  const char* const script = GENERATE(
      "local function f() return 1 + f() end return f()",
      "local function f() return (pcall(f)) end return f()",
      "local function f() return (xpcall(f, f)) end return f()",
      "local function f() error(xpcall(f, f)) end return f()",
      "local function f() return coroutine.wrap(f)() end return f()",
      "local function f() return (coroutine.resume(coroutine.create(f))) end return f()",
      "local function f() local s = false return load(function() if s then return nil end s = true "
      "f() return 'return 1' end) end return f()",
      "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end "
      "return t.x",
      "local t = setmetatable({}, {}) getmetatable(t).__newindex = t t.x = 1",
      "local t = setmetatable({}, {}) getmetatable(t).__concat = function(a, b) return a .. b end "
      "return t .. t",
      "local t = setmetatable({}, {}) getmetatable(t).__tostring = function(a) return tostring(a) "
      "end return tostring(t)",
      "local t = setmetatable({}, {}) getmetatable(t).__eq = function(a, b) return a == b end "
      "return t == setmetatable({}, getmetatable(t))",
      "local function h() local ok, e = xpcall(function() error('x') end, h) error(e) end "
      "return xpcall(h, h)",
      "table.foreach({1}, function() local function f() table.foreach({1}, f) end f() end)",
      "local t = {} for i = 1, 1e4 do t = setmetatable({}, {__index = t}) end return t.x",
      "local function f(...) return f(1, ...) end return f()",
      "local function f(n) if n == 0 then error('x') end return (pcall(f, n - 1)) end return "
      "f(1e9)");
  INFO(script);
  const std::string reply = outcome(script);
  INFO(reply.substr(0, 200));
  CHECK(!reply.empty());
}

TEST_CASE("hostile: libraries that call back end before the stack does", "[lua][hostile]") {
  const char* const script = GENERATE(
      "local f f = function() return (string.gsub('a', 'a', f)) end return f()",
      "local function f() pcall(string.gsub, 'a', 'a', f) end f() return string.gsub('a', 'a', f)",
      "local function f() table.sort({3, 2, 1}, function(a, b) f() return a < b end) end f()",
      "local function f() pcall(table.sort, {3, 2, 1}, f) end f() return table.sort({2, 1}, f)",
      "local function f() coroutine.wrap(function() string.gsub('a', 'a', f) end)() end f()",
      "local t = setmetatable({}, {}) getmetatable(t).__tostring = function() "
      "return string.format('%s', t) end return string.format('%s', t)");
  INFO(script);
  const std::string reply = outcome(script);
  INFO(reply.substr(0, 200));
  CHECK(!reply.empty());
}

TEST_CASE("hostile: texts that are deep inside themselves", "[lua][hostile]") {
  const std::size_t many = 50'000;
  const std::string script = GENERATE_COPY(
      "return " + repeated("(", many) + "1" + repeated(")", many),
      "return " + repeated("{", many) + repeated("}", many), "return " + repeated("-", many) + "1",
      "return " + repeated("not ", many) + "1", "return 'a'" + repeated("..'a'", many),
      "return 1" + repeated("^1", many), "return " + repeated("function() return ", many) + "1",
      repeated("do ", many), repeated("if 1 then ", many), repeated("while 1 do ", many),
      repeated("repeat ", many), "local a = {} a" + repeated("[a", many),
      "return f" + repeated("(f", many), "return a" + repeated(".a", many),
      "return f" + repeated("()", many), "local " + repeated("a,", many) + "a",
      "return " + repeated("1,", many) + "1",
      "if x then" + repeated(" elseif x then", many) + " end",
      "local x = 0 " + repeated("x = x + 1 ", many) + "return x", repeated("goto a ", many),
      repeated("::a:: ", many), "return [" + repeated("=", many) + "[", repeated("\xff", many),
      "return '" + repeated("\\z", many) + "'", "return '" + repeated("\\", many));
  INFO(script.substr(0, 60));
  const std::string reply = outcome(script);
  INFO(reply.substr(0, 200));
  CHECK(!reply.empty());
  CHECK(outcome("return loadstring(...)").starts_with("-ERR"));
}

TEST_CASE("hostile: replies are bounded in size and depth", "[lua][hostile][once-again-21]") {
  const std::string too_deep = "-ERR reached lua stack limit\r\n";
  CHECK(outcome("local t = {} t[1] = t return t") == repeated("*1\r\n", 128) + too_deep);
  const auto nested = [](int depth) {
    return outcome("local t = {} local c = t for i = 2, " + std::to_string(depth) +
                   " do c[1] = {} c = c[1] end return t");
  };
  CHECK(nested(128).find("lua stack") == std::string::npos);
  CHECK(nested(129).ends_with("*1\r\n" + too_deep));
  CHECK(outcome("local t = {} t.map = {a = t} return t").ends_with("$1\r\na\r\n" + too_deep));
  CHECK(outcome("local t = {} t.map = {[t] = 1} return t").find(too_deep) != std::string::npos);
  CHECK(outcome("local t = {} for i = 1, 127 do t = {t} end return t").ends_with("*1\r\n*0\r\n"));
  CHECK(outcome("local t = {} for i = 1, 128 do t = {t} end return t").ends_with(too_deep));
  // What lies behind is still written, and a tree of errors is as bounded as any reply.
  CHECK(outcome("local t = {} t[1] = t t[2] = 7 return t").find(too_deep + ":7\r\n") !=
        std::string::npos);
  CHECK(outcome("local t = {} t[1] = t t[2] = t return t")
            .starts_with("-ERR the reply of the script is too large"));
  CHECK(outcome("return string.rep('x', 2e6)").starts_with("-ERR the reply of the script is too"));
  CHECK(
      outcome("local s = string.rep('x', 1e5) local t = {} for i = 1, 20 do t[i] = s end return t")
          .starts_with("-ERR the reply of the script is too large"));
  CHECK(outcome("error(string.rep('x', 4e6))").size() < 1'100'000);
}

TEST_CASE("hostile: what would be precompiled or foreign is neither", "[lua][hostile]") {
  CHECK(outcome("return {type(loadstring('\\27LJ\\2')), select(2, loadstring('\\27LJ'))}")
            .find("unexpected symbol near") != std::string::npos);
  CHECK(outcome("\x1bLJ\x02").starts_with("-ERR Error compiling script"));
  CHECK(outcome("\xef\xbb\xbf\x1bLJ\x02").starts_with("-ERR Error compiling script"));
  for (const char* const number : {"1LL", "0x1ULL", "2i", "0b11", "1e2i", "3uLl"}) {
    const std::string text = number;
    INFO(text);
    CHECK(outcome("return " + text) ==
          "-ERR Error compiling script (new function): user_script:1: malformed number near '" +
              text + "'\r\n");
    CHECK(outcome("return select(2, loadstring('return\\n" + text + "', '=x'))")
              .find("x:2: malformed number near '" + text + "'") != std::string::npos);
  }
  CHECK(outcome("return {type(rawget(_G, 'jit')), type(rawget(_G, 'ffi')), type(rawget(_G, 'io')),"
                "type(rawget(_G, 'os')), type(rawget(_G, 'debug')), type(rawget(_G, 'package')),"
                "type(rawget(_G, 'require')), type(rawget(_G, 'newproxy'))}") ==
        "*8\r\n" + repeated("$3\r\nnil\r\n", 8));
}

TEST_CASE("hostile: a stop by the host is not caught", "[lua][hostile]") {
  const char* const script = GENERATE(
      "while true do end", "\nwhile true do pcall(function() while true do end end) end",
      "while true do coroutine.wrap(function() while true do end end)() end",
      "while true do xpcall(function() while true do end end, function() return 1 end) end",
      "while true do coroutine.resume(coroutine.create(function() while true do end end)) end");
  FakeHost host;
  host.pauses_max = 5;
  lua::Interpreter interpreter{lua::Bounds{}};
  host.stop = lua::Stop::killed;
  const std::string killed = run_script(interpreter, host, script);
  CHECK(killed.starts_with("-ERR Script killed by user with SCRIPT KILL... script: aaaa"));
  CHECK(killed.find(", on @user_script:") != std::string::npos);
  CHECK(host.pauses == 6);
  host.stop = lua::Stop::time;
  host.pauses = 0;
  CHECK(run_script(interpreter, host, script).starts_with("-ERR script ran for too long script: "));
  host.stop = lua::Stop::none;
  CHECK(run_script(interpreter, host, "return 1") == ":1\r\n");
}

TEST_CASE("hostile: chains of branches are as long as they can be compiled in", "[lua][hostile]") {
  lua::Interpreter interpreter{lua::Bounds{}};
  FakeHost host;
  const auto chain = [&](std::size_t branches) {
    return run_script(
        interpreter, host,
        "local x if x == 0 then " + repeated("elseif x == 1 then ", branches) + "end return 1");
  };
  CHECK(chain(1'000) == ":1\r\n");
  CHECK(chain(10'001).find("more than 10000 of elseif, and, or, break near 'elseif'") !=
        std::string::npos);
}

TEST_CASE("hostile: memory that is full to the brim is collected all the same", "[lua][hostile]") {
  lua::Bounds bounds = small_bounds();
  bounds.allocated_bytes = std::uint64_t{512} << 20;
  lua::Interpreter interpreter{bounds};
  FakeHost host;
  // Strings without end: the table that holds them all shrinks when they are gone.
  for (int round = 0; round < 8; ++round) {
    const std::string filled = run_script(
        interpreter, host,
        "local t = {} for i = 1, 2^53 do t['" + std::to_string(round) + " key ' .. i] = i end");
    CHECK(filled.find(no_memory) != std::string::npos);
    CHECK(run_script(interpreter, host, "return #ARGV") == ":0\r\n");
  }
  CHECK(!interpreter.is_crowded());
}

}  // namespace semel::tests
