// A server that listens elsewhere from now on.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/server/socket_names.hpp"
#include "tests/net/server/server_fixture.hpp"

namespace semel::tests {
namespace {

bool is_refused(std::uint16_t port) {
  try {
    const Socket client{port};
  } catch (const std::system_error&) {
    return true;
  }
  return false;
}

/// Of the server's end of a connection that this process has both ends of.
int keepalive_of_accepted(std::uint16_t server_port) {
  constexpr int descriptors_max = 1'024;
  for (int fd = 0; fd < descriptors_max; ++fd) {
    const std::string remote = net::remote_name(fd);
    if (net::port_of(fd) != server_port || remote.starts_with("?")) continue;
    int on = 0;
    int idle = 0;
    socklen_t size = sizeof on;
    getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size);
    getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size);
    return on != 0 ? idle : 0;
  }
  return -1;
}

TEST_CASE_METHOD(ServerFixture, "listening: another port is served, and connections stay",
                 "[net][server][once-again-19]") {
  start();
  const std::uint16_t before = server->port();
  Socket old = connect();
  REQUIRE(old.ask("echo a\n") == "a\n");
  // A port that the system chose stays while nothing else is asked for.
  REQUIRE(server->listen_on({"127.0.0.1"}, std::uint16_t{0}).ok());
  CHECK(server->port() == before);
  std::uint16_t other = 0;
  {
    net::Descriptor plug{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(plug.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(::listen(plug.get(), 1) == 0);
    other = net::port_of(plug.get());
    const Status taken = server->listen_on({"127.0.0.1"}, other);
    REQUIRE_FALSE(taken.ok());
    CHECK(taken.error().detail.find("Address already in use") != std::string::npos);
    CHECK(taken.error().detail.find(std::to_string(other)) != std::string::npos);
    CHECK(server->port() == before);
    CHECK(connect().ask("echo b\n") == "b\n");
  }
  REQUIRE(server->listen_on({"127.0.0.1"}, other).ok());
  CHECK(server->port() == other);
  CHECK(connect().ask("echo c\n") == "c\n");
  tick_round();  // the old listener is closed on its thread
  CHECK(is_refused(before));
  CHECK(old.ask("echo d\n") == "d\n");
  CHECK(server->ready_text().find("port=" + std::to_string(other) + "\n") == 0);
}

TEST_CASE_METHOD(ServerFixture, "listening: one address of a port gives way to all, or stays",
                 "[net][server][once-again-19]") {
  start();
  const std::uint16_t port = server->port();
  Socket old = connect();
  REQUIRE(old.ask("echo a\n") == "a\n");
  // The second address does not exist here: the first one listens as before.
  const Status failed = server->listen_on({"0.0.0.0", "192.0.2.1"}, std::uint16_t{0});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().detail.find("192.0.2.1") != std::string::npos);
  CHECK(connect().ask("echo b\n") == "b\n");
  REQUIRE(server->listen_on({"0.0.0.0"}, std::uint16_t{0}).ok());
  CHECK(server->port() == port);
  tick_round();
  CHECK(connect().ask("echo c\n") == "c\n");
  CHECK(old.ask("echo d\n") == "d\n");
  // Many changes take no more room than one.
  for (int i = 0; i < 100; ++i) {
    REQUIRE(server->listen_on({i % 2 == 0 ? "127.0.0.1" : "0.0.0.0"}, std::uint16_t{0}).ok());
  }
  tick_round();
  CHECK(connect().ask("echo e\n") == "e\n");
}

TEST_CASE_METHOD(ServerFixture, "listening: without a port a Unix socket is left",
                 "[net][server][once-again-19]") {
  const TemporaryDirectory directory;
  options.unix_path = directory.path() + "/socket";
  start();
  const std::uint16_t port = server->port();
  REQUIRE(server->listen_on({"127.0.0.1"}, std::nullopt).ok());
  tick_round();
  CHECK(is_refused(port));
  CHECK(server->port() == 0);
  CHECK(Socket{options.unix_path}.ask("echo a\n") == "a\n");
  REQUIRE(server->listen_on({"127.0.0.1"}, std::uint16_t{0}).ok());
  CHECK(connect().ask("echo b\n") == "b\n");
  server->drain(Millis{0});
  CHECK_FALSE(server->listen_on({"127.0.0.1"}, std::uint16_t{0}).ok());
}

TEST_CASE_METHOD(ServerFixture, "listening: tcp-keepalive holds for connections that begin later",
                 "[net][server][once-again-19]") {
  start();
  {
    Socket first = connect();
    REQUIRE(first.ask("echo a\n") == "a\n");
    CHECK(keepalive_of_accepted(server->port()) == 300);
  }
  REQUIRE(sessions.wait_ended(1));
  tick_round();
  server->set_keepalive(Millis{7'000});
  {
    Socket second = connect();
    REQUIRE(second.ask("echo b\n") == "b\n");
    CHECK(keepalive_of_accepted(server->port()) == 7);
  }
  REQUIRE(sessions.wait_ended(2));
  tick_round();
  server->set_keepalive(Millis{0});
  Socket third = connect();
  REQUIRE(third.ask("echo c\n") == "c\n");
  CHECK(keepalive_of_accepted(server->port()) == 0);
}

}  // namespace
}  // namespace semel::tests
