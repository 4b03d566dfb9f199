#include "bench/storage/storage_redis.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/harness/harness.hpp"

namespace semel::bench {

namespace {

constexpr double start_seconds_max = 240;  // the loading of the keys included
constexpr std::uint64_t poll_ns = 2'000'000;
constexpr time_t answer_seconds_max = 240;

/// A child with its stdout in `output`; it ends with this process.
pid_t start(const std::vector<std::string>& command, int output) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  require(child >= 0, "fork: no process for a peer");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(0);                    // the parent's was not inherited, but nothing rests on that
  unsetenv("GLIBC_TUNABLES");  // huge pages are not what Redis asks for
  dup2(output, STDOUT_FILENO);
  execvp(words[0], words.data());
  _exit(127);
}

double seconds_since(std::uint64_t ticks) {
  return static_cast<double>(__rdtsc() - ticks) / ticks_per_ns() * 1e-9;
}

/// Waits for the end of a child, and kills it when its time is over. True: it ended with 0.
bool ended_well(pid_t child, double seconds) {
  const std::uint64_t begin = __rdtsc();
  int status = -1;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if ((ended < 0 && errno != EINTR) || seconds_since(begin) > seconds) break;
    pause_ns(1'000'000);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return false;
}

}  // namespace

std::string output_of(const std::vector<std::string>& command, double seconds) {
  std::FILE* const file = std::tmpfile();
  require(file != nullptr, "no temporary file for a peer's output");
  if (!ended_well(start(command, fileno(file)), seconds)) {
    fail((command[0] + " failed or did not end").c_str());
  }
  std::rewind(file);
  std::string out;
  char block[4096];
  for (std::size_t got = 0; (got = std::fread(block, 1, sizeof(block), file)) > 0;) {
    out.append(block, got);
  }
  std::fclose(file);
  return out;
}

bool is_installed(const std::string& program) {
  const char* const path = getenv("PATH");
  if (path == nullptr) return false;
  std::string_view rest{path};
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    const std::string file = std::string{folder} + '/' + program;
    if (access(file.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  return false;
}

// --- client -------------------------------------------------------------------------------------

RedisClient::~RedisClient() {
  if (socket_ >= 0) ::close(socket_);
}

bool RedisClient::connect(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  require(socket.size() < sizeof(address.sun_path), "the socket's name is too long");
  socket.copy(address.sun_path, socket.size());
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(socket_ >= 0, "no socket");
  const timeval limit{.tv_sec = answer_seconds_max, .tv_usec = 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return true;
  ::close(socket_);
  socket_ = -1;
  return false;
}

void RedisClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    require(sent > 0, "redis-server takes no commands");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RedisClient::fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  char block[65536];
  const ssize_t got = recv(socket_, block, sizeof(block), 0);
  require(got > 0, "redis-server does not answer");
  buffer_.append(block, static_cast<std::size_t>(got));
}

std::string RedisClient::reply() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n", at_)) == std::string::npos) fill();
  std::string line = buffer_.substr(at_, end - at_);
  at_ = end + 2;
  if (line.empty() || line[0] != '$') return line;
  int length = -1;
  std::from_chars(line.data() + 1, line.data() + line.size(), length);
  if (length < 0) return {};
  const auto bytes = static_cast<std::size_t>(length);
  while (buffer_.size() - at_ < bytes + 2) fill();
  std::string bulk = buffer_.substr(at_, bytes);
  at_ += bytes + 2;
  return bulk;
}

std::string RedisClient::ask(std::string_view command) {
  send(std::string{command} + "\r\n");
  return reply();
}

std::uint64_t RedisClient::number(std::string_view command) {
  const std::string line = ask(command);
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(line.data() + 1, line.data() + line.size(), value);
  require(line.size() > 1 && line[0] == ':' && parsed.ec == std::errc{},
          "redis-server did not answer with a number");
  return value;
}

void add_command(std::string& to, std::initializer_list<std::string_view> words) {
  to.append("*").append(std::to_string(words.size())).append("\r\n");
  for (const std::string_view word : words) {
    to.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
}

// --- server -------------------------------------------------------------------------------------

RedisServer::RedisServer(const std::string& directory, const std::vector<std::string>& options) {
  // Names of sockets are short; that of the directory need not be.
  require(chdir(directory.c_str()) == 0, "no directory for redis-server");
  std::vector<std::string> command{"redis-server", "--port",    "0",         "--unixsocket",
                                   socket_name,    "--logfile", "redis.log", "--loglevel",
                                   "warning",      "--save",    ""};
  command.insert(command.end(), options.begin(), options.end());
  const std::uint64_t begin = __rdtsc();
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  process_ = start(command, nowhere);
  ::close(nowhere);
  const auto wait = [&] {
    pause_ns(poll_ns);
    int status = 0;
    require(waitpid(process_, &status, WNOHANG) == 0, "redis-server ended; see its log");
    require(seconds_since(begin) < start_seconds_max, "redis-server did not start in time");
  };
  while (!client_.connect(socket_name)) wait();
  // While it loads it answers -LOADING.
  while (client_.ask("PING") != "+PONG") wait();
}

RedisServer::~RedisServer() {
  kill(process_, SIGKILL);  // its data goes with the directory
  int status = 0;
  waitpid(process_, &status, 0);
}

double RedisServer::cpu_seconds() const {
  std::ifstream file{"/proc/" + std::to_string(process_) + "/stat"};
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  require(name_end != std::string::npos, "no CPU time of redis-server");
  // After the name: state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt, then
  // utime stime cutime cstime.
  unsigned long times[4] = {};
  const int got = std::sscanf(line.c_str() + name_end + 1,
                              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
                              &times[0], &times[1], &times[2], &times[3]);
  require(got == 4, "no CPU time of redis-server");
  const auto ticks = static_cast<double>(times[0] + times[1] + times[2] + times[3]);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace semel::bench
