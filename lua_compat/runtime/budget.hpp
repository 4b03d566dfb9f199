// Counts what a script uses, in the places that an instruction hook does not see: the allocator and
// C functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lua_compat/runtime/bounds.hpp"
#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// One for each interpreter; the argument of its allocator.
struct Budget {
  std::size_t memory_used = 0;
  std::size_t memory_max = 0;
  std::uint64_t allocated = 0;  ///< by the current script, in total
  std::uint64_t allocated_max = 0;
  std::uint64_t steps = 0;  ///< of the current script
  std::uint64_t steps_max = 0;
  std::uint64_t steps_at_pause = 0;  ///< at the last call of on_pause
  /// Sets `over` if the script must stop; may do other work first. Null: the script is not paused.
  void (*on_pause)(Budget&) = nullptr;
  /// The position of the C stack when the script began; null: its depth is not checked.
  const char* stack_base = nullptr;
  /// Why the current script must stop, even if it catches errors; null: it may continue.
  const char* over = nullptr;

  /// Resets the counters when a script begins.
  void begin(const Bounds& bounds) noexcept;
};

/// A lua_Alloc; `budget` points to a Budget. Null if a limit would be exceeded.
void* allocate(void* budget, void* block, std::size_t old_bytes, std::size_t bytes) noexcept;

/// The budget of the interpreter that `state` belongs to.
[[nodiscard]] Budget& budget_of(lua_State* state) noexcept;

/// Calls on_pause if enough steps have passed since the last call. `over` is then set if the script
/// must stop.
void pause_if_due(Budget& own);

/// Counts `steps` of a library function and pauses if it is time, as one call can take as long as a
/// whole script. Raises a Lua error if the script must stop. That skips destructors, so the caller
/// must have no object on its stack that needs one.
void charge(lua_State* state, std::uint64_t steps);

/// Raises "C stack overflow" if C functions are nested too deeply. Every C function that calls back
/// into Lua must call this: LuaJIT does not limit the depth, and the stack of a fibre is small.
void check_c_stack(lua_State* state);

}  // namespace semel::lua
