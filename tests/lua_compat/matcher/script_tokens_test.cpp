// The tokens of a script, and the form that texts with the same tokens have.
#include "lua_compat/matcher/script_tokens.hpp"

#include "tests/support/catch.hpp"

#include "lua_compat/matcher/known_scripts.hpp"

namespace semel::tests {

using lua::canonical_form;

namespace {

bool is_same(std::string_view left, std::string_view right) {
  const std::string form = canonical_form(left);
  return !form.empty() && form == canonical_form(right);
}

}  // namespace

TEST_CASE("tokens: what is only another look has one form", "[lua][tokens]") {
  const std::pair<const char*, const char*> pairs[] = {
      {"return 1", "  return\t1 -- one\r\n"},
      {"return 1", "--[==[ a\n ]] ]==] return--[[]]1;"},
      {"return 16", "return 0x10"},
      {"return 16", "return 1.6e1"},
      {"return 0.5", "return .5"},
      {"return 0.5", "return 5E-1"},
      {"return 'a'", "return \"\\97\""},
      {"return 'a'", "return [[a]]"},
      {"return 'a'", "return [==[\na]==]"},
      {"return '\\n'", "return [[\n\n]]"},
      {"return '\\n'", "return [[\r\n\r\n]]"},
      {"return '\\n'", "return '\\\n'"},
      {"return '\\'\"'", "return \"'\\\"\""},
      {"return a.b", "return a['b']"},
      {"return a.b", "return a[ [[b]] ]"},
      {"f('x')", "f'x'"},
      {"f('x')", "f[[x]]"},
      {"f({1})", "f{1}"},
      {"return {a = 1, 2}", "return {['a'] = 1; 2,}"},
      {"return (a == b)", "return a == b"},
      {"return a or (b and c)", "return a or b and c"},
      {"return a .. (b .. c)", "return a .. b .. c"},
      {"return -1", "return (- 1)"},
      {"local a = 1 return a", "local b = 1; return b;"},
      {"local a = a return a", "local b = a return b"},
      {"local function f(x) return f(x) end", "local function g(y) return g(y) end"},
      {"for i = 1, 2 do local i = i end", "for a = 1, 2 do local b = a end"},
      {"for k, v in pairs(t) do f(k, v) end", "for a, b in pairs(t) do f(a, b) end"},
      {"repeat local a = f() until a", "repeat local b = f() until b"},
      {"return redis.call('GET', 'K')", "return redis['call'](\"get\", 'K')"},
      {"return redis.pcall('GeT', 'K')", "return redis.pcall('get', 'K')"},
      {"(f)('x')", "f('x')"},
      {"", "-- nothing"},
  };
  for (const auto& [left, right] : pairs) {
    INFO(left << "\n" << right);
    if (*left != '\0') CHECK(is_same(left, right));
    CHECK(canonical_form(left) == canonical_form(right));
  }
}

TEST_CASE("tokens: what is another program has another form", "[lua][tokens]") {
  const std::pair<const char*, const char*> pairs[] = {
      {"return 1", "return '1'"},
      {"return 1", "return 1, nil"},
      {"return", "return nil"},
      {"return f()", "return (f())"},
      {"return f(...)", "return f((...))"},
      {"return a - (b - c)", "return a - b - c"},
      {"return a ^ b ^ c", "return (a ^ b) ^ c"},
      {"return -a ^ b", "return (-a) ^ b"},
      {"return not a == b", "return not (a == b)"},
      {"return a.b", "return a[b]"},
      {"return a.b", "return a.c"},
      {"return a:b()", "return a.b(a)"},
      {"local a = a return a", "local b = a return a"},
      {"local a, b = 1 return a", "local a, b = 1 return b"},
      {"local a do local a = 1 end return a", "local a do a = 1 end return a"},
      {"local f = function() return f end", "local function f() return f end"},
      {"for i = 1, 2 do f(i) end", "for i = 1, 2, 1 do f(i) end"},
      {"repeat local a = 1 until a", "repeat local b = 1 until a"},
      {"f('GET')", "f('get')"},
      {"local redis = redis redis.call('GET')", "local redis = redis redis.call('get')"},
      {"redis.call('get', 'K')", "redis.call('get', 'k')"},
      {"redis.call('get')", "redis.pcall('get')"},
      {"redis.call('get')", "server.call('get')"},
      {"if a then return 1 else return 2 end", "if a then return 1 end return 2"},
      {"if a then elseif b then end", "if a then else if b then end end"},
      {"return {1, 2}", "return {2, 1}"},
      {"return {{1}, 2}", "return {{1, 2}}"},
      {"return 'ab'", "return 'a' .. 'b'"},
      {"return '1:a'", "return 'a'"},
  };
  for (const auto& [left, right] : pairs) {
    INFO(left << "\n" << right);
    CHECK_FALSE(canonical_form(left).empty());
    CHECK_FALSE(canonical_form(right).empty());
    CHECK(canonical_form(left) != canonical_form(right));
  }
}

TEST_CASE("tokens: text that not all Lua versions read in the same way has no form",
          "[lua][tokens]") {
  const std::string nul{"return '\0'", 11};
  const std::string deep(300, '(');
  const std::string long_index = [] {
    std::string text = "return a";
    for (int i = 0; i < 400; ++i) text += ".b";
    return text;
  }();
  const std::string_view texts[] = {"return 'a",
                                    "return \"a\nb\"",
                                    "return [[a",
                                    "--[[ a",
                                    "return 3x",
                                    "return 0x",
                                    "return 1..2",
                                    "return 1e",
                                    "return 08f",
                                    "return '\\x41'",
                                    "return '\\z a'",
                                    "return '\\u{41}'",
                                    "return '\\300'",
                                    "return '\\q'",
                                    "return [=a",
                                    "return [[ [[ ]]",
                                    "return \xc3\xa4",
                                    "return a // b",
                                    "return a & b",
                                    "goto x",
                                    "return 1LL",
                                    "f\n(x)",
                                    "(a) = 1",
                                    "(f())",
                                    "a",
                                    "return 1 return 2",
                                    "break",
                                    "if a then",
                                    "end",
                                    "local 1",
                                    "function f(...,a) end",
                                    "function f(a,) end",
                                    "f(a,)",
                                    "return {,}",
                                    ";",
                                    "local function f() return ... end",
                                    "function f(...) return arg end",
                                    "for a, b = 1, 2 do end",
                                    "local a <const> = 1",
                                    "::x::",
                                    "while true do break f() end",
                                    nul,
                                    deep,
                                    long_index,
                                    "return 0x123456789abcdef0"};
  for (const std::string_view text : texts) {
    INFO(text);
    CHECK(canonical_form(text).empty());
  }
}

TEST_CASE("tokens: a script is looked at up to its bound", "[lua][tokens]") {
  const std::string begin = "return 1 --";
  const std::string rest(lua::script_bytes_max - begin.size(), '-');
  CHECK(canonical_form(begin + rest) == canonical_form("return 1"));
  CHECK(canonical_form(begin + rest + "-").empty());
}

TEST_CASE("tokens: many statements and names take no stack", "[lua][tokens]") {
  std::string chain = "local a0 = KEYS[1] ";
  for (int i = 1; i < 3000; ++i) {
    chain += "local a" + std::to_string(i) + "=a" + std::to_string(i - 1) + " ";
  }
  chain += "return redis.call('get', a2999)";
  const auto shape = lua::shape_of(chain, [](std::string_view) {
    return std::optional{lua::KeyPositions{.first = 1, .last = 1, .step = 1}};
  });
  CHECK(shape.known == lua::KnownScript::one_command);
}

TEST_CASE("tokens: lines of names are counted as Lua counts them", "[lua][tokens]") {
  const auto tokens = lua::read_tokens("a\nb\r\nc\n\rd\re --x\nf [[\n\n]] g");
  REQUIRE(tokens);
  const std::uint32_t expected[] = {1, 2, 3, 4, 5, 6, 6, 8, 8};
  REQUIRE(tokens->size() == std::size(expected));
  for (std::size_t i = 0; i < tokens->size(); ++i) CHECK((*tokens)[i].line == expected[i]);
}

TEST_CASE("tokens: whole numbers are written as redis-server gets them", "[lua][tokens]") {
  CHECK(lua::whole_number("60000") == "60000");
  CHECK(lua::whole_number("-1") == "-1");
  CHECK(lua::whole_number("1e+15") == "1000000000000000");
  CHECK(lua::whole_number("9007199254740991") == "9007199254740991");
  CHECK_FALSE(lua::whole_number("9007199254740992"));
  CHECK_FALSE(lua::whole_number("0.5"));
  CHECK_FALSE(lua::whole_number("1e+300"));
}

}  // namespace semel::tests
