// A server of line sessions on a port that was free, with a clock that the test moves.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include "tests/support/catch.hpp"

#include "net/server/server.hpp"
#include "tests/net/server/line_session.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/semel_net_XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

struct ServerFixture {
  ServerFixture() {
    options.port = 0;
    options.clock = &clock;
    options.tick = Millis{0};
  }
  void start() {
    auto started = net::Server::start(options, sessions.hooks());
    INFO((started ? std::string{} : started.error().detail));
    REQUIRE(started.ok());
    server = *std::move(started);
  }
  /// Every connection's deadlines are looked at, and every socket that was ready is served.
  void tick_round() {
    for (std::size_t i = 0; i < net::deadline_buckets; ++i) server->tick();
  }
  [[nodiscard]] Socket connect() { return Socket{server->port()}; }
  [[nodiscard]] std::uint64_t ended_by(net::Ended why) { return server->stats().ended_by(why); }

  ManualClock clock;
  net::ServerOptions options;
  LineSessions sessions;
  std::unique_ptr<net::Server> server;
};

}  // namespace semel::tests
