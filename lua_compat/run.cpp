#include "lua_compat/run.hpp"

namespace semel::lua {

void pause_if_due(Run& run) {
  // Few enough that steps which each compare megabytes do not add up to seconds; the host reads
  // a clock.
  constexpr std::uint64_t pause_steps = 1'000;
  if (run.over != nullptr || run.host == nullptr || run.steps - run.steps_at_pause < pause_steps)
    return;
  run.steps_at_pause = run.steps;
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
  // Its text is told from the budget; here nothing must need memory.
  push_word(state, run_of(state), Word::ended);
  return lua_error(state);
}

}  // namespace semel::lua
