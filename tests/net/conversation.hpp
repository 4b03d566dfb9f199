// Connections to a node in process, on clocks that tests move.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/node/connection.hpp"
#include "semel/journal.hpp"
#include "semel/semel.hpp"
#include "tests/support/resp.hpp"

namespace semel::tests {

/// Each command takes as long as the test says.
class StepTicks final : public net::TickSource {
 public:
  [[nodiscard]] std::int64_t ns() const noexcept override {
    return now_.fetch_add(step_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  std::atomic<std::int64_t> step_ns{1'000};

 private:
  mutable std::atomic<std::int64_t> now_{0};
};

struct Conversation {
  /// `journal` must live as long as this; null: none.
  explicit Conversation(std::size_t count = 1, Journal* journal = nullptr)
      : engine(std::move(Engine::open({.clock = &clock, .journal = journal}).value())),
        node(*engine) {
    node.set_ticks(ticks);
    for (std::size_t i = 0; i < count; ++i) connect("127.0.0.1:" + std::to_string(5'000 + i));
  }
  net::Connection& connect(const std::string& address) {
    connections.push_back(std::make_unique<net::Connection>(
        node, batch, nullptr,
        net::ClientHandle::Origin{.id = node.next_client_id(),
                                  .address = address,
                                  .local_address = "127.0.0.1:6379",
                                  .connected_ms = clock.now().time_since_epoch().count()}));
    return *connections.back();
  }
  std::string call(const Words& words, std::size_t client = 0) {
    std::string reply;
    connections[client]->receive(request_bytes(words), reply);
    return reply;
  }
  std::string collect(std::size_t client = 0) {
    std::string reply;
    connections[client]->collect(reply);
    return reply;
  }
  void pass(Millis time) {
    clock.advance(time);
    node.tick();
  }

  ManualClock clock;
  StepTicks ticks;
  std::unique_ptr<Engine> engine;
  net::Node node;
  net::Batch batch;
  std::vector<std::unique_ptr<net::Connection>> connections;
};

}  // namespace semel::tests
