// Which keyspace events (net/events/keyspace_events.hpp) a command causes: those of one operation
// on one key follow from its verb. The members of Call that notify are here as well.
#pragma once

#include <string_view>

#include "net/commands/command.hpp"

namespace semel::net {

// Publish the events of an operation, by its verb; `outcome` has no error. A miss is published
// before the reply, a change before or after it: a client that subscribes to events of its own
// commands sees the order of redis-server.
void notify_miss(Call& call, const StoreOp& op, const StoreOutcome& outcome);
void notify_change(Call& call, const StoreOp& op, const StoreOutcome& outcome);
[[nodiscard]] bool is_notified_after_reply(const Call& call, const StoreOp& op) noexcept;
/// Publishes the expire time that a string command has set, if it has.
void notify_expiry(Call& call, const Expiry& expiry, std::string_view key);

}  // namespace semel::net
