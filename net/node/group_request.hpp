// A request at a connection of a node in a group, and the state of its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/commands/command.hpp"
#include "net/node/node.hpp"

namespace semel::net {

/// As the parser has it: views into the input of the present round.
struct PresentRequest {
  const CommandRow* row =
      nullptr;  ///< of the subcommand, if there is one; null: an unknown command
  std::span<const std::string_view> words;
  bool in_place = true;       ///< the words stay when the next request is parsed
  std::size_t end = 0;        ///< of the request in the round's input
  std::size_t input_end = 0;  ///< of the input that was there when the round began
};

enum class Taken : std::uint8_t {
  done,   ///< answered, or gathered: the reply comes in its turn
  again,  ///< it waits: give it once more when the wait has ended
  here,   ///< the connection runs it
};

/// Makes `client` wait for the reply of its handle and run nothing else. Returns the number of the
/// wait.
[[nodiscard]] inline std::uint64_t begin_work(ClientState& client) {
  client.waits = true;
  client.discards_wait_reply = false;
  return client.handle->begin_work();
}

/// A reply that was kept aside goes out, unless CLIENT REPLY wants none.
inline void hand_out(ClientState& client, std::string_view reply, std::string& out) {
  if (client.replies == Replies::on) out += reply;
  if (client.replies == Replies::skip) client.replies = Replies::on;
}

}  // namespace semel::net
