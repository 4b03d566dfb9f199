// What the server does not bear: too many, too long, too much, too slow. Both sides of each limit.
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/server/descriptor.hpp"
#include "net/server/process.hpp"
#include "tests/net/server/server_fixture.hpp"
#include "tests/support/sanitized.hpp"

namespace semel::tests {
namespace {

using net::Ended;

TEST_CASE_METHOD(ServerFixture, "one client over maxclients gets an error and is closed",
                 "[net][server][limits]") {
  options.maxclients = 2;
  start();
  Socket one = connect();
  Socket two = connect();
  REQUIRE(one.ask("echo x\n") == "x\n");
  REQUIRE(two.ask("echo x\n") == "x\n");
  CHECK(connect().read_to_end() == "-ERR max number of clients reached\r\n");
  CHECK(server->stats().rejected_full == 1);
  CHECK(server->stats().clients == 2);
  one.close();
  REQUIRE(sessions.wait_ended(1));
  tick_round();
  Socket three = connect();
  CHECK(three.ask("echo x\n") == "x\n");
  REQUIRE(server->set_maxclients(3));
  Socket four = connect();
  CHECK(four.ask("echo x\n") == "x\n");
  CHECK_FALSE(server->set_maxclients(0));
  CHECK(server->maxclients() == 3);
}

TEST_CASE_METHOD(ServerFixture, "a client is closed when it has been idle for longer than allowed",
                 "[net][server][limits]") {
  options.limits.idle = Millis{5000};
  start();
  Socket idle = connect();
  REQUIRE(idle.ask("echo x\n") == "x\n");
  Socket waiting = connect();
  waiting.send("wait\n");
  REQUIRE(sessions.wait_for(2, [](const SessionState& seen) { return seen.waits; }));
  Socket listening = connect();
  REQUIRE(listening.ask("subscribe\n") == "subscribed\n");
  clock.advance(Millis{5000});
  tick_round();
  CHECK(ended_by(Ended::idle) == 0);
  clock.advance(Millis{1});
  tick_round();
  CHECK(ended_by(Ended::idle) == 1);
  CHECK(idle.read_to_end().empty());
  sessions.push(2, "still\n");
  CHECK(waiting.line() == "still\n");
  sessions.push(3, "here\n");
  CHECK(listening.line() == "here\n");
}

TEST_CASE_METHOD(ServerFixture, "a request that is not whole in time ends its connection",
                 "[net][server][limits]") {
  options.limits.request = Millis{1000};
  start();
  Socket slow = connect();
  slow.send("ech");
  REQUIRE(sessions.wait_received(1, 3));
  tick_round();
  clock.advance(Millis{1000});
  slow.send("o");  // a byte now and then does not help
  REQUIRE(sessions.wait_received(1, 4));
  tick_round();
  CHECK(ended_by(Ended::request_late) == 0);
  clock.advance(Millis{1});
  tick_round();
  CHECK(slow.read_to_end() == "-ERR the request was not whole within 1000 ms\r\n");
  CHECK(ended_by(Ended::request_late) == 1);
}

TEST_CASE_METHOD(ServerFixture, "the time for a request begins anew with each request",
                 "[net][server][limits]") {
  options.limits.request = Millis{1000};
  start();
  Socket steady = connect();
  std::size_t sent = 0;
  for (int i = 0; i < 5; ++i) {
    steady.send("x\nx");  // never without a part of the next one
    sent += 3;
    REQUIRE(sessions.wait_received(1, sent));
    clock.advance(Millis{900});
    tick_round();
  }
  CHECK(ended_by(Ended::request_late) == 0);
  // A request behind one that waits is not late: the server has not tried to read it.
  steady.send("\nwait\nx");
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.waits; }));
  clock.advance(Millis{5000});
  tick_round();
  CHECK(ended_by(Ended::request_late) == 0);
}

TEST_CASE_METHOD(ServerFixture, "a request of more bytes than allowed is refused with the limit",
                 "[net][server][limits]") {
  options.limits.input_bytes = 100;
  start();
  Socket client = connect();
  client.send(std::string(100, 'x'));
  REQUIRE(sessions.wait_received(1, 100));
  tick_round();
  CHECK(ended_by(Ended::input_limit) == 0);
  client.send("x");
  CHECK(client.read_to_end() == "-ERR a request of more than 100 bytes is not taken\r\n");
  CHECK(ended_by(Ended::input_limit) == 1);
}

TEST_CASE_METHOD(ServerFixture, "a request that finds no memory ends its own client alone",
                 "[net][server][limits][attack][fault-18]") {
  start();
  Socket other = connect();
  Socket client = connect();
  client.send("echo before\nfull\n");
  static_cast<void>(client.read_to_end());
  CHECK(ended_by(Ended::no_memory) == 1);
  other.send("echo after\n");
  CHECK(other.read(6) == "after\n");
}

TEST_CASE_METHOD(ServerFixture, "an unauthenticated client must log in within the request deadline",
                 "[net][server][limits]") {
  options.limits.request = Millis{1000};
  start();
  Socket stays = connect();
  REQUIRE(stays.ask("leave\n") == "who\n");
  Socket enters = connect();
  REQUIRE(enters.ask("leave\n") == "who\n");
  clock.advance(Millis{1000});
  REQUIRE(stays.ask("echo x\n") == "x\n");  // whatever else it does does not help
  tick_round();
  CHECK(ended_by(Ended::request_late) == 0);
  REQUIRE(enters.ask("enter\n") == "in\n");
  clock.advance(Millis{1});
  tick_round();
  CHECK(stays.read_to_end() == "-ERR not authenticated within 1000 ms\r\n");
  CHECK(ended_by(Ended::request_late) == 1);
  clock.advance(Millis{5000});
  tick_round();
  CHECK(enters.ask("echo x\n") == "x\n");
}

TEST_CASE_METHOD(ServerFixture, "the pending output of an unauthenticated client has a small limit",
                 "[net][server][limits]") {
  options.limits.unauthenticated_output_bytes = 1000;
  start();
  Socket known = connect();
  Socket client = connect();
  REQUIRE(client.ask("leave\n") == "who\n");
  const std::string much = "big 33554432\n";  // more than the kernel takes for us
  known.send(much);
  client.send(much);
  REQUIRE(sessions.wait_ended(2));
  tick_round();
  CHECK(ended_by(Ended::output_limit) == 1);
  CHECK(sessions.log().back().find("the limit is 1000") != std::string::npos);
  CHECK_FALSE(sessions.look(1).ended);
}

TEST_CASE_METHOD(ServerFixture, "pending output over the hard limit ends the connection",
                 "[net][server][limits]") {
  constexpr std::size_t buffers = std::size_t{32} << 20;  // more than the kernel takes for us
  options.limits.output[1] = {.hard_bytes = buffers, .soft_bytes = 0, .soft_for = Millis{0}};
  start();
  Socket client = connect();
  REQUIRE(client.ask("subscribe\n") == "subscribed\n");
  sessions.push(1, std::string(buffers, 'p'));
  tick_round();
  CHECK(ended_by(Ended::output_limit) == 0);
  sessions.push(1, std::string(buffers, 'p'));
  REQUIRE(sessions.wait_ended(1));
  tick_round();
  CHECK(ended_by(Ended::output_limit) == 1);
  CHECK(sessions.log().back().find("the limit is 33554432") != std::string::npos);
  CHECK(client.read_to_end().find("(open)") == std::string::npos);
}

TEST_CASE_METHOD(ServerFixture, "a reply over the hard limit ends the connection, and none is sent",
                 "[net][server][limits]") {
  options.limits.output[0] = {.hard_bytes = 1'000, .soft_bytes = 0, .soft_for = Millis{0}};
  start();
  Socket fits = connect();
  fits.send("big 999\n");
  CHECK(fits.read(1'000).size() == 1'000);
  Socket much = connect();
  much.send("big 1000\n");
  REQUIRE(sessions.wait_ended(2));
  tick_round();
  CHECK(ended_by(Ended::output_limit) == 1);
  CHECK(much.read_to_end().find('x') == std::string::npos);
  CHECK_FALSE(sessions.look(1).ended);
}

TEST_CASE_METHOD(ServerFixture, "pending output may be over the soft limit for a while",
                 "[net][server][limits]") {
  options.limits.output[0] = {
      .hard_bytes = 0, .soft_bytes = std::size_t{1} << 20, .soft_for = Millis{3000}};
  start();
  constexpr std::size_t bytes = std::size_t{32} << 20;
  Socket slow = connect();
  slow.send("big " + std::to_string(bytes) + "\n");
  Socket better = connect();
  better.send("big " + std::to_string(bytes) + "\n");
  const auto one = [](const SessionState& seen) { return seen.requests == 1; };
  REQUIRE(sessions.wait_for(1, one));
  REQUIRE(sessions.wait_for(2, one));
  tick_round();
  clock.advance(Millis{3000});
  tick_round();
  CHECK(ended_by(Ended::output_limit) == 0);
  CHECK(better.read(bytes + 1).size() == bytes + 1);
  tick_round();
  clock.advance(Millis{1});
  tick_round();
  CHECK(ended_by(Ended::output_limit) == 1);
  CHECK(better.ask("echo well\n") == "well\n");
  CHECK(slow.read_to_end().size() < bytes);
}

TEST_CASE_METHOD(ServerFixture, "a client that does not take the last replies is cut off",
                 "[net][server][limits]") {
  options.limits.linger = Millis{2000};
  start();
  Socket client = connect();
  client.send("big 33554432\nquit\n");
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.requests == 2; }));
  tick_round();
  clock.advance(Millis{2000});
  tick_round();
  CHECK(server->stats().clients == 1);
  clock.advance(Millis{1});
  tick_round();
  CHECK(server->stats().clients == 0);
}

TEST_CASE_METHOD(ServerFixture, "limits can be changed while it runs", "[net][server][limits]") {
  start();
  Socket client = connect();
  REQUIRE(client.ask("echo x\n") == "x\n");
  net::ConnectionLimits limits = options.limits;
  limits.idle = Millis{10};
  server->set_limits(limits);
  clock.advance(Millis{11});
  tick_round();
  CHECK(client.read_to_end().empty());
}

/// Bytes of memory that this process has in use.
std::size_t resident() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0;
  std::size_t pages = 0;
  file >> all >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_CASE_METHOD(ServerFixture, "a connection that is idle owns no buffer",
                 "[net][server][limits]") {
  start();
  constexpr std::size_t count = 1000;
  constexpr std::size_t bytes_max = 1536;  // of which a third is our kind of session
  constexpr std::size_t bytes = 20'000;
  Socket first = connect();
  first.send("big 20000\n");
  REQUIRE(first.read(bytes + 1).size() == bytes + 1);
  std::vector<Socket> clients;
  clients.reserve(count);
  const std::size_t before = resident();
  for (std::size_t i = 0; i < count; ++i) {
    clients.push_back(connect());
    clients.back().send("big 20000\n");
    REQUIRE(clients.back().read(bytes + 1).size() == bytes + 1);
  }
  const std::size_t each = (resident() - before) / count;
  INFO(each << " bytes a connection");
  CHECK((is_sanitized || each < bytes_max));
}

/// Lowers what this process may have open, and raises it again.
class FewFiles {
 public:
  explicit FewFiles(rlim_t files) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit fewer{.rlim_cur = files, .rlim_max = before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &fewer) == 0);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE_METHOD(ServerFixture, "a connection that had a large reply owns no buffer for it",
                 "[net][server][limits]") {
  start();
  constexpr std::size_t bytes = std::size_t{256} << 20;
  Socket client = connect();
  REQUIRE(client.ask("echo x\n") == "x\n");
  const std::size_t before = resident();
  client.send("big " + std::to_string(bytes) + "\n");
  for (std::size_t left = bytes + 1; left != 0;) {
    const std::size_t got = client.read(std::min(left, std::size_t{1} << 20)).size();
    REQUIRE(got != 0);
    left -= got;
  }
  REQUIRE(client.ask("echo x\n") == "x\n");
  const std::size_t grown = resident() - std::min(before, resident());
  INFO(grown << " bytes are kept");
  CHECK((is_sanitized || grown < bytes / 4));
}

TEST_CASE_METHOD(ServerFixture, "without a free descriptor one client gets an error, the rest wait",
                 "[net][server][limits]") {
  start();
  Socket first = connect();
  REQUIRE(first.ask("echo x\n") == "x\n");
  Socket second = connect();
  REQUIRE(second.ask("echo x\n") == "x\n");
  std::vector<net::Descriptor> sockets;
  for (int i = 0; i < 2; ++i) sockets.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  char words[64] = "";
  ssize_t received = 0;
  ssize_t ended = -1;
  net::ServerStats paused;
  net::ServerStats later;
  const int next = ::dup(first.native());  // the lowest number that is free
  REQUIRE(next >= 0);
  ::close(next);
  tick_round();
  {
    // Nothing is checked in here: a sanitizer that looks at an object for the first time, as it
    // does within Catch, needs a descriptor of its own.
    const FewFiles few{static_cast<rlim_t>(next)};
    static_cast<void>(::connect(sockets[0].get(), name, sizeof address));
    received = ::recv(sockets[0].get(), words, sizeof words - 1, 0);
    char more = 0;
    ended = ::recv(sockets[0].get(), &more, 1, 0);
    // This one waits in the backlog, and costs no round until the pause is over.
    static_cast<void>(::connect(sockets[1].get(), name, sizeof address));
    tick_round();
    paused = server->stats();
    tick_round();
    later = server->stats();
  }
  CHECK(received > 0);
  CHECK(std::string{words} == "-ERR max number of clients reached\r\n");
  CHECK(ended == 0);
  CHECK(paused.accept_pauses == 1);
  CHECK(paused.rejected_files == 1);
  CHECK(later.rounds == paused.rounds);
  CHECK(later.accepted == 2);
  CHECK(first.ask("echo on\n") == "on\n");
  clock.advance(Millis{100});
  tick_round();
  REQUIRE(::send(sockets[1].get(), "echo in\n", 8, 0) == 8);
  char reply[4] = "";
  CHECK(::recv(sockets[1].get(), reply, 3, MSG_WAITALL) == 3);
  CHECK(std::string{reply} == "in\n");
  CHECK(sessions.log().size() == 1);
}

/// Runs `body` in a child and gives its exit code.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE_METHOD(ServerFixture,
                 "maxclients is lowered to what the limit of open files has room for",
                 "[net][server][limits]") {
  options.maxclients = 1000;
  options.reserved_files = 64;
  const auto fails_at = [&]() -> int {
    const rlimit few{.rlim_cur = 200, .rlim_max = 200};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
    // root could raise it again.
    if (geteuid() == 0 && setresuid(65'534, 65'534, 65'534) != 0) return 2;
    auto started = net::Server::start(options, sessions.hooks());
    if (!started) return 3;
    server = *std::move(started);
    if (server->maxclients() != 136) return 4;
    if (server->set_maxclients(137) || !server->set_maxclients(136)) return 5;
    const std::string line = sessions.log().at(0);
    server.reset();
    if (line.find("maxclients 1000 needs 1064 open files, and the system allows 200") != 0)
      return 6;
    options.reserved_files = 200;
    return net::Server::start(options, sessions.hooks()).ok() ? 7 : 0;
  };
  CHECK(in_child(fails_at) == 0);
}

TEST_CASE("a child ends with its parent", "[net][process]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const net::Descriptor reader{ends[0]};
  net::Descriptor writer{ends[1]};
  // The grandchild keeps the writing end until it ends.
  const int code = in_child([&] {
    int ready[2];
    if (pipe(ready) != 0) return 1;
    const pid_t parent = getpid();
    if (fork() == 0) {
      signal(SIGTERM, SIG_DFL);  // not Catch's
      const bool armed = net::exit_with_parent(parent);
      if (write(ready[1], armed ? "y" : "n", 1) != 1 || !armed) _exit(1);
      for (;;) pause();
    }
    char word = 0;
    return read(ready[0], &word, 1) == 1 && word == 'y' ? 0 : 2;
  });
  CHECK(code == 0);
  writer.reset();
  pollfd waiting{.fd = reader.get(), .events = POLLIN, .revents = 0};
  CHECK(poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds{patience}.count())) == 1);
  CHECK(in_child([] { return net::exit_with_parent(getpid()) ? 1 : 0; }) == 0);  // not his parent
}

TEST_CASE("a ready file is there as a whole or not at all", "[net][process]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/ready";
  CHECK(net::write_ready_file(path, "port=1\n").ok());
  CHECK(net::write_ready_file(path, "port=2\n").ok());
  std::ifstream file{path};
  std::string text;
  std::getline(file, text, '\0');
  CHECK(text == "port=2\n");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{directory.path()}) {
    ++files;
  }
  CHECK(files == 1);
  const std::string nowhere = directory.path() + "/none/ready";
  CHECK(net::write_ready_file(nowhere, "x").error().detail ==
        "ready file '" + nowhere + "': No such file or directory");
}

TEST_CASE("a ready file of an earlier process is removed, and never one of a later",
          "[net][process]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/ready";
  CHECK(net::remove_old_ready_file(path).ok());
  REQUIRE(net::write_ready_file(path, "pid=1\n").ok());
  net::remove_own_ready_file(path, "pid=2\n");
  CHECK(std::filesystem::exists(path));
  net::remove_own_ready_file(path, "pid=1\n");
  CHECK_FALSE(std::filesystem::exists(path));
  REQUIRE(net::write_ready_file(path, "pid=1\n").ok());
  CHECK(net::remove_old_ready_file(path).ok());
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(net::remove_old_ready_file(directory.path()).error().detail ==
        "ready file '" + directory.path() + "': is not a regular file");
}

TEST_CASE("a server that everybody reaches needs a password or certificates", "[net][options]") {
  net::Exposure open{.addresses = {"127.0.0.1", "0.0.0.0"}, .has_plain_port = true};
  CHECK(net::check_exposure(open).error().detail ==
        "bind '0.0.0.0' lets everybody in who reaches the port: set a password (requirepass), or "
        "bind 127.0.0.1");
  open.has_password = true;
  CHECK(net::check_exposure(open).ok());
  open.has_password = false;
  open.requires_certificates = true;  // they do not guard the plain port
  CHECK_FALSE(net::check_exposure(open).ok());
  open.has_plain_port = false;
  open.has_tls_port = true;
  CHECK(net::check_exposure(open).ok());
  open.requires_certificates = false;
  CHECK(net::check_exposure(open).error().detail.find("tls-auth-clients") != std::string::npos);
  open.addresses = {"127.0.0.1", "127.8.9.1", "::1"};
  open.has_plain_port = true;
  CHECK(net::check_exposure(open).ok());
  open.addresses = {"::"};
  CHECK_FALSE(net::check_exposure(open).ok());
}

TEST_CASE("options out of their range are refused by name and limit", "[net][options]") {
  net::ServerOptions options;
  CHECK(net::check_options(options).error().detail.find("nothing to listen on") == 0);
  options.port = 0;
  CHECK(net::check_options(options).ok());
  options.threads = net::io_threads_max;
  CHECK(net::check_options(options).ok());
  options.threads = net::io_threads_max + 1;
  CHECK(net::check_options(options).error().detail == "io threads is 65; it must be 0..64");
  options.threads = 1;
  options.maxclients = 0;
  CHECK(net::check_options(options).error().detail == "maxclients is 0; it must be 1..1000000");
  options.maxclients = net::maxclients_max;
  CHECK(net::check_options(options).ok());
  options.maxclients = net::maxclients_max + 1;
  CHECK_FALSE(net::check_options(options).ok());
  options.maxclients = 1;
  options.backlog = 65'536;
  CHECK(net::check_options(options).error().detail == "backlog is 65536; it must be 1..65535");
  options.backlog = 65'535;
  CHECK(net::check_options(options).ok());
  options.addresses = {"localhost"};
  CHECK(net::check_options(options).error().detail ==
        "bind 'localhost': not an IPv4 or IPv6 address");
}

}  // namespace
}  // namespace semel::tests
