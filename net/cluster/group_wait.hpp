// SEMEL.WAIT in a group. The replicated log decides the claim. While another owner has the key, the
// node that received the command waits until its own engine shows a change, and claims again.
//   ask() --> log --> answered() -- in_flight --> parked in the wait queue
//     ^                   |                          |
//     |                   '--- any other answer ---> the client's reply
//     '------------------- woken() ------------------'
//
// When a key becomes free, all waiters claim, and one is granted. At the deadline the wait claims
// once more, and the client gets that answer. A grant whose client has gone is released, unless it
// has a CLAIM-ID.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "net/cluster/group.hpp"
#include "net/session/client_handle.hpp"
#include "semel/claims.hpp"
#include "semel/local_redis.hpp"

namespace semel::net {

class GroupWait : public std::enable_shared_from_this<GroupWait> {
 public:
  struct Start {
    Group& group;
    std::shared_ptr<ClientHandle> handle;
    std::uint64_t wait;           ///< of the handle, begun
    const GroupRequest& request;  ///< one SEMEL.WAIT
    std::uint16_t slot;
    Timestamp deadline;  ///< of the group's time
    bool is_named;       ///< by a CLAIM-ID
  };
  static void begin(const Start& start);
  explicit GroupWait(const Start& start);

 private:
  void ask() noexcept;
  void answered(GroupReply reply);
  void park(std::string reply);
  void woken(const ClaimOutcome& outcome) noexcept;
  void finish(std::string bytes, const Reply& reply);
  void fail(ErrorCode why) noexcept;
  void release(const std::string& epoch) noexcept;
  void abandon() noexcept;

  Group& group_;
  const std::shared_ptr<ClientHandle> handle_;
  const std::uint64_t wait_;
  const std::vector<std::string> words_;
  const std::uint8_t db_;
  const std::uint8_t dialect_;
  const SessionId session_;
  const std::uint16_t slot_;
  const Timestamp deadline_;
  const bool is_named_;
  base::Mutex mutex_;
  WaitTicket ticket_ SEMEL_GUARDED_BY(mutex_) = 0;  // in the wait queue; 0: none
  bool is_last_ SEMEL_GUARDED_BY(mutex_) = false;   // the next answer goes to the client
  bool is_abandoned_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::net
