// What all connections of one node share.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/claim_spaces.hpp"
#include "net/test_clock.hpp"
#include "net/watches.hpp"
#include "semel/engine.hpp"

namespace semel::net {

class Node {
 public:
  /// `engine` must live as long as this. `clock`: the engine's own, if clients may move it.
  explicit Node(Engine& engine, TestClock* clock = nullptr)
      : watches(engine), claims(engine), test_clock(clock), engine_(engine) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] std::uint64_t next_client_id() noexcept {
    return client_ids_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a number
  }

  Watches watches;
  ClaimSpaces claims;
  TestClock* const test_clock;  ///< null: time is not the clients'

 private:
  Engine& engine_;
  std::atomic<std::uint64_t> client_ids_{1};
};

}  // namespace semel::net
