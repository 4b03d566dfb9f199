// The libraries of scripts alone: a hostile call soon ends with an error, on a small stack, and the
// state stays usable.
#include <pthread.h>

#include <array>
#include <string>
#include "tests/support/catch.hpp"

#include "lua_compat/libraries/libraries.hpp"
#include "tests/lua_compat/lua_fixture.hpp"

namespace semel::tests {
namespace {

constexpr const char* too_long = "script ran for too many steps";

/// Bounds that are exhausted quickly.
lua::Bounds small_bounds() {
  lua::Bounds bounds;
  bounds.steps = 5'000'000;
  bounds.memory_bytes = std::size_t{16} << 20;
  bounds.allocated_bytes = std::size_t{256} << 20;
  return bounds;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The stack of a fibre; the frames of AddressSanitizer are several times as large.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t stack_bytes = std::size_t{2} << 20;
#else
constexpr std::size_t stack_bytes = std::size_t{256} << 10;
#endif

/// Runs `texts` on a stack that small.
std::vector<std::string> run_on_small_stack(const std::vector<std::string>& texts) {
  struct Job {
    const std::vector<std::string>& texts;
    std::vector<std::string> results;
  };
  Job job{texts, {}};
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
  pthread_t thread{};
  const auto body = [](void* argument) -> void* {
    Job& own = *static_cast<Job*>(argument);
    LuaFixture lua{small_bounds()};
    for (const std::string& text : own.texts) own.results.push_back(lua.run(text));
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, body, &job) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  REQUIRE(pthread_attr_destroy(&attributes) == 0);
  return job.results;
}

}  // namespace

TEST_CASE("libraries: what would run for ever is ended by its steps", "[lua][hostile]") {
  const auto hostile = GENERATE(
      "return string.find(('a'):rep(50000), ('a?'):rep(24) .. 'b')",
      "return string.find(('a'):rep(50000), ('.-'):rep(10) .. 'b')",
      "return string.find(('a'):rep(50000), ('a*'):rep(10) .. 'b')",
      "return string.match(('a'):rep(50000), '(.-)(.-)(.-)b%1')",
      "return string.gsub(('('):rep(50000), '%b()', '')",
      "return string.find(('a'):rep(40000), ('(a*)%1'):rep(4) .. 'b')",
      "for x in string.gmatch(('a'):rep(50000), '.-.-b') do end",
      "for i = 1, 1e9 do string.find('aaaaaaaaaaaaaaaaaaaa', 'a*a*a*b') end",
      "local s = ('a'):rep(4e6) for i = 1, 1e9 do string.find(s, 'b', 1, true) end",
      "local t = {} table.insert(t, -2147483648, 1)",
      "local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e9 do table.insert(t, 1, 1) "
      "table.remove(t, 1) end",
      "local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e9 do table.sort(t) end",
      "local t = {} for i = 1, 1e5 do t[i] = 1 end for i = 1, 1e9 do table.maxn(t) end",
      "local t = {} for i = 1, 1e5 do t[i] = 'x' end for i = 1, 1e9 do table.concat(t) end",
      "local t = {} for i = 1, 7000 do t[i] = i end for i = 1, 1e9 do local a = unpack(t) end",
      "for i = 1, 1e9 do string.rep('x', 100000) end",
      "local t = {} for i = 1, 1e5 do t[i] = 1 end for i = 1, 1e9 do cmsgpack.pack(t) end",
      "local t = {} for i = 1, 1e5 do t[i] = 1 end for i = 1, 1e9 do cjson.encode(t) end",
      "local s = '[' .. ('1,'):rep(1e5) .. '1]' for i = 1, 1e9 do cjson.decode(s) end",
      "local s = ('1'):rep(1e5) for i = 1, 1e9 do cjson.decode(s) end",
      "local s = ('\\1'):rep(7000) for i = 1, 1e9 do cmsgpack.unpack(s) end",
      "local s = (' '):rep(1e5) for i = 1, 1e9 do struct.size(s) end",
      "local s, t = ('%5d '):rep(1000), {} for i = 1, 1000 do t[i] = i end "
      "for i = 1, 1e9 do string.format(s, unpack(t)) end");
  LuaFixture lua{small_bounds()};
  INFO(hostile);
  const std::string error = lua.run(hostile);
  INFO(error);
  CHECK((has(error, too_long) || has(error, "script allocated too much memory")));
  CHECK(lua.run("return string.rep('ab', 2)") == "abab");
}

TEST_CASE("libraries: a script cannot catch that its steps are used up", "[lua][hostile]") {
  LuaFixture lua{small_bounds()};
  const std::string script =
      "local n = 0 while true do pcall(string.find, ('a'):rep(50000), ('a?'):rep(24) .. 'b') "
      "n = n + 1 if n > 100 then return table.concat({}) end end";
  CHECK(has(lua.run(script), too_long));
}

TEST_CASE("libraries: what would be too large is refused", "[lua][hostile]") {
  const auto hostile =
      GENERATE("return string.rep('x', 2147483647)", "return string.rep(('x'):rep(1e6), 1e6)",
               "local s = ('x'):rep(1e6) return string.gsub(s, '.', s)",
               "cjson.encode_sparse_array(true, 0, 0) return cjson.encode({[2147483647] = 1})",
               "local s = ('x'):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end "
               "return cjson.encode(t)",
               "local s = ('x'):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end "
               "return cmsgpack.pack(t)",
               "local s = ('x'):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end "
               "return table.concat(t, s)",
               "local s = ('x'):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end "
               "return struct.pack(('s'):rep(1000), unpack(t))",
               "local s = ('x'):rep(1e6) local t = {} for i = 1, 1000 do t[i] = s end "
               "return string.format(('%s'):rep(1000), unpack(t))",
               "local t = 'x' for i = 1, 16 do t = {t, t, t, t} end return cmsgpack.pack(t)",
               "local t = 'x' for i = 1, 100 do t = {t, t} end return cjson.encode(t)");
  lua::Bounds bounds = small_bounds();
  bounds.steps = 100'000'000;
  LuaFixture lua{bounds};
  INFO(hostile);
  const std::string error = lua.run(hostile);
  INFO(error);
  CHECK((has(error, "not enough memory") || has(error, "too much memory")));
  CHECK(lua.run("return string.rep('ab', 2)") == "abab");
  CHECK(lua.budget().memory_used < bounds.memory_bytes);
}

TEST_CASE("libraries: depth costs no stack", "[lua][hostile]") {
  const std::vector<std::string> results = run_on_small_stack({
      // Arguments that are deep.
      "return tostring(cmsgpack.unpack(('\\145'):rep(1e6)))",
      "return tostring(cmsgpack.unpack(('\\129\\1'):rep(1e6)))",
      "return tostring(cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(1e5)))",
      "cjson.decode_max_depth(2147483647) return tostring(cjson.decode(('['):rep(1e6)))",
      "cjson.decode_max_depth(2147483647) return tostring(cjson.decode(('{\"a\":'):rep(1e6)))",
      "cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)",
      "cjson.encode_max_depth(2147483647) local t = {} t.a = t return cjson.encode(t)",
      "local t = {} for i = 1, 1e5 do t = {t} end return cmsgpack.pack(t)",
      "return tostring(string.find(('a'):rep(1e6), ('a-'):rep(1e4) .. 'b'))",
      "return #string.gsub(('a'):rep(1e5), ('(a)'):rep(32), '%1')",
      // Functions that call back what calls them.
      "local function f() return (string.gsub('aaaa', 'a', f)) end return f()",
      "local function f() return (string.gsub('aaaa', ('(a)'):rep(4), f)) end return f()",
      "local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) "
      "return (string.gsub('a', '.', t)) end return t.x",
      "local function f() table.sort({3, 2, 1}, f) end return tostring(f())",
      "local function f() table.foreach({1}, f) end return tostring(f())",
      "local function f() table.foreachi({1}, f) end return tostring(f())",
      "local t = {} local mt = {} mt.__lt = function() table.sort({setmetatable({}, mt), "
      "setmetatable({}, mt)}) end table.sort({setmetatable({}, mt), setmetatable({}, mt)})",
  });
  for (const std::string& result : results) {
    INFO(result);
    CHECK((has(result, "stack overflow") || has(result, "nest") || has(result, "\xc0") ||
           has(result, too_long) || has(result, "Missing bytes") || result == "3125"));
  }
}

TEST_CASE("libraries: yielding out of them is refused", "[lua][hostile]") {
  LuaFixture lua;
  for (const char* const call :
       {"table.sort({2, 1, 3}, coroutine.yield)", "table.foreach({1}, coroutine.yield)",
        "string.gsub('a', 'a', coroutine.yield)"}) {
    const std::string error = lua.evaluate("coroutine.resume(coroutine.create(function() " +
                                           std::string{call} + " end))");
    INFO(call);
    CHECK(has(error, "attempt to yield across C-call boundary"));
  }
}

TEST_CASE("libraries: a matcher goes on in another coroutine", "[lua]") {
  LuaFixture lua;
  CHECK(lua.evaluate("(function() local next = string.gmatch('a b c', '%a') local t = {} "
                     "for i = 1, 4 do t[i] = coroutine.wrap(next)() end return t end)()") ==
        "{[1]=\"a\",[2]=\"b\",[3]=\"c\"}");
}

TEST_CASE("libraries: what 5.1 lacks is not there", "[lua]") {
  LuaFixture lua;
  CHECK(lua.evaluate("string.dump, table.move, table.new, table.unpack") == "nil nil nil nil");
}

TEST_CASE("libraries: each table of JSON functions has its own settings", "[lua]") {
  LuaFixture lua;
  CHECK(lua.evaluate("cjson.new().encode_max_depth(1), cjson.encode_max_depth()") == "1 1000");
  CHECK(has(lua.evaluate("cjson.encode_keep_buffer('x')"), "invalid option 'x'"));
}

}  // namespace semel::tests
