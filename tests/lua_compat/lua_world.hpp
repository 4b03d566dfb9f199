// A Lua state with nothing but the libraries of scripts, for tests of these alone.
#pragma once

#include <string>
#include <vector>

#include "lua_compat/runtime/budget.hpp"

namespace semel::tests {

/// A script that evaluates `expressions` and returns a text of the results or the error of each,
/// for evaluate() and for EVAL.
[[nodiscard]] std::string script_of(const std::vector<std::string>& expressions);
/// What such a script has returned, by expression.
[[nodiscard]] std::vector<std::string> results_in(const std::string& answer);

class LuaWorld {
 public:
  explicit LuaWorld(const lua::Bounds& bounds = {});
  ~LuaWorld();
  LuaWorld(const LuaWorld&) = delete;
  LuaWorld& operator=(const LuaWorld&) = delete;

  /// Compiles and runs a text; its one result or its error. Each time the bounds begin anew.
  [[nodiscard]] std::string run(const std::string& text);
  /// One expression's results or error, as a text of Lua.
  [[nodiscard]] std::string evaluate(const std::string& expression);

  [[nodiscard]] const lua::Budget& budget() const noexcept { return budget_; }
  [[nodiscard]] lua_State* state() const noexcept { return state_; }

 private:
  lua::Bounds bounds_;
  lua::Budget budget_;
  lua_State* state_;
};

}  // namespace semel::tests
