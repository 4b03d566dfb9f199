// Known scripts (lua_compat/matcher/known_scripts.hpp) without Lua.
//
// There are two ways, and what neither takes is the interpreter's:
//   - plan_native() makes one operation on one key of it, which goes to the engine together with
//     others, and answer_native() writes the reply of its outcome;
//   - run_native() sends the commands that the script would send, through the same Host, so that
//     rights, events, touched keys and statistics are those of a script's commands.
// Errors of commands are those of redis-server for the script's text, with its line.
// Neither is used while a client monitors: it is shown what the script sends.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "lua_compat/matcher/known_scripts.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/scripts/native_call.hpp"

namespace semel::net {

/// For lua::shape_of().
[[nodiscard]] std::optional<lua::KeyPositions> key_positions(std::string_view command);

/// Whether run_native() may be asked: by the number and form of keys and arguments alone. What it
/// does then keeps to KEYS, if `shape` declares its keys or is of the catalogue.
[[nodiscard]] bool accepts_native(const lua::ScriptShape& shape, const lua::Invocation& invocation);
/// Whether a section over the shards of KEYS is enough for run_native(), once it is accepted. It
/// may be although `shape` does not declare its keys: then not for the interpreter.
[[nodiscard]] bool keeps_to_keys(const lua::ScriptShape& shape) noexcept;

/// Appends the one reply, in the dialect of the invocation. False: nothing was written and nothing
/// changed, the interpreter has to run the script.
[[nodiscard]] bool run_native(const NativeCall& call);

/// A known script that has become one operation. What it refers to must live until it is answered.
struct NativePlan {
  const lua::ScriptShape* shape = nullptr;
  std::string_view sha;
  const Single* single = nullptr;  ///< of a one_command
};
/// `call.args` are those of EVAL or EVALSHA. `op` is as StoreOp{} is but for db. Other than none:
/// it is not one operation, or the arguments are unusual.
[[nodiscard]] ArgumentError plan_native(const Call& call, const lua::ScriptShape& shape,
                                        std::string_view sha, StoreOp& op, NativePlan& plan);
/// The reply to an outcome, errors too, and the events of its key.
void answer_native(Call& call, const NativePlan& plan, const StoreOp& op,
                   const StoreOutcome& outcome);
/// The commands that the script would have sent, by their names, the rest empty: for the figures.
[[nodiscard]] std::array<std::string_view, 2> commands_of(const NativePlan& plan,
                                                          const StoreOutcome& outcome);

/// `text` with what redis-server adds to an error that ends a script.
void write_script_error(RespWriter& reply, std::string_view text, std::string_view sha,
                        std::uint32_t line);

}  // namespace semel::net
