// A redis-server of our own and a few words with it. Everything goes over a Unix socket in a
// directory of its own: no port can be taken, and it is the quicker way for the server.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace semel::bench {

/// Runs a program and returns its stdout. Not ended after `seconds`, or with another code than 0:
/// ends the calling process.
[[nodiscard]] std::string output_of(const std::vector<std::string>& command, double seconds);

/// True if `program` can be found.
[[nodiscard]] bool is_installed(const std::string& program);

/// One connection. What it cannot do ends the calling process.
class RedisClient {
 public:
  RedisClient() = default;
  ~RedisClient();
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  /// False: the server does not listen yet.
  [[nodiscard]] bool connect(const std::string& socket);
  void send(std::string_view bytes);
  /// The next reply: a line with its first letter, or the bytes of a bulk.
  [[nodiscard]] std::string reply();
  /// A command without spaces in its words.
  [[nodiscard]] std::string ask(std::string_view command);
  [[nodiscard]] std::uint64_t number(std::string_view command);

 private:
  void fill();
  int socket_ = -1;
  std::string buffer_;
  std::size_t at_ = 0;
};

/// Adds one command with binary words.
void add_command(std::string& to, std::initializer_list<std::string_view> words);

/// For a process of its own: the working directory becomes the server's. Ended with the object, and
/// with the process.
class RedisServer {
 public:
  static constexpr const char* socket_name = "redis.sock";

  /// Returns when the server answers, after it has loaded what is in `directory`.
  RedisServer(const std::string& directory, const std::vector<std::string>& options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] RedisClient& client() noexcept { return client_; }
  /// CPU time of the server, its threads and the children it has waited for, in seconds.
  [[nodiscard]] double cpu_seconds() const;

 private:
  pid_t process_ = -1;
  RedisClient client_;
};

}  // namespace semel::bench
