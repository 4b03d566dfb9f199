// Runs Redis scripts in a Lua 5.1 sandbox with limits (docs/decisions/0014-scripts.md).
//
// One interpreter belongs to one thread. A script affects the outside only through Host. No script
// can use more than Bounds allow, and none can end the process.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lua_compat/runtime/bounds.hpp"
#include "lua_compat/runtime/host.hpp"
#include "semel/result.hpp"

namespace semel::lua {

class Interpreter {
 public:
  explicit Interpreter(const Bounds& bounds);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Sets the limits of scripts that begin from now on.
  void set_bounds(const Bounds& bounds) noexcept;

  /// Compiles `body`, without its shebang line, as the script `sha` of 40 lower-case hex digits.
  /// The detail of an error is the text of redis-server behind "Error compiling script (new
  /// function): ".
  [[nodiscard]] Status compile(std::string_view sha, std::string_view body);
  [[nodiscard]] bool has(std::string_view sha) const;
  void forget(std::string_view sha);
  /// Runs a compiled script and appends its one reply, which is an error if it fails.
  void run(std::string_view sha, const Invocation& invocation, Host& host, std::string& reply);

  /// Runs the code of a library, without its shebang line, and registers its functions under
  /// `library` in place of those that it had. On an error these stay, and its detail is the text of
  /// redis-server behind "Error ". `host` is called for pauses and log lines, never for commands;
  /// null: only the limit of steps stops the code.
  [[nodiscard]] Result<std::vector<RegisteredFunction>> load_library(std::string_view library,
                                                                     std::string_view code,
                                                                     Host* host = nullptr);
  void forget_library(std::string_view library);
  void run_function(std::string_view library, std::string_view function,
                    const Invocation& invocation, Host& host, std::string& reply);

  /// Bytes of memory in use.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  /// Whether compiled scripts and libraries use more than half of the memory limit. Replace the
  /// interpreter then: a new one compiles only scripts that are still called.
  [[nodiscard]] bool is_crowded() const noexcept;
  /// Collects garbage.
  void collect();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::lua
