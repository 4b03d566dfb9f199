// What a decision is called, and why it was taken, in plain words.
#pragma once

#include <string>
#include <string_view>

#include "engine/decisions/decision_log.hpp"

namespace semel::engine {

/// As in a reply on the wire, but a grant over another's is `takeover`, a failure by the attempt
/// limit `poison`, an owner's call after the lease `late`.
[[nodiscard]] std::string_view outcome_of(const DecisionFacts& facts) noexcept;
/// Holds numbers and our own words only, nothing that a caller chose.
[[nodiscard]] std::string reason_of(const DecisionFacts& facts);

}  // namespace semel::engine
