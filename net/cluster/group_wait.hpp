// A blocking command in a group. The replicated log answers it. While the answer is "not yet", the
// node that received the command waits until its own engine shows a change, and asks again.
//   ask() --> log --> answered() --- pending ---> parked in the wait queue
//     ^                   |                          |
//     |                   '--- any other answer ---> the client's reply
//     '------------------- woken() ------------------'
//
// At the deadline the wait asks once more, and the client gets that answer. If the client
// has gone, the command's undo request gives back its gain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "net/cluster/blocking_command.hpp"
#include "net/cluster/group.hpp"
#include "net/session/client_handle.hpp"
#include "semel/claims.hpp"

namespace semel::net {

class GroupWait : public std::enable_shared_from_this<GroupWait> {
 public:
  struct Start {
    Group& group;
    std::shared_ptr<ClientHandle> handle;
    std::uint64_t wait;           ///< of the handle, begun
    const GroupRequest& request;  ///< one blocking command
    std::uint16_t slot;
    std::unique_ptr<BlockingCommand> command;  ///< the same
    MemoryUse use = MemoryUse::grows;
  };
  static void begin(Start start);
  explicit GroupWait(Start&& start);

 private:
  void ask() noexcept;
  void answered(GroupReply reply);
  void park(std::string reply);
  void woken(const ClaimOutcome& outcome) noexcept;
  void finish(std::string reply, std::vector<std::string> undo);
  void fail(ErrorCode why) noexcept;
  void give_back(const std::vector<std::string>& undo) noexcept;
  void abandon() noexcept;

  Group& group_;
  const std::shared_ptr<ClientHandle> handle_;
  const std::uint64_t wait_;
  std::vector<std::string> words_;  // changed between an answer and the wait behind it
  const std::uint8_t db_;
  const std::uint8_t dialect_;
  const SessionId session_;
  const std::uint16_t slot_;
  const std::unique_ptr<BlockingCommand> command_;
  const MemoryUse use_;
  const Timestamp deadline_;  // of the group's time
  base::Mutex mutex_;
  WaitTicket ticket_ SEMEL_GUARDED_BY(mutex_) = 0;   // in the wait queue; 0: none
  WaitTicket arrival_ SEMEL_GUARDED_BY(mutex_) = 0;  // of its first wait there
  bool is_last_ SEMEL_GUARDED_BY(mutex_) = false;    // the next answer goes to the client
  bool is_abandoned_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::net
