// Many readers or one writer: a catalogue that is read all day and rebuilt at times.
//
//   auto locks = engine->claims("catalogue", policies::fair_lock).value();
//   ReadWriteLock lock{locks, "prices"};
//   if (lock.try_read_for(Millis{5'000})) {
//     show(prices.read(lock.fencing_token()));
//   }                                            // ~ReadWriteLock or release() gives it back
//
// Each holder has a lease of its own, which a watchdog may renew; a silent holder is out when its
// lease ends. Later callers do not overtake a waiter, readers and writers alike: while a caller
// waits in front, no other comes in. There is no upgrade: a reader that asks for write access waits
// for itself. Ask for write access if the work may write; it includes reading.
//
// Tokens of readers and writers have one order: the token of a reader is at least that of every
// earlier writer, and smaller than that of every later writer. The protected state keeps one Fence:
// writers call admit(), readers admit_reader(). The fence refuses a writer that was paused for
// longer than its lease, even if only readers came after it. A reader of state without a fence
// calls is_held() after its last read: true means that no writer was in since it began.
// Source: docs/patterns.md#readers-and-a-writer, docs/decisions/0100-a-read-write-lock.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel {

namespace limits {
inline constexpr std::uint32_t readers_max = 128;  ///< of one lock, at a time
inline constexpr Millis next_max{60'000};          ///< for how long an attempt may want to be next
}  // namespace limits

enum class Access : std::uint8_t { read, write };

/// The answer to an attempt, from the claim that decided it.
struct AccessOutcome {
  /// granted, regranted: the caller has access. in_flight: a writer, the readers, or a caller in
  /// front excludes it. Any other answer: the obstacle, or an error.
  ClaimOutcome claim;
  std::string key;  ///< the key of that claim, for owner calls; may be empty with an error
  Epoch token = 0;  ///< granted, regranted: for a Fence. Owner calls take the epoch instead
};

/// One attempt. A claim id that has the access is regranted it, unless a writer's attempt is under
/// way: then in_flight, and the access stays. With `next` (1 ms..limits::next_max) a blocked caller
/// takes the place in front for that time, if it is free: no other caller comes in until an attempt
/// with its claim id is granted or has no `next`. Errors, as busy: those of Claims::claim() and
/// Store::set(); bad_option (`next`, or no claim id with it); wrong_kind, wrong_type (a key of the
/// lock holds another kind). Progress: as Claims::claim(), limits::readers_max times.
[[nodiscard]] AccessOutcome claim_access(Claims& claims, const ClaimRequest& request, Access access,
                                         std::optional<Duration> next = {});
/// The same, but waits for access in the order of arrival, and answers in_flight at the deadline.
/// Errors: also those of Claims::claim_or_wait(). Progress: blocks until then.
[[nodiscard]] AccessOutcome claim_access_or_wait(Claims& claims, const ClaimRequest& request,
                                                 Access access, Timestamp deadline);

/// A holder, or the caller in front.
struct AccessView {
  Access access = Access::read;
  bool waits = false;  ///< the caller in front; `access` has no meaning
  std::string key;     ///< of the claim
  ClaimView claim;
};
/// The writer, the readers by slot, and the caller in front. Not a consistent cut. Errors: those of
/// Claims::get().
[[nodiscard]] Result<std::vector<AccessView>> accesses_held(Claims& claims, Bytes key);
/// All keys that a lock has in its namespace, the token's last.
[[nodiscard]] std::vector<std::string> access_keys(Bytes key);

struct ReadWriteOptions {
  std::optional<Duration> lease{};     ///< none: the policy's
  Bytes owner{};                       ///< label for people, copied
  std::optional<SessionId> session{};  ///< none: the engine's own; the hold ends with it
  Watchdog* watchdog = nullptr;        ///< keeps the lease; must outlive the lock. A lease that it
                                       ///< cannot keep (Watchdog::can_keep) is refused
};

/// One hold at most, of whichever thread: a reader each has an object each. Its calls are safe from
/// any thread; an attempt while it holds, or while another thread asks, is refused (object_in_use).
/// Neither copied nor moved.
///
/// Errors of all attempts, in why_not(): timed_out (others are in, or in front); object_in_use;
/// bad_option (lease, label); those of Lock.
class ReadWriteLock {
 public:
  /// The key is copied.
  ReadWriteLock(const Claims& claims, Bytes key, const ReadWriteOptions& options = {});
  /// Gives the held access back.
  ~ReadWriteLock() = default;
  ReadWriteLock(const ReadWriteLock&) = delete;
  ReadWriteLock& operator=(const ReadWriteLock&) = delete;

  /// True: held now. False also where another attempt is under way that is refused as well.
  [[nodiscard]] bool try_read();
  [[nodiscard]] bool try_write();
  /// Waits at most this long, in the order of arrival; Millis::max() is unlimited.
  [[nodiscard]] bool try_read_for(Duration wait);
  [[nodiscard]] bool try_write_for(Duration wait);
  /// Waits for as long as it takes. Returns with the lock held, or throws std::system_error of
  /// error_category() with the code of why_not().
  void read();
  void write();
  /// False: nothing was held any more (the lease was lost), or whether it was given back is
  /// unknown: then it ends with its lease at the latest.
  bool release() noexcept { return hold_.release(); }

  /// Its lease runs. Asks the engine.
  [[nodiscard]] bool is_held() const { return hold_.is_held(); }
  /// 0: nothing is held.
  [[nodiscard]] Epoch fencing_token() const noexcept { return hold_.token(); }
  /// The lease begins anew. False: it was lost.
  [[nodiscard]] bool renew() { return hold_.renew(); }
  /// Why the last attempt was refused; ok: it was not.
  [[nodiscard]] Error why_not() const { return hold_.why_not(); }

 private:
  [[nodiscard]] bool attempt(Access access, Timestamp deadline);

  detail::OneHold hold_;
};

}  // namespace semel
