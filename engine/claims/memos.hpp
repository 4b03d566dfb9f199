// What steps of a claim's work have brought about (semel/patterns/steps.hpp): kept beside the claim
// while it is held, forgotten when it is completed.
#pragma once

#include <optional>
#include <string>

#include "semel/claims.hpp"
#include "semel/result.hpp"

namespace semel::engine {

struct Memo {
  Bytes key{};      ///< of the claim
  Epoch epoch = 0;  ///< of its owner; 0: whoever owns it, for recall_memo() alone
  Bytes step{};
  Bytes bytes{};  ///< of keep_memo()
};

/// What was kept under its step for this payload. Errors: not_owner, bad_option (a step that begins
/// with a NUL byte), refused (a group with members that know no memos), those of Hashes::hmget.
[[nodiscard]] Result<std::optional<std::string>> recall_memo(Claims& claims, const Memo& memo);
/// Errors: not_owner (nothing was changed), bad_option, those of Hashes::hset.
[[nodiscard]] Status keep_memo(Claims& claims, const Memo& memo);
/// Claims::complete, and the memos go with it in one step.
[[nodiscard]] OwnerOutcome complete_with_memos(Claims& claims, const OwnerCall& call);

}  // namespace semel::engine
