// A string of the store with its end: what patterns keep whose times are counted back from the end
// of their record (docs/decisions/0096-rate-limits-are-strings-that-end.md).
#pragma once

#include <optional>
#include <utility>

#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace semel::detail {

/// A record, and the version that both of its parts were read at.
struct DatedString {
  std::optional<Versioned> value;
  Timestamp due = no_end;

  /// What compare_and_set() takes; 0: there was none.
  [[nodiscard]] Version version() const noexcept { return value ? value->version : 0; }
};

inline Result<DatedString> look_at_dated(Engine& engine, Store& store, Bytes key) {
  for (;;) {
    DatedString seen;
    SEMEL_TRY(value, store.get_versioned(key));
    if (value) {
      StoreOutcome end;
      engine.host().apply(StoreOp{.verb = Verb::expire_time, .db = store.db(), .key = key}, end);
      if (end.error != ErrorCode::ok) return Error{end.error, {}};
      if (!end.found || end.version != value->version) continue;  // it changed in between
      seen.due = end.due;
    }
    seen.value = std::move(value);
    return seen;
  }
}

}  // namespace semel::detail
