// What one script may still use, counted where a hook of instructions does not reach: in the
// allocator and in C functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lua_compat/interpreter/interpreter.hpp"
#include "lua_compat/runtime/lua_api.hpp"

namespace semel::lua {

/// Of one interpreter; its allocator's argument.
struct Budget {
  std::size_t memory_used = 0;
  std::size_t memory_max = 0;
  std::uint64_t allocated = 0;  ///< by the present script, altogether
  std::uint64_t allocated_max = 0;
  std::uint64_t steps = 0;  ///< of the present script
  std::uint64_t steps_max = 0;
  std::uint64_t steps_at_pause = 0;  ///< when on_pause was called last
  /// Decides whether the script may go on, and sets `over` if not; it may do other work meanwhile.
  /// Null: nobody is asked.
  void (*on_pause)(Budget&) = nullptr;
  /// Where the C stack was when the script began; null: it is not watched.
  const char* stack_base = nullptr;
  /// Why the present script ends, whatever it catches; null: it may go on.
  const char* over = nullptr;

  /// A script begins.
  void begin(const Bounds& bounds) noexcept;
};

/// As lua_Alloc; `budget` is a Budget. Null where a bound would be passed.
void* allocate(void* budget, void* block, std::size_t old_bytes, std::size_t bytes) noexcept;

/// That of the interpreter that `state` belongs to.
[[nodiscard]] Budget& budget_of(lua_State* state) noexcept;

/// Calls on_pause if the last time was long ago in steps. `over` is set where the script must end.
void pause_if_due(Budget& own);

/// Counts `steps` of a library's function, and pauses when it is time: one call of a function may
/// take as long as the whole script. Raises a Lua error if the script must end: nothing on the
/// C++ stack may need to be destroyed then.
void charge(lua_State* state, std::uint64_t steps);

/// Raises "C stack overflow" if C functions have called each other too deeply. For each that calls
/// back into Lua: LuaJIT does not bound them, and a fibre's stack is small.
void check_c_stack(lua_State* state);

}  // namespace semel::lua
