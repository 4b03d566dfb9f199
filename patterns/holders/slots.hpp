// Slots: claims under "<stem>0", "<stem>1", .., of which each holder has one. What semaphores and
// read/write locks are made of.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "semel/claims.hpp"

namespace semel::detail {

/// Of a claim that its holder may still have.
[[nodiscard]] bool is_taken(const ClaimView& view) noexcept;
/// Held by another.
[[nodiscard]] bool is_in_flight(const ClaimOutcome& outcome) noexcept;
/// The answer is not that of one slot: no other slot is asked for.
[[nodiscard]] bool decides(const ClaimOutcome& outcome) noexcept;
/// in_flight, as a claim is answered that finds `view`.
[[nodiscard]] ClaimOutcome in_flight_of(const Claims& claims, const ClaimView& view);

/// "{key}#", the prefix of all keys of one semaphore or lock, with capacity for a suffix. The
/// braces are Redis' hash tag, so that all keys are in one slot of a cluster.
[[nodiscard]] std::string stem_of(Bytes key);

/// How often a waiter looks that stands in no line: in a group, or while too many hold a permit,
/// perhaps in slots that were not there when the wait began.
inline constexpr Millis look_again{20};
void pause_a_moment();

struct SlotFound {
  ClaimOutcome claim;
  std::uint32_t slot = 0;
  std::string key;
};

/// For one request, which may claim the first `count` of them. Not for several threads.
class Slots {
 public:
  Slots(Claims& claims, const ClaimRequest& request, std::string stem, std::uint32_t count)
      : claims_(claims),
        request_(request),
        key_(std::move(stem)),
        stem_bytes_(key_.size()),
        count_(count) {}

  /// The slot that the request's claim id has, of the first `slots`. Takes no other.
  [[nodiscard]] bool find_own(SlotFound& found, std::uint32_t slots);
  /// Whether it has this one.
  [[nodiscard]] bool is_own(SlotFound& found, std::uint32_t slot);
  /// The lowest free slot; else the one that will be free first, or what stands in the way.
  void claim_lowest(SlotFound& found);
  /// Valid until the next call.
  [[nodiscard]] const std::string& key_of(std::uint32_t slot);

 private:
  [[nodiscard]] ClaimOutcome ask(std::uint32_t slot);

  Claims& claims_;
  ClaimRequest request_;
  std::string key_;  // of one slot after the other
  const std::size_t stem_bytes_;
  const std::uint32_t count_;
};

}  // namespace semel::detail
