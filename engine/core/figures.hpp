// Figures and rules of a core: the records that it holds, and whether they add up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "semel/engine.hpp"

namespace semel::engine {

class Core;

/// Records of a database, with those that have ended and were not taken out yet.
[[nodiscard]] std::uint64_t records_in(Core& core, std::uint8_t stored_db);
/// All but the figures of the upkeep.
[[nodiscard]] Stats stats_of(Core& core);
/// Adds a line for each record, counter and limit that breaks a rule. While no thread is inside an
/// operation.
[[gnu::cold]] void check_records(Core& core, std::vector<std::string>& broken);

}  // namespace semel::engine
