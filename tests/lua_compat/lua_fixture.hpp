// A Lua state with only the libraries of scripts, to test these alone.
#pragma once

#include <string>
#include <vector>

#include "lua_compat/runtime/budget.hpp"

namespace semel::tests {

/// A script that evaluates `expressions` and returns a text with the results or the error of each,
/// for evaluate() and for EVAL.
[[nodiscard]] std::string script_of(const std::vector<std::string>& expressions);
/// Splits the result of such a script by expression.
[[nodiscard]] std::vector<std::string> results_in(const std::string& answer);

class LuaFixture {
 public:
  explicit LuaFixture(const lua::Bounds& bounds = {});
  ~LuaFixture();
  LuaFixture(const LuaFixture&) = delete;
  LuaFixture& operator=(const LuaFixture&) = delete;

  /// Compiles and runs a text and returns its one result or its error. Resets the budget first.
  [[nodiscard]] std::string run(const std::string& text);
  /// The results or the error of one expression, as a Lua text.
  [[nodiscard]] std::string evaluate(const std::string& expression);

  [[nodiscard]] const lua::Budget& budget() const noexcept { return budget_; }
  [[nodiscard]] lua_State* state() const noexcept { return state_; }

 private:
  lua::Bounds bounds_;
  lua::Budget budget_;
  lua_State* state_;
};

}  // namespace semel::tests
