// What the calls of semel/store.hpp share: one operation applied, its outcome read, its error
// explained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "semel/engine.hpp"

namespace semel::store_calls {

/// Names the value and the limit. On the cold path: only a failed call pays for it.
[[nodiscard]] Error explain(Engine& engine, const StoreOp& op, ErrorCode code);

/// Applies one operation to one key; `read` turns its outcome into the answer.
template <class Read>
auto run(Engine& engine, const StoreOp& op, Read&& read)
    -> Result<decltype(read(std::declval<StoreOutcome&>()))> {
  StoreOutcome out;
  engine.apply(op, out);
  if (out.error != ErrorCode::ok) [[unlikely]]
    return explain(engine, op, out.error);
  return read(out);
}

[[nodiscard]] inline bool applied(StoreOutcome& out) {
  return out.applied;
}
[[nodiscard]] inline bool found(StoreOutcome& out) {
  return out.found;
}
[[nodiscard]] inline std::int64_t number(StoreOutcome& out) {
  return out.number;
}
[[nodiscard]] inline std::string text(StoreOutcome& out) {
  return std::move(out.value);
}
[[nodiscard]] inline std::optional<std::string> value_or_none(StoreOutcome& out) {
  if (!out.has_value) return std::nullopt;
  return std::move(out.value);
}

}  // namespace semel::store_calls
