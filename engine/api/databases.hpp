// Whole databases: see databases.cpp.
#pragma once

#include <functional>

#include "semel/journal.hpp"
#include "semel/types.hpp"

namespace semel::engine {

class Core;

/// Shows the mutation that says which stored database each number means. Under a section over
/// everything, or where a swap may come before or after.
void visit_db_map(Core& core, Version version, const std::function<void(const Mutation&)>& visit);

}  // namespace semel::engine
