// A command that keeps its client waiting. The connection runs nothing else until its handle has
// the reply: from the thread that ends the wait, from CLIENT UNBLOCK, or from the node.
//
//   begin_blocking()         -> the number of the wait
//   handle->reply(wait, ..)  the answer, from any thread
//   handle->if_abandoned()   what withdraws the wait when it ends otherwise: the connection closes
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "net/session/client_state.hpp"

namespace semel::net {

/// The client waits for the reply of its handle. Returns the number of the wait. The words are
/// kept: the answer is for a client that may still run the command when it comes. `timeout_reply`:
/// of CLIENT UNBLOCK.
[[nodiscard]] inline std::uint64_t begin_blocking(ClientState& client, const CommandRow* row,
                                                  std::span<const std::string_view> words,
                                                  std::string timeout_reply = "$-1\r\n") {
  client.waits_for =
      std::make_unique<QueuedCommand>(QueuedCommand{row, {words.begin(), words.end()}});
  client.waits_since = 0;  // rights may have changed since they were checked
  client.waits = true;
  client.discards_wait_reply = false;
  return client.handle->begin_wait(std::move(timeout_reply));
}

}  // namespace semel::net
