#include "lua_compat/runtime/budget.hpp"

#include <cstdlib>

#include "base/assert.hpp"

namespace semel::lua {
namespace {

// A fibre has 1 MiB; other callers may have less. The innermost call may be a command of the host,
// or the compiler with 190 nested functions (120 KiB).
constexpr std::ptrdiff_t c_stack_max = std::ptrdiff_t{64} << 10;

// Small, as a single step may compare megabytes: the time between two pauses must stay below
// seconds. Not smaller, as the host reads a clock at each pause.
constexpr std::uint64_t pause_steps = 1'000;

}  // namespace

void Budget::begin(const Bounds& bounds) noexcept {
  memory_max = bounds.memory_bytes;
  allocated = 0;
  allocated_max = bounds.allocated_bytes;
  steps = 0;
  steps_at_pause = 0;
  steps_max = bounds.steps;
  over = nullptr;
}

void* allocate(void* budget, void* block, std::size_t old_bytes, std::size_t bytes) noexcept {
  Budget& own = *static_cast<Budget*>(budget);
  if (block == nullptr) old_bytes = 0;
  SEMEL_ASSERT(old_bytes <= own.memory_used);  // else the sum wraps, and all allocations fail
  if (bytes == 0) {
    std::free(block);
    own.memory_used -= old_bytes;
    return nullptr;
  }
  if (bytes > old_bytes) {
    const std::size_t more = bytes - old_bytes;
    // A script may catch the failure of one large allocation, but not that of the total limit.
    if (own.memory_used > own.memory_max || more > own.memory_max - own.memory_used) return nullptr;
    own.allocated += more;
    if (own.allocated > own.allocated_max) {
      own.over = "script allocated too much memory";
      return nullptr;
    }
  }
  void* const result = std::realloc(block, bytes);
  if (result != nullptr) own.memory_used += bytes - old_bytes;
  return result;
}

Budget& budget_of(lua_State* state) noexcept {
  void* budget = nullptr;
  static_cast<void>(lua_getallocf(state, &budget));
  SEMEL_ASSERT(budget != nullptr);
  return *static_cast<Budget*>(budget);
}

void pause_if_due(Budget& own) {
  if (own.over != nullptr || own.on_pause == nullptr) return;
  SEMEL_ASSERT(own.steps >= own.steps_at_pause);
  if (own.steps - own.steps_at_pause < pause_steps) return;
  own.steps_at_pause = own.steps;
  own.on_pause(own);
}

void charge(lua_State* state, std::uint64_t steps) {
  Budget& own = budget_of(state);
  own.steps += steps;
  if (own.steps > own.steps_max && own.over == nullptr) own.over = "script ran for too many steps";
  pause_if_due(own);
  if (own.over != nullptr) luaL_error(state, "%s", own.over);
}

void check_c_stack(lua_State* state) {
  const char* const here = static_cast<const char*>(__builtin_frame_address(0));
  const Budget& own = budget_of(state);
  if (own.stack_base == nullptr || own.stack_base - here <= c_stack_max) return;
  lua_pushliteral(state, "C stack overflow");
  lua_error(state);
}

}  // namespace semel::lua
