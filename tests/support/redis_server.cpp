#include "tests/support/redis_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace semel::tests {
namespace {

constexpr int not_installed = 127;  // the exit code of a process that could not become it

}  // namespace

std::unique_ptr<RedisServer> RedisServer::start(const std::vector<std::string>& arguments) {
  is_missing_ = false;
  std::unique_ptr<RedisServer> server{new RedisServer};
  std::error_code error;
  std::string pattern =
      (std::filesystem::temp_directory_path(error) / "semel-redis-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) return nullptr;
  server->directory_ = pattern;
  server->socket_path_ = pattern + "/socket";
  if (!server->spawn(arguments) || !server->wait_until_ready()) return nullptr;
  return server;
}

bool RedisServer::spawn(const std::vector<std::string>& arguments) {
  std::vector<std::string> line{"redis-server",
                                "--port",
                                "0",
                                "--unixsocket",
                                socket_path_,
                                "--save",
                                "",
                                "--appendonly",
                                "no",
                                "--daemonize",
                                "no",
                                "--dir",
                                directory_,
                                "--loglevel",
                                "notice",
                                "--databases",
                                "16"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  // SORT .. ALPHA compares by the locale; ours by bytes.
  std::string collation = "LC_ALL=C";
  std::vector<char*> environment{collation.data()};
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view{*each}.starts_with("LC_ALL=")) environment.push_back(*each);
  }
  environment.push_back(nullptr);

  int log[2];
  if (::pipe2(log, O_CLOEXEC) != 0) return false;
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    // Only async-signal-safe calls from here on.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(log[1], STDOUT_FILENO);
    ::dup2(log[1], STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), environment.data());
    ::_exit(not_installed);
  }
  ::close(log[1]);
  log_ = log[0];
  return pid_ > 0;
}

bool RedisServer::wait_until_ready() {
  constexpr int patience_ms = 10'000;
  // One line of its log names the version, a later one says that it is "(R)eady to accept ..".
  constexpr std::string_view version = "version=";
  std::string seen;
  while (seen.find("eady to accept connections") == std::string::npos) {
    pollfd waiting{.fd = log_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, patience_ms) <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(log_, buffer, sizeof(buffer));
    if (got <= 0) {
      is_missing_ = wait_for_end() == not_installed;
      return false;
    }
    seen.append(buffer, static_cast<std::size_t>(got));
    const std::size_t at = seen.find(version);
    is_missing_ = at != std::string::npos && at + version.size() < seen.size() &&
                  seen[at + version.size()] != '7';
    if (is_missing_) return false;
  }
  return true;
}

/// Its exit code.
int RedisServer::wait_for_end() {
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

RedisServer::~RedisServer() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    static_cast<void>(wait_for_end());
  }
  if (log_ >= 0) ::close(log_);
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

}  // namespace semel::tests
