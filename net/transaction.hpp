// MULTI, EXEC, DISCARD, WATCH and UNWATCH.
#pragma once

#include "net/command.hpp"

namespace semel::net {

/// Between MULTI and EXEC a command waits, but for those that are about the transaction itself.
[[nodiscard]] bool is_queued(const CommandRow& row) noexcept;
/// Puts the call behind those of the client's transaction. One reply is written.
void enqueue(Call& call);
/// The client's transaction, if there is one, and what it watches are no more.
void end_transaction(Node& node, ClientState& client);

}  // namespace semel::net
