// At most N per period: calls of a caller, mails to an address, attempts at a password.
//
//   RateLimiter calls{*engine, {.limit = 100, .period = Millis{60'000}}};
//   const Result<RateOutcome> call = calls.take(caller);
//   if (call.ok() && call->allowed) ..                     // else call->retry_after
//
// One call decides and counts in one step, so that callers at once never get more together. Which
// of them are allowed:
//
//   fixed_window    at most `limit` in a window, which begins with its first call and is as long as
//                   the period. Around the end of a window up to twice the limit may come together.
//   sliding_window  at most `limit` in any span of a period, wherever it begins.
//   token_bucket    `limit` tokens, of which `refill` come back in a period, evenly: that many at
//                   once, and then as they come back.
//
// A sliding window knows each call by its millisecond up to a limit of limits::rate_exact_max. With
// a larger limit it counts them by slices of 1/128 of the period, and a call counts until its slice
// has left the window: never are there more than `limit`, and a call is refused at most one slice
// longer than it would be.
//
// Each limit is one string of the store, under the key itself. It expires once the limit is fully
// available again. DEL resets it.
// Source: docs/patterns.md#rate-limit, docs/decisions/0096-rate-limits-are-strings-that-end.md
#pragma once

#include <cstdint>

#include "semel/engine.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel {

namespace limits {
inline constexpr std::uint64_t rate_max = 100'000'000;  ///< of RateTerms::limit and refill
inline constexpr Millis rate_period_max{std::int64_t{366} * 24 * 3600 * 1000};
inline constexpr std::uint64_t rate_exact_max = 128;  ///< calls that are known one by one
}  // namespace limits

enum class RateKind : std::uint8_t { fixed_window, sliding_window, token_bucket };

/// Each caller states them. Other terms than before hold from the next call on; earlier calls
/// count.
struct RateTerms {
  RateKind kind = RateKind::sliding_window;
  std::uint64_t limit = 0;   ///< 1..limits::rate_max
  Millis period{0};          ///< 1 ms..limits::rate_period_max
  std::uint64_t refill = 0;  ///< of a token_bucket: as many come back in a period; 0: `limit`

  friend bool operator==(const RateTerms&, const RateTerms&) noexcept = default;
};

struct RateOutcome {
  using is_answer = void;       // ask allowed
  bool allowed = false;         ///< false: nothing was taken
  std::uint64_t remaining = 0;  ///< available now, after this call
  Millis retry_after{0};  ///< not allowed: the cost is available then, if no other call takes any
  Millis reset_after{0};  ///< until the whole limit is available, if no other call takes any
};

/// Takes `cost` of what the terms allow for `key`, or nothing. A cost of 0 takes nothing and is
/// always allowed: it looks.
/// Errors:   bad_option (terms or a cost outside of their range, a cost above the limit),
///           wrong_type (the key holds something else), key_empty, key_too_long, memory_full,
///           refused: nothing was taken; outcome_unknown (it may have been).
/// Progress: lock-free, as the store is; waits for the journal where something was taken.
[[nodiscard]] Result<RateOutcome> take_rate(Engine& engine, std::uint8_t db, Bytes key,
                                            const RateTerms& terms, std::uint64_t cost = 1);

/// One set of terms for any number of keys. Safe from any thread.
class RateLimiter {
 public:
  RateLimiter(Engine& engine, const RateTerms& terms, std::uint8_t db = 0) noexcept
      : engine_(&engine), terms_(terms), db_(db) {}

  /// See take_rate().
  [[nodiscard]] Result<RateOutcome> take(Bytes key, std::uint64_t cost = 1) {
    return take_rate(*engine_, db_, key, terms_, cost);
  }
  /// Takes nothing.
  [[nodiscard]] Result<RateOutcome> look(Bytes key) { return take(key, 0); }
  [[nodiscard]] const RateTerms& terms() const noexcept { return terms_; }

 private:
  Engine* engine_;
  RateTerms terms_;
  std::uint8_t db_;
};

}  // namespace semel
