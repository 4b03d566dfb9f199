// From the words of a request to the blocking command that they are.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "net/cluster/blocking_command.hpp"

namespace semel::net {

/// Null: the command does not wait, or its words are wrong, as the log will answer.
[[nodiscard]] std::unique_ptr<BlockingCommand> read_blocking(
    const CommandRow& row, std::span<const std::string_view> words);

}  // namespace semel::net
