// A claim as people see it.
#pragma once

#include "engine/rules/claim_rules.hpp"
#include "engine/rules/record.hpp"
#include "semel/claims.hpp"

namespace semel::engine {

/// The record as get() returns it. Errors: wrong_kind.
[[nodiscard]] ErrorCode view_claim(const RecordView* live, const Policy& policy,
                                   const ClaimFacts& facts, ClaimView& view);

}  // namespace semel::engine
