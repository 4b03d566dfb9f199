// Recognises widely used scripts by their tokens (docs/decisions/0014-scripts.md), and analyses a
// script without running it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lua_compat/matcher/script_commands.hpp"

namespace semel::lua {

/// What a known script does. The texts are in known_catalogue.def.
enum class KnownScript : std::uint8_t {
  unknown,
  one_command,      ///< returns the reply of its one command
  compare_and_run,  ///< runs its commands if the first key has the first argument as its value
  count,            ///< adds to a counter, and sets its expiry when it is new
  take,             ///< returns the value and deletes it
  remove_existing,  ///< deletes a key and returns whether it existed
  get_or_set,       ///< returns the value, or sets it with an expiry
  set_absent,       ///< sets a missing key with an expiry
  count_below,      ///< adds one, with an expiry, unless the limit is reached
  count_existing,   ///< adds to an existing counter
  spend,            ///< subtracts one from a positive counter
  // Each of these belongs to one library.
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

/// An argument of a command that a script sends.
struct ScriptWord {
  enum class From : std::uint8_t {
    text,
    key,
    argument,
    number,  ///< an argument behind tonumber: refused if the conversion would change it
  };
  From from = From::text;
  std::uint32_t index = 0;  ///< in KEYS or ARGV, from 0
  std::string text{};
};
using ScriptCommand = std::vector<ScriptWord>;

/// The reply of a script where it is constant: a number, null, a text.
struct ScriptAnswer {
  enum class Kind : std::uint8_t { last, number, nothing, status, error, bulk };
  Kind kind = Kind::last;  ///< last: the reply of the last command
  std::int64_t number = 0;
  std::string_view text{};
};

/// One entry of the catalogue. A constant such as `?1` in its text is a wildcard, which matches any
/// constant in this position; `H1` is the matched constant in its commands.
struct KnownEntry {
  KnownScript means = KnownScript::unknown;
  std::string_view name;  ///< for people and tests
  std::string_view text;
  /// Its commands, separated by `;`. K1 is the first key, A1 the first argument, N1 the first
  /// argument behind tonumber. Commands that `means` implies are not listed.
  std::string_view commands{};
  ScriptAnswer missing{};  ///< compare_and_run: if the key does not exist
  ScriptAnswer differs{};  ///< compare_and_run: if it has another value
  ScriptAnswer answer{};
  std::uint32_t variant = 0;  ///< distinguishes several forms of one meaning
  std::uint32_t keys = 1;     ///< how many it needs
  std::uint32_t arguments = 0;
};

/// The result of the analysis of a script.
struct ScriptShape {
  /// Every key that it can access is one of KEYS, so it locks only the shards of these keys.
  bool declares_keys = false;
  /// The known script that it is, or `unknown`.
  KnownScript known = KnownScript::unknown;
  /// Its entry in the catalogue; null for `unknown` and `one_command`.
  const KnownEntry* entry = nullptr;
  /// The commands of a known script, with its constants filled in.
  std::vector<ScriptCommand> commands;
  /// The lines of the command calls of a known script, in the order of the text. Errors name them.
  std::vector<std::uint32_t> lines;
  /// The commands in any script that can be parsed (lua_compat/matcher/script_calls.hpp); used only
  /// when it is loaded.
  std::vector<SentCommand> sent;
};

/// The tokens of the script in a canonical form, which is equal for all texts with the same token
/// row (lua_compat/matcher/script_tree.hpp). Empty: it cannot be parsed, or is too long.
[[nodiscard]] std::string canonical_form(std::string_view script);

/// Analyses a script when it is loaded. `script` lacks its shebang line but has the line end of it,
/// so that line numbers are those of Lua.
[[nodiscard]] ScriptShape shape_of(std::string_view script, KeysOf keys_of);

/// All entries.
[[nodiscard]] std::span<const KnownEntry> known_catalogue() noexcept;

}  // namespace semel::lua
