// The inputs of the decisions of one entry of a replicated log, in place of this process' own
// clock, epochs and secrets. Two engines that take the same entries decide the same.
//
// Only while a DecisionContext is set for a thread does that thread change a replica. Where a call
// would read a clock, take an epoch or a secret, it asks here first; nothing else may do so.
#pragma once

#include <cstdint>

#include "semel/types.hpp"

namespace semel::engine {

struct DecisionContext {
  Timestamp now{};           ///< of every decision
  std::int64_t unix_ms = 0;  ///< the wall clock's time, for windows of first_sent
  Version first = 0;         ///< versions first..end - 1 are those of the entry, in its order
  Version end = 0;
  std::uint64_t secret = 0;  ///< seeds hashes; clients must not know it
  /// The group's level of features has the rules of docs/decisions/0060; below it, entries are
  /// decided as releases before did.
  bool guards_claims = true;
};

/// Whether claims are no values, and what else a group does from that level of features on.
/// `decision`: of the calling thread's context; null: the engine is no replica.
[[nodiscard]] inline bool guards_claims(const DecisionContext* decision) noexcept {
  return decision == nullptr || decision->guards_claims;
}

}  // namespace semel::engine
