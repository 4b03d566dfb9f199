// Which keys a script can touch, as far as its tokens show it.
#pragma once

#include "lua_compat/matcher/script_commands.hpp"
#include "lua_compat/matcher/script_tree.hpp"

namespace semel::lua {

/// Whether every key of every command that it can send is an element of KEYS. True is proven; in
/// doubt it is false.
[[nodiscard]] bool declares_keys(const Tree& tree, KeysOf keys_of);

}  // namespace semel::lua
