// The server with real sockets and sessions that speak lines.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/server/descriptor.hpp"
#include "net/server/io_thread.hpp"
#include "net/server/listener.hpp"
#include "tests/net/server/server_fixture.hpp"

namespace semel::tests {
namespace {

TEST_CASE("server: a descriptor that the system does not watch is an error", "[net][server]") {
  const net::ServerOptions options;
  const net::ServerHooks hooks;
  const ManualClock clock;
  net::IoThread thread{{.options = options, .hooks = hooks, .clock = clock, .drained = {}}, 0};
  REQUIRE(thread.open().ok());
  const net::Descriptor file{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};  // always ready
  const auto watched = thread.watched().watch(file.get(), [] {});
  REQUIRE_FALSE(watched.ok());
  CHECK(watched.error().code == ErrorCode::no_thread);
  CHECK(watched.error().detail.find("cannot be watched: Operation not permitted") !=
        std::string::npos);
}

TEST_CASE_METHOD(ServerFixture, "a pipeline is answered the same wherever the bytes are split",
                 "[net][server]") {
  start();
  const std::string requests = "echo a\necho bb\n12345\nquit\n";
  std::uint64_t id = 0;
  for (std::size_t split = 0; split <= requests.size(); ++split) {
    Socket client = connect();
    ++id;
    client.send(requests.substr(0, split));
    REQUIRE((split == 0 || sessions.wait_received(id, split)));
    // The last request may have closed the connection: then there is nothing left to send.
    if (split < requests.size()) client.send(requests.substr(split));
    CHECK(client.read_to_end() == "a\nbb\n5\nbye\n");
  }
  tick_round();
  CHECK(ended_by(net::Ended::after_reply) == id);
  CHECK(server->stats().clients == 0);
  CHECK(server->stats().accepted == id);
}

TEST_CASE_METHOD(ServerFixture, "TCP and a Unix socket lead to the same sessions",
                 "[net][server]") {
  const TemporaryDirectory directory;
  options.unix_path = directory.path() + "/socket";
  options.unix_mode = 0700;
  start();
  Socket near{options.unix_path};
  CHECK(near.ask("echo near\n") == "near\n");
  Socket far = connect();
  CHECK(far.ask("echo far\n") == "far\n");
  CHECK(sessions.look(1).info.transport == net::Transport::unix_socket);
  CHECK(sessions.look(1).info.remote == options.unix_path + ":0");
  CHECK(sessions.look(2).info.transport == net::Transport::tcp);
  CHECK(sessions.look(2).info.local == "127.0.0.1:" + std::to_string(server->port()));
  struct stat found {};
  REQUIRE(stat(options.unix_path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777U) == 0700U);
  CHECK(server->ready_text().find("port=" + std::to_string(server->port()) + "\n") == 0);
  server.reset();
  CHECK_FALSE(std::filesystem::exists(options.unix_path));
}

TEST_CASE_METHOD(ServerFixture, "a Unix socket without a listener is replaced, others are not",
                 "[net][server]") {
  const TemporaryDirectory directory;
  options.port.reset();
  options.unix_path = directory.path() + "/socket";
  const auto refused = [&] {
    const auto started = net::Server::start(options, sessions.hooks());
    return started ? std::string{} : started.error().detail;
  };
  start();
  CHECK(refused() == "Unix socket '" + options.unix_path + "': another process listens there");
  server.reset();
  {  // as a process leaves it that was killed
    const net::Descriptor left{::socket(AF_UNIX, SOCK_STREAM, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options.unix_path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(left.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  start();
  CHECK(Socket{options.unix_path}.ask("echo x\n") == "x\n");
  server.reset();
  std::ofstream{options.unix_path} << "mine";
  CHECK(refused() == "Unix socket '" + options.unix_path + "': there is another file");
  options.unix_path.assign(108, 'a');
  CHECK(refused() == "Unix socket '" + options.unix_path + "' has 108 bytes; the limit is 107");
}

TEST_CASE("server: listeners that are not used leave no Unix socket behind", "[net][server]") {
  const TemporaryDirectory directory;
  net::ServerOptions options;
  options.unix_path = directory.path() + "/socket";
  {
    const auto opened = net::open_listeners(options);
    REQUIRE(opened);
    CHECK(std::filesystem::exists(options.unix_path));
  }
  CHECK_FALSE(std::filesystem::exists(options.unix_path));
}

TEST_CASE_METHOD(ServerFixture, "a port that is taken is refused by address and number",
                 "[net][server]") {
  start();
  net::ServerOptions second = options;
  second.port = server->port();
  CHECK(net::Server::start(second, sessions.hooks()).error().detail ==
        "bind 127.0.0.1 port " + std::to_string(server->port()) + ": Address already in use");
}

TEST_CASE_METHOD(ServerFixture, "a client that has closed its side still gets the replies",
                 "[net][server]") {
  start();
  Socket client = connect();
  client.send("echo one\necho two\n");
  client.end_sending();
  CHECK(client.read_to_end() == "one\ntwo\n");
}

TEST_CASE_METHOD(ServerFixture, "another thread's wakeup ends the waiting of a session",
                 "[net][server][race]") {
  options.threads = 2;
  start();
  constexpr std::uint64_t clients = 4;
  constexpr int rounds = 200;
  std::vector<Socket> all;
  for (std::uint64_t i = 0; i < clients; ++i) {
    all.push_back(connect());
    REQUIRE(all.back().ask("echo here\n") == "here\n");
  }
  std::vector<std::thread> ringing;
  for (std::uint64_t id = 1; id <= clients; ++id) {
    ringing.emplace_back([this, id] {
      for (int i = 0; i < rounds; ++i) sessions.push(id, "r\n");
    });
  }
  for (std::thread& thread : ringing) thread.join();
  for (Socket& client : all) CHECK(client.read(2 * rounds).size() == 2 * rounds);
  // Requests behind the one that waits are carried out when it is done, in their order.
  all[0].send("echo before\nwait\necho after\n");
  REQUIRE(sessions.wait_for(1, [&](const SessionState& seen) { return seen.waits; }));
  CHECK(all[0].line() == "before\n");
  all[0].send("echo later\n");
  tick_round();
  sessions.push(1, "now\n");
  CHECK(all[0].line() == "now\n");
  CHECK(all[0].line() == "after\n");
  CHECK(all[0].line() == "later\n");
}

TEST_CASE_METHOD(ServerFixture, "a client that hangs up while its request waits is noticed",
                 "[net][server]") {
  start();
  Socket client = connect();
  client.send("wait\n");
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.waits; }));
  client.close();
  CHECK(sessions.wait_ended(1));
  tick_round();
  CHECK(ended_by(net::Ended::by_client) == 1);
  sessions.push(1, "nobody\n");  // a wakeup without a connection
  Socket other = connect();
  CHECK(other.ask("echo next\n") == "next\n");
}

TEST_CASE_METHOD(ServerFixture, "a client that ends its side while its request waits is noticed",
                 "[net][server]") {
  start();
  Socket client = connect();
  client.send("wait\n");
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.waits; }));
  client.end_sending();
  CHECK(sessions.wait_ended(1));
  tick_round();
  CHECK(ended_by(net::Ended::by_client) == 1);
}

TEST_CASE_METHOD(ServerFixture, "input behind a request that waits does not keep its thread busy",
                 "[net][server]") {
  start();
  Socket client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send("wait\n");
    REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.waits; }));
    client.send("echo later\n");
    tick_round();  // it was reported once
    const std::uint64_t before = server->stats().rounds;
    tick_round();
    CHECK(server->stats().rounds == before);
    sessions.push(1, "now\n");
    CHECK(client.line() == "now\n");
    CHECK(client.line() == "later\n");
  }
}

TEST_CASE_METHOD(ServerFixture, "a slow reader is not read from while much is pending",
                 "[net][server]") {
  options.limits.output_pause_bytes = std::size_t{1} << 20;
  start();
  constexpr std::size_t bytes = std::size_t{32} << 20;  // more than the sockets' buffers hold
  Socket client = connect();
  client.send("big " + std::to_string(bytes) + "\n");
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.requests == 1; }));
  client.send("echo later\n");
  tick_round();
  CHECK(sessions.look(1).requests == 1);
  CHECK(client.read(bytes + 1) == std::string(bytes, 'x') + "\n");
  CHECK(client.line() == "later\n");
}

TEST_CASE_METHOD(ServerFixture, "a batch that a session has cut goes on when its replies are sent",
                 "[net][server]") {
  sessions.batch_bytes = std::size_t{1} << 20;
  start();
  constexpr int count = 100;
  constexpr std::size_t bytes = std::size_t{1} << 20;
  std::string requests;
  for (int i = 0; i < count; ++i) requests += "big " + std::to_string(bytes) + "\n";
  Socket client = connect();
  client.send(requests);
  REQUIRE(sessions.wait_for(1, [](const SessionState& seen) { return seen.requests >= 2; }));
  tick_round();
  CHECK(sessions.look(1).requests < count / 2);
  const std::string one = std::string(bytes, 'x') + "\n";
  for (int i = 0; i < count; ++i) REQUIRE(client.read(one.size()) == one);
  CHECK(client.ask("echo end\n") == "end\n");
}

TEST_CASE_METHOD(ServerFixture, "a client that has closed its side gets all of a cut batch",
                 "[net][server]") {
  constexpr std::size_t bytes = std::size_t{64} << 10;
  sessions.batch_bytes = bytes;
  start();
  constexpr int count = 50;
  std::string requests;
  for (int i = 0; i < count; ++i) requests += "big " + std::to_string(bytes) + "\n";
  Socket client = connect();
  client.send(requests);
  client.end_sending();
  CHECK(client.read_to_end().size() == count * (bytes + 1));
}

TEST_CASE_METHOD(ServerFixture, "one connection has 64 KiB of a round, more where it lacks more",
                 "[net][server]") {
  const TemporaryDirectory directory;
  options.unix_path = directory.path() + "/socket";  // holds what is sent, all of it at once
  start();
  constexpr std::size_t usual = std::size_t{64} << 10;
  constexpr std::size_t bytes = std::size_t{150} << 10;
  const auto largest_after = [&](std::uint64_t id, const std::string& first) {
    Socket client{options.unix_path};
    client.send(first);
    REQUIRE(sessions.wait_received(id, 1));
    std::promise<void> sent;
    server->post(0, [done = sent.get_future().share()] { done.wait(); });
    client.send(std::string(bytes, 'x'));
    sent.set_value();
    REQUIRE(sessions.wait_received(id, 1 + bytes));
    return sessions.look(id).largest;
  };
  CHECK(largest_after(1, "x") == usual);
  CHECK(largest_after(2, "#") == bytes);
}

TEST_CASE_METHOD(ServerFixture, "connections are dealt out evenly, and hooks run on every thread",
                 "[net][server]") {
  options.threads = 3;
  std::atomic<unsigned> ticked{0};
  net::ServerHooks hooks = sessions.hooks();
  hooks.on_tick = [&](std::size_t thread) {
    ticked.fetch_or(1U << thread, std::memory_order_relaxed);  // mo: relaxed: tick() waits for it
  };
  auto started = net::Server::start(options, std::move(hooks));
  REQUIRE(started.ok());
  server = *std::move(started);
  std::vector<Socket> clients;
  std::vector<int> counts(3);
  for (std::uint64_t id = 1; id <= 9; ++id) {
    clients.push_back(connect());
    REQUIRE(clients.back().ask("echo x\n") == "x\n");
    ++counts[sessions.look(id).info.thread];
  }
  CHECK(counts == std::vector<int>{3, 3, 3});
  // The thread with the fewest gets the next ones.
  for (const std::size_t id : {2U, 5U}) {
    REQUIRE(sessions.look(id).info.thread == sessions.look(2).info.thread);
    clients[id - 1].close();
    REQUIRE(sessions.wait_ended(id));
  }
  server->tick();
  for (std::uint64_t id = 10; id <= 11; ++id) {
    clients.push_back(connect());
    REQUIRE(clients.back().ask("echo x\n") == "x\n");
    CHECK(sessions.look(id).info.thread == sessions.look(2).info.thread);
  }
  server->tick();
  CHECK(ticked.load(std::memory_order_relaxed) == 7);  // mo: relaxed: as above
  std::vector<std::size_t> ran;
  server->run_on_each([&](std::size_t thread) { ran.push_back(thread); });
  CHECK(ran == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE_METHOD(ServerFixture,
                 "draining closes who is idle, lets the others finish, cuts the rest",
                 "[net][server][race]") {
  options.threads = 2;
  start();
  Socket idle = connect();
  REQUIRE(idle.ask("echo x\n") == "x\n");
  Socket busy = connect();
  busy.send("wait\n");
  REQUIRE(sessions.wait_for(2, [](const SessionState& seen) { return seen.waits; }));
  Socket stuck = connect();
  stuck.send("wait\n");
  REQUIRE(sessions.wait_for(3, [](const SessionState& seen) { return seen.waits; }));
  std::size_t cut = 0;
  std::thread draining{[&] { cut = server->drain(Millis{1000}); }};
  CHECK(idle.read_to_end().empty());
  sessions.push(2, "done\n");
  CHECK(busy.read_to_end() == "done\n");
  clock.advance(Millis{1000});
  server->tick();
  CHECK(stuck.read_to_end().empty());
  draining.join();
  CHECK(cut == 1);
  CHECK(ended_by(net::Ended::drained) == 2);
  const net::Descriptor late{::socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(late.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0);
}

}  // namespace
}  // namespace semel::tests
