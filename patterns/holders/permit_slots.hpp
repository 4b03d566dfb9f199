// The permits of a semaphore as claims of slots.
//
//   "{key}#0", "{key}#1", ..   claims, one a slot; the braces are Redis' hash tag, so that all of
//                              them are in one slot of a cluster
//   "ns:{key}#"                a string: the largest number of permits that was asked for within a
//                              day. It is raised before the first slot beyond it is claimed, and
//                              renewed by attempts with fewer permits while such a slot is held
//
// An attempt claims a slot first and counts afterwards, where there may be holders beyond its own
// number: of two that exceed it together, the later claim sees the earlier one. Both may give way,
// which is on the safe side; never do both stay.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "patterns/holders/slots.hpp"
#include "semel/claims.hpp"
#include "semel/patterns/semaphore.hpp"
#include "semel/store.hpp"

namespace semel::detail {

/// The record of how many slots there may be.
class PermitWidth {
 public:
  PermitWidth(Claims& claims, Bytes key);

  /// 0: unknown.
  [[nodiscard]] Result<std::uint32_t> get();
  /// Whether one of the slots from the first number to before the second is held.
  using IsAnyHeld = std::function<bool(std::uint32_t slot, std::uint32_t end)>;
  /// Makes it `permits` at least, for as long as a lease of this length and a day. A larger number
  /// is kept for as long while a slot beyond `permits` is held.
  [[nodiscard]] Status widen(std::uint32_t permits, Millis lease, const IsAnyHeld& is_any_held);

 private:
  Store store_;
  const std::string key_;
};

/// One attempt, in the steps of claim_permit(). The bytes of the request must live as long.
class PermitTry {
 public:
  PermitTry(Claims& claims, const ClaimRequest& request, std::uint32_t permits);

  [[nodiscard]] Status begin();
  /// The permit that the request's claim id has, also one beyond the number of permits.
  [[nodiscard]] bool find_own(PermitOutcome& found);
  /// Whether it has this one.
  [[nodiscard]] bool is_own(PermitOutcome& found, std::uint32_t slot);
  /// One that cannot be read counts as held.
  [[nodiscard]] bool is_held(std::uint32_t slot);
  /// The lowest free slot; else the one that will be free first.
  void claim_lowest(PermitOutcome& found);
  /// Gives the granted permit back if too many are held with it. One that the claim id had before
  /// stays, as that of any holder does.
  void confirm(PermitOutcome& found);

  /// The slots that are held now.
  struct Held {
    std::uint32_t count = 0;
    std::uint32_t lowest_free = 0;  ///< of the slots below the number of permits, if there is one
    PermitOutcome first{};          ///< in_flight: the holder whose lease ends first, if one holds
  };
  /// Of `slots` slots; `but` is not looked for in Held::first. Stops when `enough` are held.
  [[nodiscard]] Held count_held(std::uint32_t slots, std::uint32_t but = limits::permits_max,
                                std::uint32_t enough = limits::permits_max + 1);
  /// How many slots have to be looked at: as many as there are permits, or more, where there may be
  /// holders beyond them.
  [[nodiscard]] std::uint32_t slots();

 private:
  void note_sooner(PermitOutcome& other, std::uint32_t slot, const std::string& key,
                   const ClaimView& view) const;

  Claims& claims_;
  const Millis lease_;
  const std::uint32_t permits_;
  PermitWidth width_;
  Slots slots_;
};

/// Errors of the request itself, which no wait changes.
[[nodiscard]] ErrorCode check_permit(const ClaimRequest& request, std::uint32_t permits) noexcept;

}  // namespace semel::detail
