// A blocking command in a group, its arguments read: what GroupWait has to know of it. A new one is
// a class here and a row in blocking_command.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/cluster/group.hpp"
#include "net/commands/command.hpp"
#include "semel/types.hpp"

namespace semel::net {

/// What a reply of the log means for the wait.
struct ReplyMeaning {
  bool is_pending = false;  ///< not yet: the client goes on waiting
  /// The request that gives back what the client got, for one that has gone. Empty: nothing.
  std::vector<std::string> undo{};
};

class BlockingCommand {
 public:
  BlockingCommand() = default;
  virtual ~BlockingCommand() = default;
  BlockingCommand(const BlockingCommand&) = delete;
  BlockingCommand& operator=(const BlockingCommand&) = delete;

  /// When its wait is over, if it begins `now`; no_end: never.
  [[nodiscard]] virtual Timestamp deadline(Timestamp now) const noexcept = 0;
  [[nodiscard]] virtual ReplyMeaning meaning_of(std::string_view reply) const = 0;
  /// Group::wait_for_change() of what it waits for.
  [[nodiscard]] virtual bool wait_for_change(Group& group, Timestamp deadline, ClaimCallback done,
                                             WaitTicket& ticket, ClaimOutcome& outcome) const = 0;
};

/// Null: the command does not wait, or its words are wrong, as the log will answer.
[[nodiscard]] std::unique_ptr<BlockingCommand> read_blocking(
    const CommandRow& row, std::span<const std::string_view> words);

}  // namespace semel::net
