#include "lua_compat/libraries/table_sort.hpp"

#include <algorithm>
#include <string_view>

#include "base/assert.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/c_function.hpp"

namespace semel::lua {
namespace {

/// The error text of 5.1, which compares the third letters of the type names.
void refuse_comparison(lua_State* state, int one, int other) {
  const char* const first = luaL_typename(state, one);
  const char* const second = luaL_typename(state, other);
  if (first[2] == second[2]) {
    lua_pushfstring(state, "attempt to compare two %s values", first);
  } else {
    lua_pushfstring(state, "attempt to compare %s with %s", first, second);
  }
  lua_error(state);
}

int is_less_by_metatable(lua_State* state) {
  lua_pushboolean(state, lua_lessthan(state, 1, 2));
  return 1;
}

/// Quicksort with the median of three, for the table at 1, by the function at 2 or by <. The frame
/// must be small: the function may sort, too, nested up to 200 times.
class Sorting {
 public:
  explicit Sorting(lua_State* state) noexcept
      : state_(state), has_function_(!lua_isnoneornil(state, 2)) {}

  /// Sorts elements `first` to `last`. The larger part of each step is queued; the other is at most
  /// half as long, so at most 32 parts are queued.
  void sort(int first, int last) {
    struct Range {
      int first;
      int last;
    };
    constexpr int waiting_max = 32;
    Range waiting[waiting_max];
    int count = 0;
    for (;;) {
      const int middle = first < last ? partition(first, last) : 0;
      if (middle != 0) {
        const Range below{first, middle - 1};
        const Range above{middle + 1, last};
        const bool is_below_less = middle - first < last - middle;
        SEMEL_ASSERT(count < waiting_max);
        waiting[count++] = is_below_less ? above : below;
        first = is_below_less ? below.first : above.first;
        last = is_below_less ? below.last : above.last;
        continue;
      }
      if (count == 0) return;
      --count;
      first = waiting[count].first;
      last = waiting[count].last;
    }
  }

 private:
  void get(int index) { lua_rawgeti(state_, 1, index); }
  void pop(int count) { lua_pop(state_, count); }
  /// Stores the topmost value as the element `first` and the one below as `second`.
  void set_two(int first, int second) {
    lua_rawseti(state_, 1, first);
    lua_rawseti(state_, 1, second);
  }

  /// Compares two values, by their distance from the top of the stack.
  [[nodiscard]] bool is_less(int one, int other) {
    charge(state_, 4);
    const int top = lua_gettop(state_);
    if (has_function_) {
      lua_pushvalue(state_, 2);
      lua_pushvalue(state_, top + 1 + one);
      lua_pushvalue(state_, top + 1 + other);
      return is_called();
    }
    return is_less_by_itself(top + 1 + one, top + 1 + other);
  }

  /// Calls the function below two values.
  [[nodiscard]] bool is_called() {
    call(state_, 2, 1);
    const bool is = lua_toboolean(state_, -1) != 0;
    pop(1);
    return is;
  }

  [[nodiscard]] bool is_less_by_itself(int one, int other) {
    const int type = lua_type(state_, one);
    if (type == lua_type(state_, other)) {
      if (type == LUA_TNUMBER) return lua_tonumber(state_, one) < lua_tonumber(state_, other);
      if (type == LUA_TSTRING) {
        const std::string_view first = text_at(state_, one);
        const std::string_view second = text_at(state_, other);
        charge(state_, std::min(first.size(), second.size()) / 16);
        return first < second;
      }
      const int top = lua_gettop(state_);
      const bool is_comparable = luaL_getmetafield(state_, one, "__lt") != 0 &&
                                 luaL_getmetafield(state_, other, "__lt") != 0 &&
                                 lua_rawequal(state_, -1, -2) != 0;
      lua_settop(state_, top);
      if (is_comparable) {
        lua_pushcfunction(state_, is_less_by_metatable);
        lua_pushvalue(state_, one);
        lua_pushvalue(state_, other);
        return is_called();
      }
    }
    refuse_comparison(state_, one, other);
    return false;
  }

  /// Moves a pivot between the elements that are not larger and those that are not smaller. Returns
  /// its index, or 0 if there were at most three elements, which are sorted now.
  [[nodiscard]] int partition(int first, int last) {
    get(first);
    get(last);
    swap_if(is_less(-1, -2), first, last);
    if (last - first == 1) return 0;
    const int middle = (first + last) / 2;
    get(middle);
    get(first);
    if (is_less(-2, -1)) {
      set_two(middle, first);
    } else {
      pop(1);
      get(last);
      swap_if(is_less(-1, -2), middle, last);
    }
    if (last - first == 2) return 0;
    get(middle);
    lua_pushvalue(state_, -1);
    get(last - 1);
    set_two(middle, last - 1);
    const int place = divide(first, last);
    get(last - 1);
    get(place);
    set_two(last - 1, place);
    return place;
  }
  /// Sorts the elements `first` and `second`, the two values on top, and pops them.
  void swap_if(bool is_swapped, int first, int second) {
    if (is_swapped) {
      set_two(first, second);
    } else {
      pop(2);
    }
  }

  /// Pops the pivot. Returns the first index whose element is not smaller.
  [[nodiscard]] int divide(int first, int last) {
    int low = first;
    int high = last - 1;
    for (;;) {
      for (get(++low); is_less(-1, -2); get(++low)) {
        if (low > last) refuse_order();
        pop(1);
      }
      for (get(--high); is_less(-3, -1); get(--high)) {
        if (high < first) refuse_order();
        pop(1);
      }
      if (high < low) break;
      set_two(low, high);
    }
    pop(3);
    return low;
  }
  void refuse_order() { luaL_error(state_, "invalid order function for sorting"); }

  lua_State* state_;
  bool has_function_;
};

}  // namespace

int table_sort(lua_State* state) {
  const int last = length_of(state, 1);
  luaL_checkstack(state, 40, "");
  if (!lua_isnoneornil(state, 2)) luaL_checktype(state, 2, LUA_TFUNCTION);
  lua_settop(state, 2);
  Sorting{state}.sort(1, last);
  return 0;
}

}  // namespace semel::lua
