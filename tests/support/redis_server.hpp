// A real redis-server for tests that compare: own process, own directory, unix socket, no disk.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace semel::tests {

class RedisServer {
 public:
  /// Starts the redis-server found in PATH and returns when it accepts connections. Null: there is
  /// none of version 7, or it did not come up. `arguments` are appended to the command line.
  [[nodiscard]] static std::unique_ptr<RedisServer> start(
      const std::vector<std::string>& arguments = {});

  /// Whether the last start() found none, or one of another version: no fault of this machine.
  [[nodiscard]] static bool is_missing() noexcept { return is_missing_; }

  /// Ends the process and removes its directory. If the test dies first, the process ends with it.
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] const std::string& socket_path() const noexcept { return socket_path_; }

 private:
  RedisServer() = default;
  [[nodiscard]] bool spawn(const std::vector<std::string>& arguments);
  [[nodiscard]] bool wait_until_ready();
  int wait_for_end();

  static inline bool is_missing_ = false;
  std::string directory_;
  std::string socket_path_;
  pid_t pid_ = -1;
  int log_ = -1;  ///< read end of the server's standard output
};

}  // namespace semel::tests
