// See semel/patterns/rate_limit.hpp. The rule is in rate_rules.cpp.
#include "semel/patterns/rate_limit.hpp"

#include <optional>
#include <utility>

#include "patterns/rate_rules.hpp"
#include "semel/engine_host.hpp"
#include "semel/store.hpp"

namespace semel {
namespace {

/// A record, and the version that both of its parts were read at.
struct Seen {
  std::optional<Versioned> value;
  Timestamp due = no_end;
};

/// Nothing: it changed between the two reads.
Result<std::optional<Seen>> look_at(Engine& engine, Store& store, Bytes key) {
  Seen seen;
  SEMEL_TRY(value, store.get_versioned(key));
  if (value) {
    StoreOutcome end;
    engine.host().apply(StoreOp{.verb = Verb::expire_time, .db = store.db(), .key = key}, end);
    if (end.error != ErrorCode::ok) return Error{end.error, {}};
    if (!end.found || end.version != value->version) return std::optional<Seen>{};
    seen.due = end.due;
  }
  seen.value = std::move(value);
  return std::optional<Seen>{std::move(seen)};
}

}  // namespace

Result<RateOutcome> take_rate(Engine& engine, std::uint8_t db, Bytes key, const RateTerms& terms,
                              std::uint64_t cost) {
  SEMEL_CHECK(detail::check_rate(terms, cost));
  Store store = engine.store(db);
  for (;;) {
    SEMEL_TRY(seen, look_at(engine, store, key));
    if (!seen) continue;  // another has taken of it
    const Timestamp now = engine.now();
    std::optional<detail::RateRecord> record;
    // One that has ended since is as none. compare_and_set() is asked about it all the same: by the
    // time of a group, which goes on with its entries, it may still be there.
    if (seen->value && seen->due > now) {
      record = {.value = seen->value->value, .remaining = seen->due - now};
    }
    SEMEL_TRY(decision, detail::decide_rate(record, terms, cost));
    if (!decision.writes) return decision.answer;
    const Version version = seen->value ? seen->value->version : 0;
    SEMEL_TRY(set,
              store.compare_and_set(key, version, decision.value, Expiry::at(now + decision.keep)));
    if (set.stored) return decision.answer;
  }
}

}  // namespace semel
