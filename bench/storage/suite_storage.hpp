// The suite `storage`: the goals of durability, beside the engine without it, Redis and the disk.
#pragma once

#include <string>
#include <vector>

#include "bench/engine/suite_engine.hpp"
#include "bench/harness/report.hpp"

namespace semel::bench {

/// Names that SuiteOptions::only may have.
[[nodiscard]] std::vector<std::string> storage_groups();

/// Fills rows, tails and notes of `report`. Works below SuiteOptions::directory and leaves nothing
/// there. False: it could not begin, and said why.
[[nodiscard]] bool run_storage_suite(const SuiteOptions& options, Report& report);

}  // namespace semel::bench
