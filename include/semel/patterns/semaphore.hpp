// At most N holders of one key at a time: connections to a service, seats of a licence, heavy jobs.
//
//   auto pools = engine->claims("pools", policies::lock).value();
//   Semaphore seat{pools, "reports", {.permits = 3}};
//   if (seat.try_acquire_for(Millis{5'000})) {
//     render(seat.slot(), seat.fencing_token(), ..);  // slot 0, 1 or 2
//   }                                                 // given back here
//
// A permit is a slot, and each slot is a claim of its own: its holder has a lease, a watchdog may
// renew it, and only its token gives it back. Tokens of a slot grow, so a system that holders write
// to needs one Fence for each slot to refuse a holder that was paused for longer than its lease.
// The slots of a key are 0..permits - 1. The lowest free slot is given, so a slot also names one of
// N things (a port, a GPU, a connection).
//
// Each caller states the number of permits. A larger number takes effect at once. After a smaller
// one the holders keep their permits, and none is granted while there are as many holders as
// permits. Holders under a larger number are counted for a day at least after the last attempt with
// it, and for as long after each later attempt that finds one of them.
// Source: docs/patterns.md#semaphore, docs/decisions/0092-permits-are-slots.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/function.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel {

namespace limits {
inline constexpr std::uint32_t permits_max = 1'024;  ///< of one semaphore
}  // namespace limits

/// The answer to an attempt at a permit, from the slot that decided it.
struct PermitOutcome {
  /// granted, regranted: `slot` is the caller's, with this epoch. in_flight: all permits are held.
  /// Any other answer: the obstacle to all slots, or an error.
  ClaimOutcome claim;
  std::uint32_t slot = 0;  ///< in_flight: the slot of the holder whose lease ends first
  std::string key;         ///< the key of the slot's claim, for owner calls; empty with an error
  bool over = false;       ///< in_flight: there are more holders than permits now
};

/// One attempt at one of `permits` permits (1..limits::permits_max) of `request.key`. A claim id
/// that holds a permit already gets the same one again, as regranted. Errors, in the outcome of the
/// claim, with the answer busy: those of Claims::claim(), bad_option (permits), wrong_kind (a key
/// of the semaphore holds another kind). Progress: as Claims::claim(), `permits` times at most.
[[nodiscard]] PermitOutcome claim_permit(Claims& claims, const ClaimRequest& request,
                                         std::uint32_t permits);
/// The same, but waits while all permits are held, and answers in_flight at the deadline. Waiters
/// are served in order of arrival by an engine of its own; in a group they have no order. A waiter
/// takes memory for each permit, some 400 bytes. Errors besides: waiters_full
/// (limits::waiters_per_key_max wait).
/// Progress: blocks until then.
[[nodiscard]] PermitOutcome claim_permit_or_wait(Claims& claims, const ClaimRequest& request,
                                                 std::uint32_t permits, Timestamp deadline);
/// Takes the answer of a wait.
using PermitCallback = Function<void(PermitOutcome&&)>;
/// The same; `done` runs once, on the thread that ends the wait, as that of
/// Claims::claim_or_wait(). Returns 0 if it has run already, else what
/// claims.cancel_wait(permit_key(request.key, 0), ticket) takes. Errors besides: refused (the
/// engine's calls go through a group's log; it does not wait).
WaitTicket claim_permit_or_wait(Claims& claims, const ClaimRequest& request, std::uint32_t permits,
                                Timestamp deadline, PermitCallback done);
/// The key of a slot's claim: "{key}#slot".
[[nodiscard]] std::string permit_key(Bytes key, std::uint32_t slot);

/// A permit that is held.
struct PermitView {
  std::uint32_t slot = 0;
  ClaimView claim;
};
/// All held permits by slot, including slots beyond the present number. Not a consistent cut.
/// Errors: those of Claims::get().
[[nodiscard]] Result<std::vector<PermitView>> permits_held(Claims& claims, Bytes key);

struct SemaphoreOptions {
  std::uint32_t permits = 1;           ///< 1..limits::permits_max
  std::optional<Duration> lease{};     ///< none: the policy's
  Bytes owner{};                       ///< label for people, copied
  std::optional<SessionId> session{};  ///< none: the engine's own; the permit ends with it
  Watchdog* watchdog = nullptr;  ///< renews the lease; must outlive the semaphore. A lease that is
                                 ///< too short for it (Watchdog::can_keep) is refused
};

/// Holds one permit at most, for all threads: use one object for each permit. Calls are safe from
/// any thread; an attempt while it holds a permit, or while another thread attempts, is refused
/// (object_in_use). Neither copied nor moved.
///
/// Errors of all attempts, in why_not(): timed_out (all permits are held); object_in_use;
/// bad_option (permits, lease, label); those of Lock.
class Semaphore {
 public:
  /// The key is copied.
  Semaphore(const Claims& claims, Bytes key, const SemaphoreOptions& options);
  /// Gives the permit back.
  ~Semaphore() = default;
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// True: a permit is held now.
  [[nodiscard]] bool try_acquire();
  /// Waits at most this long, in order of arrival; Millis::max() is unlimited.
  [[nodiscard]] bool try_acquire_for(Duration wait);
  /// Waits for as long as it takes. Returns with a permit held, or throws std::system_error of
  /// error_category() with the code of why_not().
  void acquire();
  /// False: no permit was held any more (the lease was lost), or the journal failed; then the
  /// permit is free at the end of its lease at the latest.
  bool release() noexcept { return hold_.release(); }

  /// Whether a permit is held and its lease runs. Asks the engine.
  [[nodiscard]] bool is_held() const { return hold_.is_held(); }
  /// Larger than the token of every earlier holder of this slot. 0: no permit is held.
  [[nodiscard]] Epoch fencing_token() const noexcept { return hold_.token(); }
  /// The slot of the held permit; else 0.
  [[nodiscard]] std::uint32_t slot() const noexcept { return hold_.kind(); }
  /// Restarts the lease. False: the permit was lost.
  [[nodiscard]] bool renew() { return hold_.renew(); }
  /// Why the last attempt failed; ok: it did not.
  [[nodiscard]] Error why_not() const { return hold_.why_not(); }

 private:
  [[nodiscard]] bool attempt(Timestamp deadline);

  const std::uint32_t permits_;
  detail::OneHold hold_;
};

}  // namespace semel
