// What a command took: counted, and written down if it was long.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "net/commands/command.hpp"

namespace semel::net {

/// `call` took `ns`, its words those of the slow log. Counts it and, by the node's limits, adds
/// it to the slow log and the latency events. Its reply has begun at `reply`.
void measured(const Call& call, std::int64_t ns, std::string_view reply);
/// A command of `client` that waited has ended, with this reply: counts its error, and adds it to
/// the slow log, where it counts from now. The time in which it waited is not its own.
void measured_wait(Services& services, ClientState& client, const QueuedCommand& waited,
                   std::string_view reply);
/// The same for `count` calls of one row with one operation each, counted together.
void measured_together(const Call& call, std::int64_t ns_each, std::uint64_t count,
                       std::string_view key);

/// The words of a request as others may read them: secrets replaced, like redis-server does it.
[[nodiscard]] std::vector<std::string_view> without_secrets(
    const CommandRow& row, std::span<const std::string_view> words);

}  // namespace semel::net
