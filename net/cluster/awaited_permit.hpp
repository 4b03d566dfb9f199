// SEMEL.PERMIT .. WAIT in a group.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/cluster/blocking_command.hpp"

namespace semel::net {

/// A claim's reply in a group: whether the wait goes on, and what gives the claim back. `key`:
/// that of the reply, if it names one.
[[nodiscard]] ReplyMeaning meaning_of_claim(std::string_view bytes, const std::string& name,
                                            const std::string& key, bool is_named);

/// Null: it does not wait, or its words are wrong, as the log will answer.
[[nodiscard]] std::unique_ptr<BlockingCommand> read_permit_wait(
    std::span<const std::string_view> words);

}  // namespace semel::net
