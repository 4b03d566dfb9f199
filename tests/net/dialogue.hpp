// A node of ours in process, for tests with several clients.
#pragma once

#include <memory>
#include <utility>

#include "semel/semel.hpp"
#include "tests/net/node_client.hpp"

namespace semel::tests {

/// With an engine of its own.
struct LocalNode {
  explicit LocalNode(const Options& options = {})
      : engine(std::move(Engine::open(options)).value()), node(*engine) {}
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
};

}  // namespace semel::tests
