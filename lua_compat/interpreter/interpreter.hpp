// Lua 5.1 for scripts of Redis: a closed world, within bounds (docs/decisions/0014-scripts.md).
//
// One interpreter belongs to one thread. What a script does goes through Host; everything else that
// it can reach is inside. No script can take more than Bounds allow, and none can end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/resp_writer.hpp"

namespace semel::lua {

/// Why a script must end before its end.
enum class Stop : std::uint8_t {
  none,
  killed,  ///< SCRIPT KILL, FUNCTION KILL
  time,    ///< it has run for longer than it may
};

enum class LogLevel : std::uint8_t { debug, verbose, notice, warning };

/// What a script may reach outside of itself. Called on the thread that runs the script, never
/// after run() has returned.
class Host {
 public:
  virtual ~Host() = default;
  /// Carries out one command for the script and appends its one reply, in `dialect`. Errors of
  /// scripts ("ERR Unknown Redis command called from script") are such replies too, without the
  /// part " script: .., on ..", which the interpreter adds.
  virtual void call(std::span<const std::string_view> words, net::Resp dialect,
                    std::string& reply) = 0;
  /// redis.acl_check_cmd: whether the client may. None: there is no such command.
  [[nodiscard]] virtual std::optional<bool> may_call(std::span<const std::string_view> words) = 0;
  virtual void log(LogLevel level, std::string_view text) = 0;
  /// Asked every so many steps; may take a while (the script's fibre steps aside in it).
  [[nodiscard]] virtual Stop pause() = 0;
};

struct Bounds {
  std::uint64_t steps = 500'000'000;                 ///< of the virtual machine and of libraries
  std::size_t memory_bytes = std::size_t{64} << 20;  ///< of the whole interpreter, at once
  std::uint64_t allocated_bytes = std::uint64_t{16} << 30;  ///< by one script, altogether
  std::size_t reply_bytes = std::size_t{64} << 20;          ///< of one script's reply
  std::size_t reply_depth = 128;                            ///< of arrays within arrays
};

/// One run of a script.
struct Invocation {
  std::span<const std::string_view> keys;
  std::span<const std::string_view> args;
  net::Resp dialect = net::Resp::two;  ///< of the client that gets the reply
};

/// What redis.register_function was called with.
struct RegisteredFunction {
  std::string name;
  std::string description;
  bool has_description = false;
  std::vector<std::string> flags;  ///< as given: no-writes, allow-oom, ..
};

class Interpreter {
 public:
  explicit Interpreter(const Bounds& bounds);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Bounds of the scripts that begin from now on.
  void set_bounds(const Bounds& bounds) noexcept;

  /// Compiles `body` (without its shebang line) as the script `sha`, 40 small hex digits. Returns
  /// what is wrong, as redis-server says it behind "Error compiling script (new function): ".
  [[nodiscard]] std::optional<std::string> compile(std::string_view sha, std::string_view body);
  [[nodiscard]] bool has(std::string_view sha) const;
  void forget(std::string_view sha);
  /// Runs a script that has() and appends its one reply, also if it fails.
  void run(std::string_view sha, const Invocation& invocation, Host& host, std::string& reply);

  /// Runs the code of a library (without its shebang line) and keeps its functions under `library`,
  /// instead of those that it had. Returns the error, as redis-server says it behind "Error ".
  /// `host` is asked for pauses and takes lines of the log, never commands; null: the bound of
  /// steps alone ends the code.
  [[nodiscard]] std::optional<std::string> load_library(std::string_view library,
                                                        std::string_view code,
                                                        std::vector<RegisteredFunction>& functions,
                                                        Host* host = nullptr);
  void forget_library(std::string_view library);
  void run_function(std::string_view library, std::string_view function,
                    const Invocation& invocation, Host& host, std::string& reply);

  /// Bytes in use now.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  /// Whether what is kept of scripts and libraries takes more than half of what all may have: a
  /// new interpreter would do better, in which only those are compiled that are still called.
  [[nodiscard]] bool is_crowded() const noexcept;
  /// Gives back what nothing refers to any more.
  void collect();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace semel::lua
