// Errors, as scripts see them and as they are sent to clients.
#pragma once

#include <string>
#include <string_view>

#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/run.hpp"

namespace semel::lua {

/// Pushes {err = "ERR " + text}. May raise an out-of-memory error, as all functions that push.
void push_error(lua_State* state, std::string_view text);
/// Raises the same.
int raise_error(lua_State* state, std::string_view text);
/// Pushes {err = ..} for an error reply. `text` is the reply without its '-'.
void push_error_reply(lua_State* state, std::string_view text);
/// Pushes the result of redis.error_reply: the first word is the code; of a single word it is ERR.
void push_error_of(lua_State* state, std::string_view text);

/// Message handler: Lua calls it when an error is raised, before the stack unwinds. Records the
/// text and the position in the Run. One argument, one result.
int keep_error(lua_State* state);

/// The error of the run for the client, without the '-'. `status` is the result of lua_pcall.
[[nodiscard]] std::string error_of(const Run& run, int status, std::string_view name);
/// The same without "script: .., on ..", for a library that failed to load.
[[nodiscard]] std::string error_text_of(const Run& run, int status);

}  // namespace semel::lua
