// Proves from its text which keys a script can access.
#pragma once

#include "lua_compat/matcher/script_commands.hpp"
#include "lua_compat/matcher/script_tree.hpp"

namespace semel::lua {

/// Whether every key of every command that it can send is an element of KEYS. True is a proof;
/// false means that there is none.
[[nodiscard]] bool declares_keys(const Tree& tree, KeysOf keys_of);

}  // namespace semel::lua
