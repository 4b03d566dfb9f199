#include "lua_compat/runtime/c_function.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "lua_compat/runtime/budget.hpp"

namespace semel::lua {
namespace {

constexpr double two_to_63 = 9223372036854775808.0;
constexpr const char* block_type = "semel.block";
/// How many copied bytes count as one step.
constexpr std::size_t bytes_a_step = 16;

}  // namespace

std::int64_t to_integer(double number) noexcept {
  if (number >= -two_to_63 && number < two_to_63) return static_cast<std::int64_t>(number);
  return std::numeric_limits<std::int64_t>::min();
}

std::uint64_t to_unsigned(double number) noexcept {
  constexpr std::uint64_t top = std::uint64_t{1} << 63;
  if (number >= two_to_63) return static_cast<std::uint64_t>(to_integer(number - two_to_63)) ^ top;
  return static_cast<std::uint64_t>(to_integer(number));
}

std::int64_t integer_argument(lua_State* state, int index) {
  return to_integer(luaL_checknumber(state, index));
}
std::int64_t integer_argument_or(lua_State* state, int index, std::int64_t otherwise) {
  return lua_isnoneornil(state, index) ? otherwise : integer_argument(state, index);
}
int int_argument(lua_State* state, int index) {
  return static_cast<int>(static_cast<std::uint32_t>(integer_argument(state, index)));
}
int int_argument_or(lua_State* state, int index, int otherwise) {
  return lua_isnoneornil(state, index) ? otherwise : int_argument(state, index);
}

std::string_view number_text(double number, char (&text)[number_text_bytes]) noexcept {
  const int length = std::snprintf(text, sizeof(text), "%.14g", number);
  return {text, static_cast<std::size_t>(length)};
}

std::string_view text_at(lua_State* state, int index) {
  SEMEL_ASSERT(index > 0);  // lua_replace() below would miss a relative index
  if (lua_type(state, index) == LUA_TNUMBER) {
    char text[number_text_bytes];
    const std::string_view number = number_text(lua_tonumber(state, index), text);
    lua_pushlstring(state, number.data(), number.size());
    lua_replace(state, index);
  }
  std::size_t size = 0;
  const char* const data = lua_tolstring(state, index, &size);
  return {data, size};
}

std::string_view text_argument(lua_State* state, int index) {
  const int type = lua_type(state, index);
  // Raises the error that names the expected type.
  if (type != LUA_TNUMBER && type != LUA_TSTRING) luaL_checktype(state, index, LUA_TSTRING);
  return text_at(state, index);
}

void call(lua_State* state, int arguments, int results) {
  check_c_stack(state);
  lua_call(state, arguments, results);
}

int raise(lua_State* state, const char* message) {
  lua_pushstring(state, message);
  return lua_error(state);
}

void set_function(lua_State* state, const char* name, lua_CFunction function) {
  lua_pushcfunction(state, function);
  lua_setfield(state, -2, name);
}

Builder::Builder(lua_State* state)
    : state_(state), index_(lua_gettop(state) + 1), data_(small_), capacity_(sizeof(small_)) {
  luaL_checkstack(state, 6, "");
  lua_pushnil(state);
}

int Builder::collect(lua_State* state) {
  Block* const block = static_cast<Block*>(lua_touserdata(state, 1));
  allocate(&budget_of(state), block->data, block->bytes, 0);
  *block = {nullptr, 0};
  return 0;
}

void Builder::add(std::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(room(bytes.size()), bytes.data(), bytes.size());
  size_ += bytes.size();
}

void Builder::grow(std::size_t more) {
  if (block_ == nullptr) {
    block_ = static_cast<Block*>(lua_newuserdata(state_, sizeof(Block)));
    *block_ = {nullptr, 0};
    if (luaL_newmetatable(state_, block_type) != 0) set_function(state_, "__gc", collect);
    lua_setmetatable(state_, -2);
    lua_replace(state_, index_);
  }
  Budget& budget = budget_of(state_);
  if (more > budget.memory_max) raise(state_, "not enough memory");
  const std::size_t wanted = std::max(size_ + more, capacity_ * 2);
  charge(state_, wanted / bytes_a_step);
  char* data = static_cast<char*>(allocate(&budget, block_->data, block_->bytes, wanted));
  if (data == nullptr) {
    // LuaJIT does not collect garbage when an allocation fails.
    charge(state_, budget.memory_used / bytes_a_step);
    lua_gc(state_, LUA_GCCOLLECT, 0);
    data = static_cast<char*>(allocate(&budget, block_->data, block_->bytes, wanted));
    if (data == nullptr) raise(state_, "not enough memory");
  }
  if (block_->data == nullptr) std::memcpy(data, small_, size_);
  SEMEL_ASSERT(wanted >= size_ + more);
  *block_ = {data, wanted};
  data_ = data;
  capacity_ = wanted;
}

void Builder::push() {
  charge(state_, 1 + size_ / bytes_a_step);
  lua_pushlstring(state_, data_, size_);
  if (block_ == nullptr) return;
  allocate(&budget_of(state_), block_->data, block_->bytes, 0);
  *block_ = {nullptr, 0};
  block_ = nullptr;
  data_ = small_;
  size_ = 0;
  capacity_ = sizeof(small_);
}

}  // namespace semel::lua
