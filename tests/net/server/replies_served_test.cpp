// A node behind sockets: what slow readers hold, over TCP, a Unix socket and TLS.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/server/node_session.hpp"
#include "semel/semel.hpp"
#include "tests/net/server/server_fixture.hpp"
#include "tests/net/server/tls_client.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// As ServerFixture, with a node behind it.
struct ServedNode {
  ServedNode() : engine(std::move(Engine::open({.clock = &clock}).value())), node(*engine) {
    node.client_memory->set_limit(48 * mib);
    authority.save(directory.path() + "/ca");
    served.save(directory.path() + "/server");
    net::ServerOptions options{.port = 0, .tls_port = 0, .tick = Millis{0}, .clock = &clock};
    options.unix_path = directory.path() + "/socket";
    options.tls = {.certificate = directory.path() + "/server.crt",
                   .key = directory.path() + "/server.key"};
    net::ServerHooks hooks;
    hooks.make_session = [this](const net::SessionInfo& info,
                                std::shared_ptr<net::SessionHost> host) {
      return std::make_unique<net::NodeSession>(node, batch, Durability::memory, info,
                                                std::move(host));
    };
    auto started = net::Server::start(std::move(options), std::move(hooks));
    REQUIRE(started.ok());
    server = *std::move(started);
  }
  [[nodiscard]] std::size_t held() const { return node.client_memory->bytes(); }
  /// True: `condition` holds, now or after some rounds of the server.
  template <class Condition>
  [[nodiscard]] bool soon(Condition&& condition) {
    constexpr int rounds_max = 100'000;
    for (int i = 0; i < rounds_max; ++i) {
      if (condition()) return true;
      server->tick();
    }
    return false;
  }

  TemporaryDirectory directory;
  Identity authority{"an authority"};
  Identity served{"a server", &authority};
  ManualClock clock;
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
  std::unique_ptr<net::Server> server;
};

std::string many(std::size_t count) {
  std::vector<std::string> words{"MGET"};
  words.insert(words.end(), count, "big");
  return request_bytes(words);
}

}  // namespace

TEST_CASE("served: 300 times the same value wait as one, and arrive as 300",
          "[net][server][memory][attack][fault-7]") {
  ServedNode nodes;
  const std::string value(mib, 'v');
  REQUIRE(nodes.engine->store().set("big", value)->stored);
  constexpr std::size_t count = 300;
  const std::string head = "*300\r\n";
  const std::string each = "$1048576\r\n" + value + "\r\n";
  const auto waits = [&] { return nodes.held() >= mib; };
  const auto is_right = [&](auto&& read) {
    bool right = read(head.size()) == head;
    for (std::size_t i = 0; i < count && right; ++i) right = read(each.size()) == each;
    return right;
  };
  SECTION("over TCP and a Unix socket") {
    for (const bool is_unix : {false, true}) {
      Socket client =
          is_unix ? Socket{nodes.directory.path() + "/socket"} : Socket{nodes.server->port()};
      client.send(many(count));
      REQUIRE(nodes.soon(waits));
      CHECK(nodes.held() < mib + mib / 4);
      CHECK(is_right([&](std::size_t bytes) { return client.read(bytes); }));
      CHECK(nodes.soon([&] { return nodes.held() == 0; }));
    }
  }
  SECTION("over TLS, encrypted piece by piece") {
    const Socket socket{nodes.server->tls_port()};
    TlsClient client{{}};
    REQUIRE(client.connect(socket));
    client.send(many(count));
    REQUIRE(nodes.soon(waits));
    CHECK(nodes.held() < mib + mib / 4);
    CHECK(is_right([&](std::size_t bytes) { return client.read(bytes); }));
    CHECK(nodes.soon([&] { return nodes.held() == 0; }));
  }
}

TEST_CASE("served: readers that do not read stay under the limit, and the others go on",
          "[net][server][memory][attack][fault-7]") {
  ServedNode nodes;
  REQUIRE(nodes.engine->store().set("big", std::string(mib, 'v'))->stored);
  std::string request;
  for (int i = 0; i < 4; ++i) request += request_bytes({"GETRANGE", "big", "0", "-2"});
  std::vector<Socket> readers;
  std::size_t most = 0;
  constexpr std::size_t count = 120;
  for (std::size_t i = 0; i < count; ++i) {
    readers.emplace_back(nodes.directory.path() + "/socket");
    readers.back().send(request);
    most = std::max(most, nodes.held());
  }
  CHECK(nodes.soon([&] {
    most = std::max(most, nodes.held());
    return nodes.server->stats().ended_by(net::Ended::killed) > 0;
  }));
  CHECK(most <= 50 * mib);
  CHECK(nodes.node.client_memory->evictions() > 0);
  Socket other{nodes.server->port()};
  CHECK(other.ask(request_bytes({"SET", "k", "v"})) == "+OK\r\n");
  readers.clear();
  CHECK(nodes.soon([&] { return nodes.held() == 0; }));
}

}  // namespace semel::tests
