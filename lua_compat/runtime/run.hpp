// The state of the current run, which all library functions of an interpreter share. Objects with
// destructors live here and not on the stack, because a Lua error skips destructors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lua_compat/runtime/budget.hpp"
#include "lua_compat/runtime/host.hpp"
#include "lua_compat/runtime/lua_api.hpp"
#include "lua_compat/runtime/source_form.hpp"

namespace semel::lua {

/// Which of the two sets of globals a run uses: that of scripts or that of library functions.
enum class Environment : std::uint8_t { scripts, functions };

/// Strings that are used often. The registry holds each, so that pushing one allocates nothing.
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

/// The functions of a library that is being loaded, and their references in the registry.
struct LibraryDraft {
  std::vector<RegisteredFunction>* functions = nullptr;
  std::unordered_set<std::string> names{};  ///< of these
  std::vector<int> callbacks{};
};

/// One for each interpreter; the argument of its allocator.
struct Run : Budget {
  Host* host = nullptr;       ///< null: nothing runs, or a library is loaded without one
  bool has_commands = false;  ///< commands may be called: no library is being loaded
  const Invocation* invocation = nullptr;
  net::Resp dialect = net::Resp::two;  ///< chosen by redis.setresp
  Environment environment = Environment::scripts;
  int function = 0;                 ///< registry reference of the function to run
  std::string* reply = nullptr;     ///< appended to
  const char* failure = nullptr;    ///< why the value of the script is not a reply
  LibraryDraft* library = nullptr;  ///< while one is being loaded

  std::size_t reply_bytes_max = 0;
  std::size_t reply_depth_max = 0;
  std::uint64_t allocated_at_collection = 0;

  // The error that ended the run, recorded when it was raised.
  std::string error_text{};
  bool has_error_text = false;
  std::string error_source{};
  int error_line = 0;

  // The current call of a command.
  std::vector<std::string_view> words{};
  std::vector<char> digits{};
  std::string answer{};

  // The text that is being compiled.
  std::string_view source{};
  const char* source_name = nullptr;
  bool source_is_script = false;
  std::string pieces{};
  SourceForm form{};

  // References in the registry.
  int words_kept[static_cast<std::size_t>(Word::count)] = {};
  int globals[2] = {};         ///< by Environment
  int script_globals = 0;      ///< the real table, which gets KEYS and ARGV
  int function_globals = 0;    ///< what functions see when they run
  int library_globals = 0;     ///< what they see while their library is loaded
  int function_metatable = 0;  ///< the metatable that selects one of these two
  int handler = 0;             ///< called with each error
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

/// Whether the script must stop, even if it caught the error.
[[nodiscard]] inline bool must_end(lua_State* state) noexcept {
  return budget_of(state).over != nullptr;
}

/// Budget::on_pause of a Run: asks the host, if there is one, whether the script may continue.
void ask_host(Budget& budget);

/// Raises the error that stops the script.
int raise_end(lua_State* state);

}  // namespace semel::lua
