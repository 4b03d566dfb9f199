#include "tests/lua_compat/lua_fixture.hpp"

#include <string_view>

#include "lua_compat/libraries/libraries.hpp"

namespace semel::tests {
namespace {

/// Too long to come up by chance.
constexpr std::string_view between = "\x01|next|\x01";

/// Ends with a function all() that makes a text of values, and run() that keeps one.
constexpr const char* prelude = R"(
local function show(v, depth)
  local t = type(v)
  if v ~= v then return 'nan' end
  if t == 'number' then return string.format('%.17g', v) end
  if t == 'string' then return string.format('%q', v) end
  if v == cjson.null then return 'null' end
  if t ~= 'table' then return t == 'boolean' and tostring(v) or t end
  if depth > 20 then return '{..}' end
  local items = {}
  for k, x in pairs(v) do
    items[#items + 1] = '[' .. show(k, depth + 1) .. ']=' .. show(x, depth + 1)
  end
  table.sort(items)
  return '{' .. table.concat(items, ',') .. '}'
end
local function all(...)
  local items = {}
  for i = 1, select('#', ...) do items[i] = show((select(i, ...)), 0) end
  return table.concat(items, ' ')
end
local out = {}
local function run(f)
  local is_well, text = pcall(f)
  out[#out + 1] = is_well and text or 'error: ' .. tostring(text)
end
)";

}  // namespace

std::string script_of(const std::vector<std::string>& expressions) {
  std::string script = prelude;
  for (const std::string& expression : expressions) {
    script += "run(function() return all(" + expression + ") end)\n";
  }
  return script + "return table.concat(out, '\\1|next|\\1')";
}

std::vector<std::string> results_in(const std::string& answer) {
  std::vector<std::string> results;
  for (std::size_t at = 0;;) {
    const std::size_t end = answer.find(between, at);
    results.push_back(answer.substr(at, end - at));
    if (end == std::string::npos) return results;
    at = end + between.size();
  }
}

LuaFixture::LuaFixture(const lua::Bounds& bounds) : bounds_(bounds) {
  budget_.begin(bounds_);
  state_ = lua_newstate(lua::allocate, &budget_);
  for (const lua_CFunction open : {luaopen_base, luaopen_string, luaopen_table, luaopen_math}) {
    lua_pushcfunction(state_, open);
    lua_call(state_, 0, 0);
  }
  lua::bound_string_library(state_);
  lua::bound_table_library(state_);
  lua::bound_math_library(state_);
  lua::open_json_library(state_);
  lua_setglobal(state_, "cjson");
  lua::open_msgpack_library(state_);
  lua_setglobal(state_, "cmsgpack");
  lua::open_struct_library(state_);
  lua_setglobal(state_, "struct");
  lua::open_bit_library(state_);
  lua_setglobal(state_, "bit");
}

LuaFixture::~LuaFixture() {
  lua_close(state_);
}

std::string LuaFixture::run(const std::string& text) {
  budget_.begin(bounds_);
  budget_.stack_base = static_cast<const char*>(__builtin_frame_address(0));
  lua_settop(state_, 0);
  if (luaL_loadbuffer(state_, text.data(), text.size(), "@user_script") == 0) {
    static_cast<void>(lua_pcall(state_, 0, 1, 0));
  }
  std::size_t size = 0;
  const char* const data = lua_tolstring(state_, -1, &size);
  std::string answer = data == nullptr ? luaL_typename(state_, -1) : std::string{data, size};
  lua_settop(state_, 0);
  return answer;
}

std::string LuaFixture::evaluate(const std::string& expression) {
  return run(script_of({expression}));
}

}  // namespace semel::tests
