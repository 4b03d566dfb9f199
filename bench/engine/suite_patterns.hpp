// The suite `patterns`: what the ready-made patterns cost over the calls below them, and beside the
// same work done with Redis.
#pragma once

#include <string>
#include <vector>

#include "bench/engine/suite_engine.hpp"
#include "bench/harness/report.hpp"

namespace semel::bench {

/// Names that SuiteOptions::only may have.
[[nodiscard]] std::vector<std::string> pattern_groups();

/// Fills rows and notes of `report`. False: it could not begin, and said why.
[[nodiscard]] bool run_pattern_suite(const SuiteOptions& options, Report& report);

}  // namespace semel::bench
