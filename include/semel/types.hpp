// The few words every other header uses: bytes, times, versions.
#pragma once

#include <cstdint>
#include <string_view>
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
[[nodiscard]] constexpr Timestamp deadline_after(Timestamp now, Millis wait) noexcept {
  if (wait <= Millis{0}) return now;
  return wait < no_end - now ? now + wait : no_end;
}

/// Order of the changes of one key: a later change of the same key always has the larger version,
/// across deletion, restart and takeover. Versions of different keys are not ordered in time.
using Version = std::uint64_t;

/// The fencing token of a claim: the version of the change that granted it.
using Epoch = std::uint64_t;

}  // namespace semel
