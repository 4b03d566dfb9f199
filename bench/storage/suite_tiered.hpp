// The suite `tiered`: a window larger than memory.
#pragma once

#include "bench/engine/suite_engine.hpp"

namespace semel::bench {

/// options.records keys of 16 bytes in a memory limit of 21.5 bytes each (4 GiB for 200 million).
void run_tiered_suite(const SuiteOptions& options, Report& report);

}  // namespace semel::bench
