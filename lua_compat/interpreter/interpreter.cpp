#include "lua_compat/interpreter/interpreter.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "lua_compat/interpreter/globals.hpp"
#include "lua_compat/libraries/base_library.hpp"
#include "lua_compat/runtime/lua_to_reply.hpp"
#include "lua_compat/runtime/script_error.hpp"
#include "net/resp/resp_writer.hpp"

namespace semel::lua {
namespace {

constexpr int hook_steps = 1'000;
// redis-server allows a library half a second; this is some tenths of a second.
constexpr std::uint64_t library_steps_max = 20'000'000;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};
using Refs = std::unordered_map<std::string, int, TextHash, std::equal_to<>>;

/// Collection allocates memory itself, for smaller tables. It must not fail at the limit, so the
/// limits are lifted until it ends.
void collect_garbage(lua_State* state, Run& run) {
  const std::size_t memory_max = std::exchange(run.memory_max, ~std::size_t{0});
  const std::uint64_t allocated_max = std::exchange(run.allocated_max, ~std::uint64_t{0});
  lua_gc(state, LUA_GCCOLLECT, 0);
  run.memory_max = memory_max;
  run.allocated_max = allocated_max;
}

/// A script must not fail for garbage that is not collected yet.
void collect_if_needed(lua_State* state, Run& run) {
  if (run.memory_used <= run.memory_max / 4 * 3) return;
  if (run.allocated - run.allocated_at_collection <= run.memory_max / 8) return;
  run.steps += run.memory_used / 32;
  collect_garbage(state, run);
  run.allocated_at_collection = run.allocated;
}

/// The hook that LuaJIT calls every hook_steps instructions.
void count_steps(lua_State* state, lua_Debug*) {
  Run& run = run_of(state);
  run.steps += hook_steps;
  if (run.over == nullptr && run.steps > run.steps_max) run.over = "script ran for too many steps";
  pause_if_due(run);
  if (run.over != nullptr) raise_end(state);
  collect_if_needed(state, run);
}

int initialise(lua_State* state) {
  Run& run = run_of(state);
  build_globals(state, run);
  const auto kept = [state](lua_CFunction function) {
    lua_pushcfunction(state, function);
    return luaL_ref(state, LUA_REGISTRYINDEX);
  };
  run.handler = kept(keep_error);
  run.entry_compile = kept([](lua_State* own) {
    Run& mine = run_of(own);
    select_globals(own, mine, mine.environment);
    if (compile_source(own, mine) != 0) {
      std::size_t bytes = 0;
      const char* const text = lua_tolstring(own, -1, &bytes);
      mine.error_text.assign(text, bytes);
      mine.failure = "the text cannot be compiled";
    } else {
      mine.function = luaL_ref(own, LUA_REGISTRYINDEX);
    }
    return 0;
  });
  run.entry_run = kept([](lua_State* own) {
    Run& mine = run_of(own);
    select_globals(own, mine, mine.environment);
    SEMEL_ASSERT(mine.invocation != nullptr && mine.host != nullptr);
    lua_rawgeti(own, LUA_REGISTRYINDEX, mine.function);
    SEMEL_ASSERT(lua_isfunction(own, -1));
    for (const auto words : {mine.invocation->keys, mine.invocation->args}) {
      lua_createtable(own, static_cast<int>(words.size()), 0);
      int index = 0;
      for (const std::string_view word : words) {
        lua_pushlstring(own, word.data(), word.size());
        lua_rawseti(own, -2, ++index);
      }
    }
    const bool is_script = mine.environment == Environment::scripts;
    if (is_script) set_script_arguments(own, mine);
    lua_call(own, is_script ? 0 : 2, 1);
    write_value(own, mine);
    SEMEL_ASSERT(mine.failure != nullptr || lua_gettop(own) == 0);
    return 0;
  });
  // Creates the free list of the registry now, so that luaL_unref() allocates nothing later.
  luaL_unref(state, LUA_REGISTRYINDEX, kept(keep_error));
  run.entry_library = kept([](lua_State* own) {
    Run& mine = run_of(own);
    SEMEL_ASSERT(mine.library != nullptr);
    show_library_globals(own, mine, true);
    lua_rawgeti(own, LUA_REGISTRYINDEX, mine.function);
    lua_call(own, 0, 0);
    return 0;
  });
  return 0;
}

}  // namespace

class Interpreter::Impl {
 public:
  explicit Impl(const Bounds& bounds) : bounds_(bounds) {
    run_.begin(bounds);
    state_ = lua_newstate(allocate, static_cast<Budget*>(&run_));
    if (state_ == nullptr) return;
    luaJIT_setmode(state_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
    run_.stack_base = static_cast<const char*>(__builtin_frame_address(0));
    if (lua_cpcall(state_, initialise, nullptr) != 0) {
      lua_close(state_);
      state_ = nullptr;
      return;
    }
    lua_sethook(state_, count_steps, LUA_MASKCOUNT, hook_steps);
  }
  ~Impl() {
    if (state_ != nullptr) lua_close(state_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void set_bounds(const Bounds& bounds) noexcept { bounds_ = bounds; }

  /// The reference of the compiled function in the registry.
  Result<int> compile(Environment environment, std::string_view source) {
    begin(environment);
    run_.source = source;
    run_.source_name = environment == Environment::scripts ? "@user_script" : "@user_function";
    run_.source_is_script = environment == Environment::scripts;
    const int status = protect(run_.entry_compile);
    tidy_up();
    if (status != 0) return Error{ErrorCode::syntax, error_text_of(run_, status)};
    if (run_.failure != nullptr) {
      return Error{ErrorCode::syntax, std::exchange(run_.error_text, {})};
    }
    return run_.function;
  }

  void run(Environment environment, std::string_view name, int function,
           const Invocation& invocation, Host& host, std::string& reply) {
    begin(environment);
    run_.host = &host;
    run_.has_commands = true;
    run_.invocation = &invocation;
    run_.function = function;
    run_.reply = &reply;
    const std::size_t reply_begin = reply.size();
    const int status = protect(run_.entry_run);
    if (status != 0 || run_.over != nullptr || run_.failure != nullptr) {
      reply.resize(reply_begin);
      net::RespWriter{reply, invocation.dialect}.error(error_of(run_, status, name));
    }
    run_.host = nullptr;
    run_.has_commands = false;
    run_.invocation = nullptr;
    run_.reply = nullptr;
    tidy_up();
  }

  Status load_library(std::string_view code, LibraryDraft& draft, Host* host) {
    const Result<int> function = compile(Environment::functions, code);
    if (!function.ok()) {
      return Error{function.error().code, "compiling function: " + function.error().detail};
    }
    begin(Environment::functions);
    run_.steps_max = std::min(run_.steps_max, library_steps_max);
    run_.function = *function;
    run_.library = &draft;
    run_.host = host;
    const int status = protect(run_.entry_library);
    run_.host = nullptr;
    run_.library = nullptr;
    show_library_globals(state_, run_, false);
    release(*function);
    tidy_up();
    if (run_.over != nullptr) {
      return Error{ErrorCode::timed_out, "registering functions: ERR FUNCTION LOAD timeout"};
    }
    if (status == 0) return Done{};
    return Error{ErrorCode::syntax, "registering functions: " + error_text_of(run_, status)};
  }

  void release(int function) { luaL_unref(state_, LUA_REGISTRYINDEX, function); }
  void collect() { collect_garbage(state_, run_); }

  [[nodiscard]] bool works() const noexcept { return state_ != nullptr; }
  [[nodiscard]] bool is_crowded() const noexcept { return is_crowded_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return run_.memory_used; }

  Refs scripts;
  std::unordered_map<std::string, Refs, TextHash, std::equal_to<>> libraries;

 private:
  void begin(Environment environment) {
    SEMEL_ASSERT(run_.host == nullptr && run_.library == nullptr);  // the last run has ended
    run_.begin(bounds_);
    run_.environment = environment;
    run_.dialect = net::Resp::two;
    run_.failure = nullptr;
    run_.on_pause = ask_host;
    run_.allocated_at_collection = 0;
    run_.reply_bytes_max = bounds_.reply_bytes;
    run_.reply_depth_max = bounds_.reply_depth;
    run_.error_text.clear();
    run_.has_error_text = false;
    run_.error_source.clear();
    run_.error_line = 0;
  }

  /// Calls one of the entries, which read their arguments from the run. Everything that may raise
  /// an error happens inside.
  int protect(int entry) {
    SEMEL_ASSERT(lua_gettop(state_) == 0);  // no other run is under way
    run_.stack_base = static_cast<const char*>(__builtin_frame_address(0));
    lua_rawgeti(state_, LUA_REGISTRYINDEX, run_.handler);
    lua_rawgeti(state_, LUA_REGISTRYINDEX, entry);
    const int status = lua_pcall(state_, 0, 0, 1);
    lua_settop(state_, 0);
    return status;
  }

  /// Collects the garbage of the last script, so that the next one does not fail for it. The
  /// threshold rises with what stays in use, so that not every script pays for a collection.
  void tidy_up() {
    if (run_.memory_used <= std::max(run_.memory_max / 2, tidy_above_)) return;
    collect();
    tidy_above_ = run_.memory_used + run_.memory_max / 8;
    is_crowded_ = run_.memory_used > run_.memory_max / 2;
  }

  Bounds bounds_;
  std::size_t tidy_above_ = 0;
  bool is_crowded_ = false;
  Run run_;
  lua_State* state_ = nullptr;
};

namespace {

Error no_memory() {
  return {ErrorCode::memory_full, "not enough memory"};
}

}  // namespace

Interpreter::Interpreter(const Bounds& bounds) : impl_(std::make_unique<Impl>(bounds)) {}
Interpreter::~Interpreter() = default;

void Interpreter::set_bounds(const Bounds& bounds) noexcept {
  impl_->set_bounds(bounds);
}

Status Interpreter::compile(std::string_view sha, std::string_view body) {
  if (!impl_->works()) return no_memory();
  SEMEL_TRY(function, impl_->compile(Environment::scripts, body));
  forget(sha);
  impl_->scripts.emplace(sha, function);
  return Done{};
}

bool Interpreter::has(std::string_view sha) const {
  return impl_->scripts.find(sha) != impl_->scripts.end();
}

void Interpreter::forget(std::string_view sha) {
  const auto found = impl_->scripts.find(sha);
  if (found == impl_->scripts.end()) return;
  impl_->release(found->second);
  impl_->scripts.erase(found);
}

void Interpreter::run(std::string_view sha, const Invocation& invocation, Host& host,
                      std::string& reply) {
  const auto found = impl_->scripts.find(sha);
  if (found == impl_->scripts.end()) {
    reply += "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    return;
  }
  impl_->run(Environment::scripts, sha, found->second, invocation, host, reply);
}

Result<std::vector<RegisteredFunction>> Interpreter::load_library(std::string_view library,
                                                                  std::string_view code,
                                                                  Host* host) {
  if (!impl_->works()) return no_memory();
  std::vector<RegisteredFunction> functions;
  LibraryDraft draft{.functions = &functions};
  const Status loaded = impl_->load_library(code, draft, host);
  if (!loaded.ok()) {
    for (const int callback : draft.callbacks) impl_->release(callback);
    return loaded.error();
  }
  SEMEL_ASSERT(functions.size() == draft.callbacks.size());
  forget_library(library);
  Refs refs;
  for (std::size_t at = 0; at < functions.size(); ++at)
    refs.emplace(functions[at].name, draft.callbacks[at]);
  impl_->libraries.emplace(library, std::move(refs));
  return functions;
}

void Interpreter::forget_library(std::string_view library) {
  const auto found = impl_->libraries.find(library);
  if (found == impl_->libraries.end()) return;
  for (const auto& [name, function] : found->second) impl_->release(function);
  impl_->libraries.erase(found);
}

void Interpreter::run_function(std::string_view library, std::string_view function,
                               const Invocation& invocation, Host& host, std::string& reply) {
  const auto of_library = impl_->libraries.find(library);
  if (of_library != impl_->libraries.end()) {
    const auto found = of_library->second.find(function);
    if (found != of_library->second.end()) {
      impl_->run(Environment::functions, function, found->second, invocation, host, reply);
      return;
    }
  }
  reply += "-ERR Function not found\r\n";
}

std::size_t Interpreter::memory_bytes() const noexcept {
  return impl_->memory_bytes();
}

bool Interpreter::is_crowded() const noexcept {
  return impl_->is_crowded();
}

void Interpreter::collect() {
  if (impl_->works()) impl_->collect();
}

}  // namespace semel::lua
