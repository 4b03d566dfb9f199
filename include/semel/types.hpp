// The few words every other header uses: bytes, times, versions.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <type_traits>
// std::chrono::duration and time_point. <chrono> brings streams and, in later releases, calendars
// and time zones: some 8,000 lines for every user. libstdc++ has the two in <mutex> as well.
#if defined(__GLIBCXX__)
#include <mutex>
#else
#include <chrono>
#endif

namespace semel {

/// Bytes of a key, value or label: any content, no terminator. A parameter of this type is copied
/// before the call returns, unless the callee says otherwise.
using Bytes = std::string_view;

using Millis = std::chrono::milliseconds;

/// Any duration in milliseconds: parts of one count as a whole one, so that nothing ends early, and
/// a duration out of range is the longest one (`std::chrono::hours::max()`), where chrono's own
/// conversion would overflow. NaN: 0.
template <class Rep, class Period>
[[nodiscard]] constexpr Millis in_millis(std::chrono::duration<Rep, Period> span) noexcept {
  if constexpr (std::is_integral_v<Rep>) {
    constexpr auto num = Period::num * 1'000;
    constexpr auto den = Period::den;
    if constexpr (num % den == 0) {  // seconds, hours
      Millis::rep whole = 0;
      if (!__builtin_mul_overflow(span.count(), Millis::rep{num / den}, &whole))
        return Millis{whole};
      return span.count() < 0 ? Millis::min() : Millis::max();
    } else if constexpr (den % num == 0) {  // microseconds
      constexpr Rep part = den / num;
      const Rep whole = span.count() / part;
      return Millis{static_cast<Millis::rep>(span.count() % part > 0 ? whole + 1 : whole)};
    }
  }
  // A floating one in its own precision: 0.1s are 100 ms, and not a little more.
  using Wide = std::conditional_t<std::is_floating_point_v<Rep>, Rep, long double>;
  const long double all =
      std::chrono::duration_cast<std::chrono::duration<Wide, std::milli>>(span).count();
  if (all != all) return Millis{0};
  if (all >= static_cast<long double>(Millis::max().count())) return Millis::max();
  if (all <= static_cast<long double>(Millis::min().count())) return Millis::min();
  const auto whole = static_cast<Millis::rep>(all);
  return Millis{static_cast<long double>(whole) < all ? whole + 1 : whole};
}

/// How long, as a parameter or an option: takes `30s`, `2h`, `1.5s`, `500us`, each by in_millis().
class Duration {
 public:
  constexpr Duration() noexcept = default;
  template <class Rep, class Period>
  constexpr Duration(std::chrono::duration<Rep, Period> span) noexcept  // NOLINT: any is meant
      : span_(in_millis(span)) {}
  constexpr Duration(Millis span) noexcept : span_(span) {}     // NOLINT: as above
  constexpr operator Millis() const noexcept { return span_; }  // NOLINT: as above
  [[nodiscard]] constexpr Millis::rep count() const noexcept { return span_.count(); }
  friend constexpr auto operator<=>(Duration one, Duration other) noexcept {
    return one.count() <=> other.count();
  }
  friend constexpr bool operator==(Duration, Duration) noexcept = default;

 private:
  Millis span_{0};
};

/// The clock that all engine times are measured by; see clock.hpp. Not a std clock: it is read
/// through a Clock that was passed in, and in no other way.
struct EngineTime {
  using duration = Millis;
  using rep = duration::rep;
  using period = duration::period;
};

/// A point on the engine's clock, in milliseconds. Never a wall-clock time.
using Timestamp = std::chrono::time_point<EngineTime, Millis>;

/// Later than every time a record can carry: "does not end".
inline constexpr Timestamp no_end = Timestamp::max();

/// `wait` after `now`; no_end if that is beyond every time, `now` if `wait` is negative.
[[nodiscard]] constexpr Timestamp deadline_after(Timestamp now, Duration wait) noexcept {
  if (wait <= Millis{0}) return now;
  return wait < no_end - now ? now + Millis{wait} : no_end;
}

/// Order of the changes of one key: a later change of the same key always has the larger version,
/// across deletion, restart and takeover. Versions of different keys are not ordered in time.
using Version = std::uint64_t;

/// The fencing token of a claim: the version of the change that granted it.
using Epoch = std::uint64_t;

}  // namespace semel
