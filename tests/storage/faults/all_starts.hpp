// Starts of every kind of directory, interrupted at their steps (interrupted_starts.hpp): new ones,
// those that convert a directory of an earlier format, and those of a cold store whose memory limit
// was reached. At every step with --long.
#pragma once

#include <cstdint>

#include "tests/proofs/random.hpp"
#include "tests/storage/faults/findings.hpp"
#include "tests/storage/faults/proofs.hpp"
#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {

/// How many were interrupted.
[[nodiscard]] std::uint64_t interrupt_all_starts(const Wanted& wanted, const Scratch& scratch,
                                                 proofs::Random& random, Findings& findings);

}  // namespace semel::faults
