// A batch whose outcomes together have a limit in bytes.
#pragma once

#include <cstddef>
#include <span>

#include "semel/engine.hpp"

namespace semel::engine {

/// As EngineHost::apply of a batch, but no operation begins once the values of the outcomes before
/// it have more than `value_bytes_max` bytes together. Returns how many were applied, at least one;
/// the outcomes behind them mean nothing. `ops` are 1..limits::batch_max.
[[nodiscard]] std::size_t apply_bounded(Engine& engine, std::span<const StoreOp> ops,
                                        std::span<StoreOutcome> outcomes,
                                        std::size_t value_bytes_max) noexcept;

}  // namespace semel::engine
