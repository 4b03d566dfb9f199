// What steps of a claim's work have brought about (semel/patterns/steps.hpp): a part of the claim's
// record, so that it lives, moves, ends and is dropped with it.
#pragma once

#include <optional>
#include <string>

#include "engine/rules/memo_rules.hpp"
#include "semel/claims.hpp"
#include "semel/result.hpp"

namespace semel::engine {

struct Memo {
  Bytes key{};      ///< of the claim
  Epoch epoch = 0;  ///< of its owner
  Bytes step{};
  Bytes bytes{};  ///< of keep_memo()
};

/// The memo of its step for the payload of the claim. Errors: not_owner, whether there is a memo or
/// not; bad_option (the step's name); value_too_long (no room for a memo); key_*, wrong_kind,
/// namespace_dropped; refused (a group with members that know no memos), those of CallLog::read.
[[nodiscard]] Result<std::optional<std::string>> recall_memo(Claims& claims, const Memo& memo);
/// Errors: as above, and nothing was changed; memory_full, refused, outcome_unknown.
[[nodiscard]] Status keep_memo(Claims& claims, const Memo& memo);

/// The same of work without a claim, whose memos are `own`. Errors: bad_option, value_too_long.
[[nodiscard]] Result<std::optional<std::string>> recall_memo(const std::string& own,
                                                             const Memo& memo);
[[nodiscard]] Status keep_memo(std::string& own, const Memo& memo);

/// keep_memo() here, whatever decides the claims of this engine: for an entry of the replicated
/// log.
[[nodiscard]] MemoOutcome decide_memo(Claims& claims, const Memo& memo);

}  // namespace semel::engine
