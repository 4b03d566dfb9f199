#include "lua_compat/run.hpp"

namespace semel::lua {
namespace {

// A fibre has 256 KiB; what is called last, a command of the host's, needs some of it.
constexpr std::ptrdiff_t c_stack_max = std::ptrdiff_t{96} << 10;

}  // namespace

void check_c_stack(lua_State* state) {
  const char* const here = static_cast<const char*>(__builtin_frame_address(0));
  if (run_of(state).stack_base - here <= c_stack_max) return;
  lua_pushliteral(state, "C stack overflow");
  lua_error(state);
}

int raise_end(lua_State* state) {
  // Its text is told from the budget; here nothing must need memory.
  push_word(state, run_of(state), Word::ended);
  return lua_error(state);
}

}  // namespace semel::lua
