// The suite `engine`: the goals of the in-process engine against maps that packages give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/report.hpp"

namespace semel::bench {

struct SuiteOptions {
  std::uint64_t records = 10'000'000;
  unsigned rounds = 3;
  std::string only{};       ///< a group of the suite; empty: all
  bool quick = false;       ///< what is bounded by time is short
  std::string directory{};  ///< suite `storage`: it works below
};

/// Names that SuiteOptions::only may have.
[[nodiscard]] std::vector<std::string> engine_groups();

/// Fills rows, tables and notes of `report`. Progress goes to stderr.
void run_engine_suite(const SuiteOptions& options, Report& report);

}  // namespace semel::bench
