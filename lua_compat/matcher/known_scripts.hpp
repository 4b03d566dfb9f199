// Scripts that the field uses all the time, recognised by their tokens
// (docs/decisions/0014-scripts.md), and what can be said of a script without running it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lua_compat/matcher/script_commands.hpp"

namespace semel::lua {

/// One meaning each; the texts that mean it are in known_catalogue.def.
enum class KnownScript : std::uint8_t {
  unknown,
  one_command,      ///< answers what its one command answers
  compare_and_run,  ///< its commands, if the first key's value is the first argument
  count,            ///< adds to a counter, which gets an end when it is new
  take,             ///< answers the value and deletes it
  remove_existing,  ///< deletes what is there and says whether it was
  get_or_set,       ///< answers the value, or sets it with an end
  set_absent,       ///< sets with an end what is not there
  count_below,      ///< adds one with an end, unless that is too many
  count_existing,   ///< adds to what is there
  spend,            ///< takes one away, if there is one
  // Each of these is one library's own.
  acquire_all,        ///< node-redlock
  extend_all,         ///< node-redlock
  release_all,        ///< node-redlock
  prolong,            ///< redis-py Lock.extend
  consume_points,     ///< rate-limiter-flexible
  hit_window,         ///< rate-limit-redis
  look_at_window,     ///< rate-limit-redis
  touch_or_set,       ///< go-redsync, Spring Integration, aioredlock
  obtain_by_prefix,   ///< bsm/redislock
  release_and_tell,   ///< Spring Integration
  hold_reentrant,     ///< Redisson
  hold_fenced,        ///< Redisson
  release_reentrant,  ///< Redisson
  release_spinning,   ///< Redisson
  release_by_force,   ///< Redisson
  renew_reentrant,    ///< Redisson
  renew_many,         ///< Redisson
};

/// A word of a command that a script sends.
struct ScriptWord {
  enum class From : std::uint8_t {
    text,
    key,
    argument,
    number,  ///< an argument that has gone through tonumber: to be refused if it would not stay
  };
  From from = From::text;
  std::uint32_t index = 0;  ///< of keys or arguments, from 0
  std::string text{};
};
using ScriptCommand = std::vector<ScriptWord>;

/// What a script answers, if nothing else is said of it: a number, nothing, a text.
struct ScriptAnswer {
  enum class Kind : std::uint8_t { last, number, nothing, status, error, bulk };
  Kind kind = Kind::last;  ///< last: what the last command has answered
  std::int64_t number = 0;
  std::string_view text{};
};

/// One text of the catalogue. A constant that begins with `?` in it stands for any constant in
/// this place: `?1` is the first of them, and `H1` among the words of commands.
struct KnownEntry {
  KnownScript means = KnownScript::unknown;
  std::string_view name;  ///< of the text, for people and tests
  std::string_view text;
  /// Its commands, `;` between them: K1 is the first key, A1 the first argument, N1 the same
  /// through tonumber. Whatever a meaning always does is not among them.
  std::string_view commands{};
  ScriptAnswer missing{};  ///< compare_and_run: there is no such key
  ScriptAnswer differs{};  ///< compare_and_run: its value is another
  ScriptAnswer answer{};
  std::uint32_t variant = 0;  ///< of what one meaning has several forms
  std::uint32_t keys = 1;     ///< that it needs
  std::uint32_t arguments = 0;
};

/// What the tokens of a script show.
struct ScriptShape {
  /// Every key that it can touch is one of KEYS: its section is that of their shards.
  bool declares_keys = false;
  /// It is this known script; or `unknown`.
  KnownScript known = KnownScript::unknown;
  /// Of the catalogue; null: `unknown` or `one_command`.
  const KnownEntry* entry = nullptr;
  /// What a known script sends, its constants filled in.
  std::vector<ScriptCommand> commands;
  /// Of the calls of a known script's commands, in their order in the text: the line that errors
  /// tell.
  std::vector<std::uint32_t> lines;
  /// Of any script that can be read (lua_compat/matcher/script_calls.hpp); needed only until it is
  /// loaded.
  std::vector<SentCommand> sent;
};

/// The script's tokens in the one form that all texts with the same tokens have
/// (lua_compat/matcher/script_tree.hpp). None (empty): it cannot be read as Lua, or is longer than
/// is worth looking at.
[[nodiscard]] std::string canonical_form(std::string_view script);

/// Looks at a script once, when it is loaded. `script` is without its shebang line, but with its
/// end of line, so that lines are counted as Lua counts them.
[[nodiscard]] ScriptShape shape_of(std::string_view script, KeysOf keys_of);

/// All texts, each once.
[[nodiscard]] std::span<const KnownEntry> known_catalogue() noexcept;

}  // namespace semel::lua
