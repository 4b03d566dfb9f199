// A blocking command in a group, its arguments read: what GroupWait has to know of it. A new one is
// a class of its own and a row in read_blocking.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/cluster/group.hpp"
#include "net/commands/command.hpp"
#include "net/resp/resp_writer.hpp"
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

  /// The database of its keys, before it waits.
  virtual void set_db(std::uint8_t) noexcept {}
  /// When its wait is over, if it begins `now`; no_end: never.
  [[nodiscard]] virtual Timestamp deadline(Timestamp now) const noexcept = 0;
  [[nodiscard]] virtual ReplyMeaning meaning_of(std::string_view reply) const = 0;
  /// Called before each wait: replaces words of the request whose meaning changes with time.
  virtual void fix_words(Group&, std::vector<std::string>&) {}
  /// The reply of a wait that has ended without an answer. Empty: that of the log, or, of CLIENT
  /// UNBLOCK, null.
  [[nodiscard]] virtual std::string timeout_reply(Resp) const { return {}; }
  struct Parking {
    Timestamp deadline = no_end;
    WaitTicket arrival = 0;  ///< the ticket of its first wait; 0: this is the first
    ClaimCallback done{};    ///< only the error of the outcome counts
  };
  /// Group::wait_for_change() of what it waits for, or wait_for_object().
  [[nodiscard]] virtual bool wait_for_change(Group& group, Parking parking, WaitTicket& ticket,
                                             ClaimOutcome& outcome) const = 0;
};

}  // namespace semel::net
