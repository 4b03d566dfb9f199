// What all connections of one node share.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/watches.hpp"
#include "semel/engine.hpp"

namespace semel::net {

class Node {
 public:
  /// `engine` must live as long as this.
  explicit Node(Engine& engine) : watches(engine), engine_(engine) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] std::uint64_t next_client_id() noexcept {
    return client_ids_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a number
  }

  Watches watches;

 private:
  Engine& engine_;
  std::atomic<std::uint64_t> client_ids_{1};
};

}  // namespace semel::net
