// What the tests share that lead random dialogues with a redis-server and with us.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "semel/semel.hpp"
#include "tests/net/node_client.hpp"
#include "tests/support/redis_server.hpp"

namespace semel::tests {

/// A node of ours with an engine of its own.
struct LocalNode {
  explicit LocalNode(const Clock* clock = nullptr)
      : engine(std::move(Engine::open({.clock = clock})).value()), node(*engine) {}
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
};

/// As many clients of a redis-server as of a local node.
struct ClientPairs {
  ClientPairs(const RedisServer& server, std::size_t count) : path(server.socket_path()) {
    ours.resize(count);
    theirs.resize(count);
    for (std::size_t i = 0; i < count; ++i) renew(i, i + 1);
  }
  /// One goes on both sides, and another comes.
  void renew(std::size_t who, std::uint64_t id) {
    ours[who] = std::make_unique<NodeClient>(local.node, local.batch, id);
    theirs[who] = std::make_unique<RedisClient>(path);
  }

  const std::string path;
  LocalNode local;
  std::vector<std::unique_ptr<NodeClient>> ours;
  std::vector<std::unique_ptr<RedisClient>> theirs;
};

inline std::string shown(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += "'" + word + "' ";
  return line;
}

/// How long a dialogue is to be; `tools/prove differential --long` asks for more than `usual`.
inline int steps_wanted(int usual) {
  const char* const wanted = std::getenv("SEMEL_DIALOGUE_COMMANDS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

}  // namespace semel::tests
