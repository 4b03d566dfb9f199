// A number for a random choice, the same on all nodes of a group.
#pragma once

#include <cstdint>

#include "semel/engine.hpp"

namespace semel::engine {

/// Of a random choice. In a replica that applies an entry it is the entry's, so that all nodes
/// choose alike, and another one behind each change; elsewhere another one for each call. Not for
/// secrets.
[[nodiscard]] std::uint64_t any_number(Engine& engine);

}  // namespace semel::engine
