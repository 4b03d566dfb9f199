// Scripts that the field uses all the time, recognised by their tokens
// (docs/decisions/0014-scripts.md), and what can be said of a script without running it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace semel::lua {

/// One meaning each; the texts that mean it are in known_scripts.cpp.
enum class KnownScript : std::uint8_t {
  unknown,
};

/// What the tokens of a script show.
struct ScriptShape {
  /// Every key that it can touch is one of KEYS: its section is that of their shards.
  bool declares_keys = false;
  /// It is this known script; or `unknown`.
  KnownScript known = KnownScript::unknown;
};

/// The script's tokens in the one form that all texts with the same tokens have: names of locals
/// numbered, strings unquoted, comments gone, names of commands in small letters. None (empty): it
/// cannot be read as Lua, or is longer than is worth looking at.
[[nodiscard]] std::string canonical_form(std::string_view script);

/// Looks at a script once, when it is loaded.
[[nodiscard]] ScriptShape shape_of(std::string_view script);

}  // namespace semel::lua
