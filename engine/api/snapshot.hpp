// EngineHost::snapshot() with a look at the rest of a replica's state at the same moment.
#pragma once

#include "semel/engine.hpp"

namespace semel::engine {

/// EngineHost::snapshot(); `at_cut` is called at the moment that the snapshot shows, while no
/// thread changes anything. It must be quick, and must not call the engine's operations.
[[nodiscard]] Status snapshot_at(Engine& engine, const Function<void()>& at_cut,
                                 const Function<void(const Mutation&)>& visit);

}  // namespace semel::engine
