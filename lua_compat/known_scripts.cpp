#include "lua_compat/known_scripts.hpp"

namespace semel::lua {

std::string canonical_form(std::string_view) {
  return {};
}

ScriptShape shape_of(std::string_view) {
  return {};
}

}  // namespace semel::lua
