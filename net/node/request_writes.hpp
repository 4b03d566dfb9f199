// Whether a request may change something: a pause of writes (CLIENT PAUSE) delays it then.
#pragma once

#include <span>
#include <string_view>

#include "net/commands/command.hpp"
#include "net/node/node.hpp"

namespace semel::net {

/// `row`: of the words, or of their subcommand. EXEC may write if a command of the transaction may.
[[nodiscard]] bool may_write(Node& node, const ClientState& client, const CommandRow& row,
                             std::span<const std::string_view> words);

}  // namespace semel::net
