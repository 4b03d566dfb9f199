// Claims of a replica that wait. The replicated log decides them; the wait queue of this replica
// knows when to ask again.
//
//   begin() -> asking --- in_flight ---> parked (in the wait queue, as a look at the record)
//                ^                          |
//                '---- may be free now -----'      any other answer: the callback runs
//
// Of a key that becomes free the first waiter of each replica asks, and the replicated log grants
// it to one: the others stay in line, or park again. Of a key that is finished all ask. Callbacks
// run on the CallLog's thread for callbacks, never on the one that applies entries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "base/mutex.hpp"
#include "engine/claims/claim_attempt.hpp"
#include "engine/claims/logged_claims.hpp"

namespace semel::engine {

/// What the wait queue tries for a logged wait, a look at the record: in_flight while it is held,
/// granted when one is to ask the log, replay when all are: it has an answer for each. Takes no
/// version and changes nothing, so there is nothing to give back.
class Looking final : public ClaimAttempt {
 public:
  using ClaimAttempt::ClaimAttempt;
  explicit Looking(const Looking& other) : ClaimAttempt(other, bytes_of(other)) {}

  [[nodiscard]] Verdict try_for(std::size_t key, Seen& seen) override;
  void give_back() override {}
  [[nodiscard]] std::unique_ptr<ClaimAttempt> keep() const override {
    return std::make_unique<Looking>(*this);
  }
};

struct WaitStart {
  const Claims::NamespaceRef& names;
  const ClaimRequest& request;
  Timestamp deadline;
};

/// Safe from any thread.
class LoggedWaits : public std::enable_shared_from_this<LoggedWaits> {
 public:
  LoggedWaits(Engine& engine, CallLog& log) noexcept : engine_(engine), log_(log) {}

  /// See Claims::claim_or_wait. Blocks.
  [[nodiscard]] ClaimOutcome wait(const Claims::NamespaceRef& names, const ClaimRequest& request,
                                  Timestamp deadline);
  /// The same; `done` is taken and called once. `ticket` is written before. False: `outcome` is the
  /// answer, and `done` is left where it is.
  [[nodiscard]] bool begin(const WaitStart& start, ClaimCallback& done, WaitTicket& ticket,
                           ClaimOutcome& outcome);
  [[nodiscard]] static bool is_mine(WaitTicket ticket) noexcept { return (ticket & mark) != 0; }
  /// See Claims::cancel_wait.
  bool cancel(WaitTicket ticket) noexcept;
  /// Asks for one of those for which there was no memory. To be called now and then.
  void retry() noexcept;
  /// Ends all waits that have a callback: error closing. None begins after it.
  void close() noexcept;

 private:
  static constexpr WaitTicket mark = WaitTicket{1} << 63;
  struct Wait;
  using SharedWait = std::shared_ptr<Wait>;

  void ask(const SharedWait& wait) noexcept;
  void answered(const SharedWait& wait, ClaimOutcome&& outcome);
  void park(const SharedWait& wait);
  void woken(const SharedWait& wait, ClaimOutcome&& seen) noexcept;
  void finish(const SharedWait& wait, ClaimOutcome&& outcome);
  void give_back(const SharedWait& wait, Epoch epoch);

  Engine& engine_;
  CallLog& log_;
  base::Mutex mutex_;
  base::Condition callback_ended_;
  std::map<WaitTicket, SharedWait> waits_ SEMEL_GUARDED_BY(mutex_);
  WaitTicket next_ SEMEL_GUARDED_BY(mutex_) = 1;
  bool is_closed_ SEMEL_GUARDED_BY(mutex_) = false;
  bool has_unasked_ SEMEL_GUARDED_BY(mutex_) = false;
};

}  // namespace semel::engine
