#include "lua_compat/runtime/run.hpp"

#include "base/assert.hpp"

namespace semel::lua {

void ask_host(Budget& budget) {
  Run& run = static_cast<Run&>(budget);
  if (run.host == nullptr) return;
  switch (run.host->pause()) {
    case Stop::none:
      return;
    case Stop::killed:
      run.over = "Script killed by user with SCRIPT KILL...";
      return;
    case Stop::time:
      run.over = "script ran for too long";
  }
}

int raise_end(lua_State* state) {
  SEMEL_ASSERT(must_end(state));
  // The client gets the text of Budget::over. Nothing here may allocate memory.
  push_word(state, run_of(state), Word::ended);
  return lua_error(state);
}

}  // namespace semel::lua
