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

struct Answer {
  std::variant<PlainAnswer, StoreOutcome, std::vector<ClaimOutcome>, OwnerOutcome,
               std::vector<Answer>>
      what{};
};

}  // namespace semel::replication
