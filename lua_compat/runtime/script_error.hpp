// Errors as scripts see them, and as clients are told of them.
#pragma once

#include <string>
#include <string_view>

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Pushes {err = "ERR " + text}. May raise an error of memory, as all that pushes.
void push_error(lua_State* state, std::string_view text);
/// Raises the same.
int raise_error(lua_State* state, std::string_view text);
/// Pushes {err = ..} of an error's reply, the text behind its '-'.
void push_error_reply(lua_State* state, std::string_view text);
/// What redis.error_reply makes of a text: its code is the first word, else ERR.
void push_error_of(lua_State* state, std::string_view text);

/// Called by Lua when an error is raised, the stack being as it was: keeps its text and place in
/// the Run. One value, one result.
int keep_error(lua_State* state);

/// The text of the run's error for the client, without its '-'. `status`: what lua_pcall said.
[[nodiscard]] std::string error_of(const Run& run, int status, std::string_view name);
/// The same without "script: .., on ..", for a library that failed to load.
[[nodiscard]] std::string error_text_of(const Run& run, int status);

}  // namespace semel::lua
