#include "lua_compat/run.hpp"

namespace semel::lua {

int raise_end(lua_State* state) {
  // Its text is told from the budget; here nothing must need memory.
  push_word(state, run_of(state), Word::ended);
  return lua_error(state);
}

}  // namespace semel::lua
