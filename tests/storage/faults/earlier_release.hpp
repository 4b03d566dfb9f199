// A storage that begins as an earlier release has left it (tests/storage/golden).
#pragma once

#include <string>
#include <vector>

#include "semel/semel.hpp"
#include "tests/proofs/random.hpp"

namespace semel::faults {

/// Makes `directory`, which is not there. Errors: storage_failed: `tar` cannot.
[[nodiscard]] Status begin_as_earlier(const std::string& directory, proofs::Random& random);
/// What is not there, of all that has no end and of what remote owners hold. `leases_end`: more
/// time may have passed within a life than their leases last.
[[nodiscard]] std::vector<std::string> lost_of_earlier(Engine& engine, bool leases_end);

}  // namespace semel::faults
