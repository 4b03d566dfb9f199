// What the functions of a script's world share: the run that is under way in their interpreter.
// What has a destructor lives here and not on the stack, where an error of Lua would pass it by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lua_compat/interpreter/interpreter.hpp"
#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/source_form.hpp"

namespace semel::lua {

/// Which of the worlds of one interpreter a run is in.
enum class World : std::uint8_t { scripts, functions };

/// Strings that are needed all the time; the world keeps each, so that pushing one takes no memory.
enum class Word : std::uint8_t {
  err,
  ok,
  double_,
  map,
  set,
  big_number,
  verbatim_string,
  string,
  format,
  ignore_error_stats_update,
  keys,
  args,
  ended,
  count
};

/// Functions of a library that is being loaded, with what the registry keeps them under.
struct LibraryDraft {
  std::vector<RegisteredFunction>* functions = nullptr;
  std::unordered_set<std::string> names{};  ///< of these
  std::vector<int> callbacks{};
};

/// One interpreter's; its allocator's argument.
struct Run : Budget {
  Host* host = nullptr;       ///< null: nothing runs, or a library is loaded that nobody waits for
  bool has_commands = false;  ///< the host takes commands: no library is being loaded
  const Invocation* invocation = nullptr;
  net::Resp dialect = net::Resp::two;  ///< what redis.setresp chose
  World world = World::scripts;
  int function = 0;                 ///< what is to run, in the registry
  std::string* reply = nullptr;     ///< appended to
  const char* failure = nullptr;    ///< why there is no reply of the script's value
  LibraryDraft* library = nullptr;  ///< while one is being loaded

  std::size_t reply_bytes_max = 0;
  std::size_t reply_depth_max = 0;
  std::uint64_t allocated_at_collection = 0;

  // The error that ended the run, as it was when it was raised.
  std::string error_text{};
  bool has_error_text = false;
  std::string error_source{};
  int error_line = 0;

  // One call of a command.
  std::vector<std::string_view> words{};
  std::vector<char> digits{};
  std::string answer{};

  // A text on its way to becoming a function.
  std::string_view source{};
  const char* source_name = nullptr;
  bool source_is_script = false;
  std::string pieces{};
  SourceForm form{};

  // In the registry.
  int words_kept[static_cast<std::size_t>(Word::count)] = {};
  int globals[2] = {};         ///< by World
  int script_globals = 0;      ///< the real table, where KEYS and ARGV are put
  int function_globals = 0;    ///< what functions see when they run ..
  int library_globals = 0;     ///< .. and while their library is loaded
  int function_metatable = 0;  ///< that of their globals, where the two are exchanged
  int handler = 0;             ///< what is told of each error
  int entry_compile = 0;
  int entry_run = 0;
  int entry_library = 0;
};

[[nodiscard]] inline Run& run_of(lua_State* state) noexcept {
  return static_cast<Run&>(budget_of(state));
}

inline void push_word(lua_State* state, const Run& run, Word word) {
  lua_rawgeti(state, LUA_REGISTRYINDEX, run.words_kept[static_cast<std::size_t>(word)]);
}

/// Whether the script must end, whatever it has caught.
[[nodiscard]] inline bool must_end(lua_State* state) noexcept {
  return budget_of(state).over != nullptr;
}

/// Budget::on_pause of a Run: asks its host, if it has one, whether the script may go on.
void ask_host(Budget& budget);

/// Raises the error that ends the script.
int raise_end(lua_State* state);

}  // namespace semel::lua
