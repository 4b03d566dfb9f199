// The wait of a connection for a time.
#pragma once

#include <cstdint>
#include <string>

#include "net/commands/command.hpp"

namespace semel::net {

/// The connection waits until `ms` have passed (0: for ever) or it is unblocked; `reply` then. No
/// thread waits: others, and the end of the node, are not held up. Not for a part of a transaction.
void wait_for_time(Call& call, std::int64_t ms, const std::string& reply);

}  // namespace semel::net
