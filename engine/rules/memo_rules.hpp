// What the calls of a claim's steps do: pure functions like those of claim_rules.hpp. Whether the
// caller owns the claim is decided first, also without a memo: the caller runs an effect after the
// answer.
// Source: docs/semantics.md#steps
//
//   held, same epoch, lease running --recall-->   the memo, or none and room for one
//                                   --remember--> held, with the memo
//   anything else                   -->           not_owner
#pragma once

#include <optional>
#include <string>

#include "engine/rules/claim_rules.hpp"

namespace semel::engine {

struct MemoCall {
  Epoch epoch = 0;
  Bytes step{};
  Bytes bytes{};                ///< of remember
  std::size_t bytes_limit = 0;  ///< of all memos of a claim
};

/// Errors: wrong_kind, not_owner; value_too_long, and then `given` is more than `limit`: bytes of
/// all memos, or how many they are.
struct MemoOutcome {
  ErrorCode error = ErrorCode::ok;
  std::size_t given = 0;
  std::size_t limit = 0;
  std::optional<std::string> memo{};  ///< of recall
};

/// The part of the checks that needs no record. Errors: bad_option (the step's name is empty or
/// longer than limits::step_name_max).
[[nodiscard]] ErrorCode check_step(Bytes step) noexcept;

/// Whether a step's memo, or an empty one, has room among the others. Error: value_too_long.
[[nodiscard]] bool has_room(Bytes memos, const Fingerprint& payload, const MemoCall& call,
                            MemoOutcome& outcome) noexcept;

/// Of the facts only now and owner_dead are used. Without a memo the error value_too_long says that
/// there is no room for even an empty one, before the step has run.
void decide_recall(const RecordView* live, const MemoCall& call, const ClaimFacts& facts,
                   MemoOutcome& outcome);

/// `call` has passed check_step. The record lives as long as its own rule says.
[[nodiscard]] Decision decide_remember(const RecordView* live, const MemoCall& call,
                                       const Policy& policy, const ClaimFacts& facts,
                                       MemoOutcome& outcome, Scratch& scratch);

}  // namespace semel::engine
