// MULTI, EXEC, DISCARD, WATCH and UNWATCH.
#pragma once

#include "net/commands/command.hpp"

namespace semel::net {

/// Limit of the queued commands. In Redis only the limit of a client's query buffer, 1 GiB,
/// applies.
inline constexpr std::size_t transaction_bytes_max = std::size_t{64} << 20;
/// Of the server that is followed: all that one of its scripts has done comes as a transaction.
inline constexpr std::size_t transaction_of_master_bytes_max = std::size_t{1} << 30;

/// Between MULTI and EXEC a command is queued, except those about the transaction itself.
[[nodiscard]] inline bool is_queued(const CommandRow& row) noexcept {
  return !row.has(fact_at_once);
}
/// Puts the call behind those of the client's transaction. One reply is written.
void enqueue(Call& call);
/// Ends the client's transaction, if there is one, and its watches.
void end_transaction(Services& services, ClientState& client);

}  // namespace semel::net
