// SEMEL.WAIT in a group. The log decides the claim; while another owner has the key, the node that
// was asked waits for its own engine to show a change, and asks again.
//
//   ask() --> log --> answered() -- in_flight --> parked in the wait queue
//     ^                   |                          |
//     |                   '--- any other answer ---> the client's reply
//     '------------------- woken() ------------------'
//
// Of a key that becomes free all waiters ask, and one is granted. At the deadline the log is asked
// once more, whose answer is the client's. One that is granted when its client has gone is
// released, unless it was asked for with a CLAIM-ID.
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
    std::uint64_t wait;           ///< of the handle, which has begun
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
  WaitTicket ticket_ SEMEL_GUARDED_BY(mutex_) = 0;  // in the wait queue; 0: it is not there
  bool is_last_ SEMEL_GUARDED_BY(mutex_) = false;   // what is answered now is the client's
  bool is_abandoned_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::net
