// What one script may use, counted in the allocator.
#include "lua_compat/runtime/budget.hpp"

#include "tests/support/catch.hpp"

namespace semel::tests {

using lua::allocate;
using lua::Bounds;
using lua::Budget;

namespace {

TEST_CASE("budget: a block is refused beyond the memory at once, not at it", "[lua][budget]") {
  Budget budget;
  Bounds bounds;
  bounds.memory_bytes = 1000;
  budget.begin(bounds);
  void* const whole = allocate(&budget, nullptr, 0, 1000);
  REQUIRE(whole != nullptr);
  CHECK(budget.memory_used == 1000);
  CHECK(allocate(&budget, nullptr, 0, 1) == nullptr);
  CHECK(budget.over == nullptr);  // it may be caught
  CHECK(allocate(&budget, whole, 1000, 0) == nullptr);
  CHECK(budget.memory_used == 0);
}

TEST_CASE("budget: what is allocated altogether ends the script", "[lua][budget]") {
  Budget budget;
  Bounds bounds;
  bounds.allocated_bytes = 2000;
  budget.begin(bounds);
  for (int round = 0; round < 2; ++round) {
    void* const block = allocate(&budget, nullptr, 0, 1000);
    REQUIRE(block != nullptr);
    static_cast<void>(allocate(&budget, block, 1000, 0));
  }
  CHECK(budget.over == nullptr);
  CHECK(allocate(&budget, nullptr, 0, 1) == nullptr);
  CHECK(budget.over != nullptr);
  budget.begin(bounds);
  CHECK(budget.over == nullptr);
}

}  // namespace
}  // namespace semel::tests
