// See semel/patterns/rate_limit.hpp. The rule is in rate_rules.cpp.
#include "semel/patterns/rate_limit.hpp"

#include <optional>

#include "patterns/dated_string.hpp"
#include "patterns/rate_rules.hpp"
#include "semel/store.hpp"

namespace semel {

Result<RateOutcome> take_rate(Engine& engine, std::uint8_t db, Bytes key, const RateTerms& terms,
                              std::uint64_t cost) {
  SEMEL_CHECK(detail::check_rate(terms, cost));
  Store store = engine.store(db);
  for (;;) {
    SEMEL_TRY(seen, detail::look_at_dated(engine, store, key));
    const Timestamp now = engine.now();
    std::optional<detail::RateRecord> record;
    // One that has ended since is as none. compare_and_set() is asked about it all the same: by the
    // time of a group, which goes on with its entries, it may still be there.
    if (seen.value && seen.due > now) {
      record = {.value = seen.value->value, .remaining = seen.due - now};
    }
    SEMEL_TRY(decision, detail::decide_rate(record, terms, cost));
    if (!decision.writes) return decision.answer;
    SEMEL_TRY(set, store.compare_and_set(key, seen.version(), decision.value,
                                         Expiry::at(now + decision.keep)));
    if (set.stored) return decision.answer;
  }
}

}  // namespace semel
