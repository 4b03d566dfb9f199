// What LuaJIT's parser would need too much time for is refused before it is compiled, wherever a
// text is compiled.
#include <string>

#include "tests/support/catch.hpp"

#include "lua_compat/interpreter/interpreter.hpp"
#include "lua_compat/runtime/compile_cost.hpp"
#include "tests/lua_compat/fake_host.hpp"

namespace semel::tests {

namespace {

using Cost = lua::CompileCost;

std::string many_of(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}
/// "a0,a1,.."
std::string local_names(std::string_view prefix, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += ',';
    all += std::string{prefix} + std::to_string(i);
  }
  return all;
}
/// As many functions in each other, each with as many locals, and `body` in the innermost.
std::string nested_functions(std::size_t functions, std::size_t locals, std::string_view body) {
  std::string text;
  for (std::size_t i = 0; i < functions; ++i) {
    text += "local " + local_names("v", locals) + " f = function() ";
  }
  return text + std::string{body} + many_of(" end", functions);
}
/// Empty: it was compiled.
std::string compile_error(std::string_view text) {
  lua::Interpreter interpreter{lua::Bounds{}};
  const Status compiled = interpreter.compile(std::string(40, 'a'), text);
  return compiled.ok() ? std::string{} : compiled.error().detail;
}
std::string compiled_reply(const std::string& text) {
  lua::Interpreter interpreter{lua::Bounds{}};
  FakeHost host;
  return run_script(interpreter, host, text);
}

constexpr const char* many_branches = "more than 10000 of elseif, and, or, break";
constexpr const char* many_jumps = "more than 1000 of goto and labels";
constexpr const char* many_numbers = "more than 1000 numbers of more than 50 digits";
constexpr const char* many_lookups =
    "more than 200000000 comparisons of names with locals around them";

}  // namespace

TEST_CASE("compile cost: at each bound a text is compiled, one beyond it is refused",
          "[lua][hostile][limits][once-again-16]") {
  const auto check = [](const std::string& at_bound, const std::string& beyond,
                        const std::string& error) {
    INFO(at_bound.substr(0, 60));
    CHECK(compile_error(at_bound).empty());
    const std::string found = compile_error(beyond);
    INFO(found.substr(0, 120));
    CHECK(found.starts_with("user_script:1: " + error + " near '"));
  };
  const auto loops = [](std::size_t breaks) {
    return many_of("while a do " + many_of("if a then break end ", 1'000) + "end ",
                   breaks / 1'000) +
           many_of("while a do break end ", breaks % 1'000);
  };
  check(loops(Cost::branches_max), loops(Cost::branches_max + 1), many_branches);

  const auto jumps = [](std::size_t pairs) { return many_of("do goto x ::x:: end ", pairs); };
  check(jumps(Cost::jumps_max / 2), jumps(Cost::jumps_max / 2) + "do goto x ::x:: end ",
        many_jumps);
  const auto labels = [](std::size_t count) { return many_of("do ::x:: end ", count); };
  check(labels(Cost::jumps_max), labels(Cost::jumps_max + 1), many_jumps);

  for (const std::string& number :
       std::initializer_list<std::string>{"9e300", "1e-300", "1" + std::string(50, '0'),
                                          "0." + std::string(50, '1'), "12345678901e40"}) {
    const std::string one = "a=" + number + ' ';
    check(many_of(one, Cost::numbers_max), many_of(one, Cost::numbers_max + 1), many_numbers);
  }
  CHECK(compile_error(many_of("a=1e49 b=0x1p1000 ", 2 * Cost::numbers_max)).empty());

  // 190 locals in each of 50 functions, and 60 of what each function has from those around it. The
  // declarations are names as well.
  constexpr std::size_t functions = 50;
  constexpr std::size_t a_name = functions * (190 + 60);
  constexpr std::size_t most = Cost::lookups_max / a_name;
  check(nested_functions(functions, 190, many_of("g=h ", most * 6 / 20)),
        nested_functions(functions, 190, many_of("g=h ", most * 9 / 20)), many_lookups);
}

TEST_CASE("compile cost: names are counted with the locals that are visible where they are",
          "[lua][hostile][once-again-16]") {
  const std::string some = "local " + local_names("v", 190) + ' ';
  // 800,000 names: within the bound with 190 locals around them, beyond it with 380.
  const std::string uses = many_of("g=h ", 400'000);
  CHECK(compile_error(some + uses).empty());
  for (const std::string& ended :
       {"do " + some + "end ", "if a then " + some + "elseif b then " + some + "else end ",
        "f = function(" + local_names("p", 190) + ") end ",
        "do local function f(" + local_names("p", 190) + ") end end ",
        "for " + local_names("v", 180) + " in a do end ", "repeat " + some + "until a "}) {
    INFO(ended.substr(0, 30));
    CHECK(compile_error(some.substr(0, some.find(",v9,")) + ' ' + ended + ended + uses).empty());
  }
  for (const std::string& around :
       {"f = function() " + some, "f = function(" + local_names("p", 190) + ") ",
        "local function f() for " + local_names("v", 180) + " in a do ",
        "function a.b.c:d() repeat " + some}) {
    INFO(around.substr(0, 30));
    CHECK(compile_error(some + around + uses).find(many_lookups) != std::string::npos);
  }
}

TEST_CASE("compile cost: every door of compilation has the bounds",
          "[lua][hostile][once-again-16]") {
  CHECK(compiled_reply("return select(2, loadstring(string.rep('do goto x ::x:: end ', 501)))")
            .find(many_jumps) != std::string::npos);
  CHECK(compiled_reply("local n = 0 return select(2, load(function() n = n + 1 "
                       "if n <= 501 then return 'do goto x ::x:: end ' end end))")
            .find(many_jumps) != std::string::npos);
  lua::Interpreter interpreter{lua::Bounds{}};
  const auto loaded = interpreter.load_library(
      "lib", "redis.register_function('f', function() end) " + many_of("a=9e300 ", 1'001), nullptr);
  REQUIRE_FALSE(loaded.ok());
  CHECK(loaded.error().detail.starts_with("compiling function: user_function:1: " +
                                          std::string{many_numbers}));
}

TEST_CASE("compile cost: what is refused is refused at once, however deep its blocks are",
          "[lua][hostile][once-again-16]") {
  // Takes minutes where a `return` looks at each block around it.
  CHECK_FALSE(compile_error("f = function() " + many_of("do ", 200'000) +
                            many_of("do return 1 end ", 200'000))
                  .empty());
}

TEST_CASE("compile cost: a script that compiles a text is ended in the middle of it",
          "[lua][hostile][once-again-16]") {
  FakeHost host;
  host.pauses_max = 500;  // the text has more pieces than that, and its tokens cost fewer steps
  host.stop = lua::Stop::killed;
  lua::Interpreter interpreter{lua::Bounds{}};
  const std::string reply = run_script(
      interpreter, host, "local s = string.rep('a = 1 ', 200000) return {pcall(loadstring, s)}");
  CHECK(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."));
  CHECK(host.pauses == 501);
}

}  // namespace semel::tests
