// One call of a node until it is answered, or its time is over: by whichever node, as often as
// needed. All commands that are sent through it may be carried out more than once.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "gateway/store/node_link.hpp"

namespace semel::gateway {

struct NodeCall {
  bool is_answered = false;  ///< finally: with a value, or an error that stays
  bool may_be_done = false;  ///< unless answered: it was sent
  NodeReply reply{};
  std::string why{};       ///< unless answered
  base::Stopwatch sent{};  ///< of the try that was answered
};

/// Asks again until there is a final answer, for `within` in all, and once at least.
[[nodiscard]] asio::awaitable<NodeCall> call_node(asio::io_context& io,
                                                  const std::shared_ptr<NodeLink>& link,
                                                  Counters& counters, const NodeCommand& command,
                                                  Millis within);

}  // namespace semel::gateway
