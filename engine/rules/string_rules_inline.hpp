// What the store's truth table is made of, and its rows that are asked most. They are inline: most
// of what they find then stays in registers, and the next operation can begin its cache misses
// while this one waits for its own (docs/decisions/0003-table-layout.md).
//
// `Outcome` is a StoreOutcome, or has those of its members that the function writes to.
#pragma once

#include "engine/rules/hash_value.hpp"
#include "engine/rules/record.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::engine {

inline constexpr Decision keep{};

template <class Outcome>
Decision fail(Outcome& outcome, ErrorCode code) noexcept {
  outcome.error = code;
  return keep;
}

inline Decision store_string(Bytes value, Timestamp due) noexcept {
  return {.action = Action::store, .kind = Kind::string, .due = due, .value = value};
}

/// The record goes, if there is one.
inline Decision erase(const RecordView* live) noexcept {
  if (live == nullptr) return keep;
  return {.action = Action::erase, .kind = live->kind, .due = no_end, .value = {}};
}

[[nodiscard]] inline bool in_range(const Expiry& expiry) noexcept {
  return expiry.mode() != Expiry::Mode::in ||
         (expiry.ttl() >= Millis{1} && expiry.ttl() <= limits::ttl_max);
}

/// Whether it gives the record an end.
[[nodiscard]] inline bool sets_due(const Expiry& expiry) noexcept {
  return expiry.mode() == Expiry::Mode::in || expiry.mode() == Expiry::Mode::at;
}

/// The end of the key. That of a hash may be later than its record's, see hash_value.hpp.
inline Timestamp key_end_of(const RecordView& live) noexcept {
  return key_end_of(live.kind, live.value, live.due);
}

/// True if EXPIRE's rule lets `due` replace the end of a key or a field. One without ttl never
/// ends, so nothing is later than its end and everything is earlier.
[[nodiscard]] inline bool rule_allows(const ExpireRule& rule, Timestamp before,
                                      Timestamp due) noexcept {
  const bool has_ttl = before != no_end;
  if (rule.only_without_ttl && has_ttl) return false;
  if (rule.only_with_ttl && !has_ttl) return false;
  if (rule.only_later && (!has_ttl || due <= before)) return false;
  if (rule.only_earlier && has_ttl && due >= before) return false;
  return true;
}

inline Timestamp due_of(const Expiry& expiry, const RecordView* live, Timestamp now) noexcept {
  switch (expiry.mode()) {
    case Expiry::Mode::clear:
      return no_end;
    case Expiry::Mode::keep:
      return live != nullptr ? key_end_of(*live) : no_end;
    case Expiry::Mode::in:
      return expiry.ttl() < no_end - now ? now + expiry.ttl() : no_end;
    case Expiry::Mode::at:
      return expiry.when();
  }
  return no_end;
}

/// `value` with `due`, or nothing at all if that has passed: storing a record that is dead on
/// arrival would leave the wheel to clean up what no reader may see.
template <class Outcome>
Decision store_or_erase(const RecordView* live, Bytes value, Timestamp due, Timestamp now,
                        Outcome& outcome) noexcept {
  outcome.applied = true;
  return due > now ? store_string(value, due) : erase(live);
}

[[nodiscard]] inline bool is_string(const RecordView* live) noexcept {
  return live == nullptr || live->kind == Kind::string;
}

/// The outcome's value is empty before.
template <class Outcome>
void return_value(const RecordView& live, Outcome& outcome) {
  outcome.value.append(live.value);  // cheaper than assign, which minds what overlaps
  outcome.has_value = true;
}

inline Decision decide_get(const RecordView* live, StoreOutcome& outcome) {
  if (live == nullptr) return keep;
  if (live->kind != Kind::string) [[unlikely]] {
    return fail(outcome, ErrorCode::wrong_type);
  }
  return_value(*live, outcome);
  return keep;
}

/// Whether it compares the record with what the caller has given.
[[nodiscard]] constexpr bool is_comparison(Condition condition) noexcept {
  return condition > Condition::if_present;
}

/// A SET whose condition is no comparison.
struct SetParts {
  Condition condition;
  bool get;
  Bytes value;
  Expiry expiry;
};

template <class Outcome>
[[gnu::always_inline]] inline Decision decide_set(const RecordView* live, const SetParts& set,
                                                  Timestamp now, Outcome& outcome) {
  if (live != nullptr && set.get) {
    if (live->kind != Kind::string) [[unlikely]] {
      return fail(outcome, ErrorCode::wrong_type);
    }
    return_value(*live, outcome);
  }
  if (set.condition == Condition::if_absent && live != nullptr) return keep;
  if (set.condition == Condition::if_present && live == nullptr) return keep;
  return store_or_erase(live, set.value, due_of(set.expiry, live, now), now, outcome);
}

/// A SET whose condition is one.
[[nodiscard]] Decision decide_compared_set(const RecordView* live, const StoreOp& op, Timestamp now,
                                           StoreOutcome& outcome);

inline Decision decide_set(const RecordView* live, const StoreOp& op, Timestamp now,
                           StoreOutcome& outcome) {
  if (is_comparison(op.condition)) return decide_compared_set(live, op, now, outcome);
  return decide_set(live, SetParts{op.condition, op.get, op.value, op.expiry}, now, outcome);
}

template <class Outcome>
Decision decide_del(const RecordView* live, Outcome& outcome) noexcept {
  outcome.applied = live != nullptr;
  return erase(live);
}

}  // namespace semel::engine
