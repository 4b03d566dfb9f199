// How a script reaches the outside: the interface that its host implements, and the values that
// cross it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/resp_writer.hpp"

namespace semel::lua {

/// Why a script must stop early.
enum class Stop : std::uint8_t {
  none,
  killed,  ///< by SCRIPT KILL or FUNCTION KILL
  time,    ///< its time limit has passed
};

enum class LogLevel : std::uint8_t { debug, verbose, notice, warning };

/// Everything outside the interpreter that a script can reach. Called on the thread that runs the
/// script, and never after run() has returned.
class Host {
 public:
  virtual ~Host() = default;
  /// Executes one command for the script and appends its one reply, in `dialect`. Errors such as
  /// "ERR Unknown Redis command called from script" are replies, too; the interpreter adds the part
  /// " script: .., on ..".
  virtual void call(std::span<const std::string_view> words, net::Resp dialect,
                    std::string& reply) = 0;
  /// For redis.acl_check_cmd: whether the client may run the command. None: no such command exists.
  [[nodiscard]] virtual std::optional<bool> may_call(std::span<const std::string_view> words) = 0;
  virtual void log(LogLevel level, std::string_view text) = 0;
  /// Called at regular numbers of steps. May take a while: the fibre of the script may yield in it.
  [[nodiscard]] virtual Stop pause() = 0;
};

/// The arguments of one run.
struct Invocation {
  std::span<const std::string_view> keys;
  std::span<const std::string_view> args;
  net::Resp dialect = net::Resp::two;  ///< of the client that receives the reply
};

/// The arguments of redis.register_function.
struct RegisteredFunction {
  std::string name;
  std::string description;
  bool has_description = false;
  std::vector<std::string> flags;  ///< as given: no-writes, allow-oom, ..
};

}  // namespace semel::lua
