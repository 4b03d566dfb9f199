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

/// Why this replica alone could not do what the log says: its memory, its disk, its process. None:
/// every replica answers the same.
[[nodiscard]] std::optional<ErrorCode> local_error(const Answer& answer) noexcept;

/// Appends bytes that are equal if and only if the answers are.
void encode(const Answer& answer, std::string& to);

}  // namespace semel::replication
