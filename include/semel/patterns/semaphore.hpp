// At most N holders of one key at a time: connections to a service, seats of a licence, heavy jobs.
//
//   auto pools = engine->claims("pools", policies::lock).value();
//   Semaphore seat{pools, "reports", {.permits = 3}};
//   if (seat.try_acquire_for(Millis{5'000})) {
//     render(seat.slot(), seat.fencing_token(), ..);  // slot 0, 1 or 2
//   }                                                 // given back here
//
// A permit is a slot, and a slot is a claim of its own: its holder has a lease, a watchdog may keep
// it, and it is given back by its token alone. Tokens of one slot grow, so what a holder writes to
// keeps one Fence a slot: that refuses a holder that was paused for longer than its lease. The
// slots of a key are 0..permits - 1, and the lowest that is free is given, so a slot also
// names one of N things (a port, a GPU, a connection).
//
// Each caller states how many permits there are. More: they are there at once. Fewer: the holders
// keep theirs, and no other is given while there are as many holders as permits. That takes account
// of holders under a larger number for a day after the last attempt with that number.
// Source: docs/patterns.md#semaphore, docs/decisions/0092-permits-are-slots.md
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel {

namespace limits {
inline constexpr std::uint32_t permits_max = 1'024;  ///< of one semaphore
}  // namespace limits

/// The answer to an attempt at a permit: that of the slot which decided it.
struct PermitOutcome {
  /// granted, regranted: `slot` is the caller's, with this epoch. in_flight: all permits are held.
  /// Another answer: what stands in the way of all of them, or an error.
  ClaimOutcome claim;
  std::uint32_t slot = 0;  ///< in_flight: of a holder, the one whose lease ends first
  std::string key;         ///< of the slot's claim, for owner calls; empty with an error
  bool over = false;       ///< in_flight: more are held than there are permits now
};

/// One attempt at one of `permits` permits (1..limits::permits_max) of `request.key`. A claim id
/// that holds a permit already is regranted that one. Errors, in the outcome of the claim, which is
/// then busy: those of Claims::claim(), bad_option (permits), wrong_kind (a key of the semaphore
/// holds something else). Progress: as Claims::claim(), `permits` times at most.
[[nodiscard]] PermitOutcome claim_permit(Claims& claims, const ClaimRequest& request,
                                         std::uint32_t permits);
/// The same, but in_flight waits: it is the answer at the deadline. Progress: blocks until then.
[[nodiscard]] PermitOutcome claim_permit_or_wait(Claims& claims, const ClaimRequest& request,
                                                 std::uint32_t permits, Timestamp deadline);
/// The key of a slot's claim: "{key}#slot".
[[nodiscard]] std::string permit_key(Bytes key, std::uint32_t slot);

/// A permit that is held.
struct PermitView {
  std::uint32_t slot = 0;
  ClaimView claim;
};
/// All that are held, by slot; also beyond the number of permits of now. Not at one moment.
/// Errors: those of Claims::get().
[[nodiscard]] Result<std::vector<PermitView>> permits_held(Claims& claims, Bytes key);

struct SemaphoreOptions {
  std::uint32_t permits = 1;           ///< 1..limits::permits_max
  std::optional<Duration> lease{};     ///< none: the policy's
  Bytes owner{};                       ///< label for people, copied
  std::optional<SessionId> session{};  ///< none: the engine's own; the permit ends with it
  Watchdog* watchdog = nullptr;  ///< keeps the lease; must outlive the semaphore. A lease that
                                 ///< it cannot keep (Watchdog::can_keep) is refused
};

/// One permit at most, of whichever thread: to hold several, have several. Its calls are safe from
/// any thread; an attempt while it holds a permit, or while another thread asks, is refused
/// (object_in_use). Neither copied nor moved.
///
/// Errors of all attempts, in why_not(): timed_out (all permits are held); object_in_use;
/// bad_option (permits, lease, label); those of Lock.
class Semaphore {
 public:
  /// The key is copied.
  Semaphore(const Claims& claims, Bytes key, const SemaphoreOptions& options);
  /// Gives the permit back.
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// True: a permit is held now.
  [[nodiscard]] bool try_acquire();
  /// Waits at most this long, waiters have no order; Millis::max() is unlimited.
  [[nodiscard]] bool try_acquire_for(Duration wait);
  /// Waits for as long as it takes. Returns with a permit held, or throws std::system_error of
  /// error_category() with the code of why_not().
  void acquire();
  /// False: none was held any more (the lease was lost), or whether it was given back is unknown:
  /// then it ends with its lease at the latest.
  bool release() noexcept;

  /// Its lease runs. Asks the engine.
  [[nodiscard]] bool is_held() const;
  /// 0: none. Larger than that of every earlier holder of this slot.
  [[nodiscard]] Epoch fencing_token() const noexcept;
  /// Of the permit that is held; else 0.
  [[nodiscard]] std::uint32_t slot() const noexcept;
  /// The lease begins anew. False: it was lost.
  [[nodiscard]] bool renew();
  /// Why the last attempt has got no permit; ok: it has.
  [[nodiscard]] Error why_not() const;

 private:
  [[nodiscard]] bool attempt(Timestamp deadline);
  [[nodiscard]] bool take(PermitOutcome&& found);
  [[nodiscard]] bool refuse(ErrorCode code, std::string why);
  [[nodiscard]] ClaimRequest request() const noexcept;

  mutable Claims claims_;
  const std::string key_;
  const std::string owner_;
  const SemaphoreOptions options_;
  mutable std::mutex mutex_;  // guards the members below; not held while a permit is asked for
  std::unique_ptr<Lock> hold_;
  std::uint32_t slot_ = 0;
  Error error_;
  bool asking_ = false;
};

}  // namespace semel
