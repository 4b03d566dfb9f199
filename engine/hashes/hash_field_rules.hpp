// What HEXPIRE, HGETEX, HSETEX and their like do to a hash. A field that is named twice is changed
// twice, one after the other.
#pragma once

#include "engine/hashes/hash_ground.hpp"

namespace semel::engine {

/// The verbs `ends`, and those from `expire` on. As decide_hash().
[[nodiscard]] Decision decide_hash_fields(const HashGround& hash, const HashOp& op,
                                          const HashFacts& facts, HashOutcome& outcome,
                                          HashScratch& scratch);

}  // namespace semel::engine
