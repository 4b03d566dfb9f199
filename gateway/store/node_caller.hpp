// One call until a node answers it or its time ends: by any node, as often as needed. Every command
// sent through it must be safe to run more than once.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "gateway/store/node_link.hpp"

namespace semel::gateway {

struct NodeCall {
  bool is_answered = false;  ///< finally: with a value, or a permanent error
  bool may_be_done = false;  ///< unless answered: it was sent
  NodeReply reply{};
  std::string why{};       ///< unless answered
  base::Stopwatch sent{};  ///< of the try that was answered
};

/// Retries until there is a final answer, for `within` in all, and at least once.
[[nodiscard]] asio::awaitable<NodeCall> call_node(asio::io_context& io,
                                                  const std::shared_ptr<NodeLink>& link,
                                                  Counters& counters, const NodeCommand& command,
                                                  Millis within);

}  // namespace semel::gateway
