// What a command was answered when its entry was applied: the same on every replica.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "semel/claims.hpp"
#include "semel/op.hpp"

namespace semel::replication {

/// Of a call that has no outcome of its own.
struct PlainAnswer {
  ErrorCode error = ErrorCode::ok;
  std::int64_t number = 0;  ///< how many; 1: yes; of a session: its id
  std::string text{};       ///< a float's new value
};

/// The command came a second time, or of a node that is not known by this number: nothing was
/// changed, and there is no answer of the first time.
struct NotApplied {
  enum class Why : std::uint8_t {
    forgotten,   ///< its node has said that it does not wait for it
    not_kept,    ///< it was decided, with an answer that is too long to be kept
    too_far,     ///< its node has too many under way
    other_life,  ///< its node has begun anew
    no_life,     ///< its node has not begun, or was no member since
  };
  Why why = Why::forgotten;
};

struct Answer {
  std::variant<PlainAnswer, StoreOutcome, std::vector<ClaimOutcome>, OwnerOutcome, NotApplied,
               std::vector<Answer>>
      what{};
};

}  // namespace semel::replication
