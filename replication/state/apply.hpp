// One command on the engine. Called by the state machine, within the scope of an entry.
#pragma once

#include "replication/state/answer.hpp"
#include "replication/state/command.hpp"
#include "semel/engine.hpp"

namespace semel::replication {

/// std::bad_alloc.
[[nodiscard]] Answer apply(Engine& engine, const Command& command);

}  // namespace semel::replication
