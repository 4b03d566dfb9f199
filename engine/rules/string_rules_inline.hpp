// What the store's truth table is made of, and its two rows that are asked most, GET and SET. They
// are inline: most of what they find then stays in registers, and the next operation can begin its
// cache misses while this one waits for its own (docs/decisions/0003-table-layout.md).
#pragma once

#include "engine/rules/hash_value.hpp"
#include "engine/rules/record.hpp"
#include "semel/limits.hpp"
#include "semel/op.hpp"

namespace semel::engine {

inline constexpr Decision keep{};

inline Decision fail(StoreOutcome& outcome, ErrorCode code) noexcept {
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
inline Decision store_or_erase(const RecordView* live, Bytes value, Timestamp due, Timestamp now,
                               StoreOutcome& outcome) noexcept {
  outcome.applied = true;
  return due > now ? store_string(value, due) : erase(live);
}

[[nodiscard]] inline bool is_string(const RecordView* live) noexcept {
  return live == nullptr || live->kind == Kind::string;
}

/// The outcome's value is empty before.
inline void return_value(const RecordView& live, StoreOutcome& outcome) {
  outcome.value.append(live.value);  // cheaper than assign, which minds what overlaps
  outcome.has_value = true;
}

/// The IF* family against a record of strings or none. Errors: bad_digest, before the record is
/// looked at, so that a wrong operand never passes by luck; wrong_type.
[[nodiscard]] bool comparison_holds(const RecordView* live, const StoreOp& op,
                                    StoreOutcome& outcome) noexcept;

inline Decision decide_get(const RecordView* live, StoreOutcome& outcome) {
  if (live == nullptr) return keep;
  if (live->kind != Kind::string) [[unlikely]] {
    return fail(outcome, ErrorCode::wrong_type);
  }
  return_value(*live, outcome);
  return keep;
}

inline Decision decide_set(const RecordView* live, const StoreOp& op, Timestamp now,
                           StoreOutcome& outcome) {
  if (live != nullptr && op.get) {
    if (live->kind != Kind::string) [[unlikely]] {
      return fail(outcome, ErrorCode::wrong_type);
    }
    return_value(*live, outcome);
  }
  if (op.condition == Condition::if_absent) {
    if (live != nullptr) return keep;
  } else if (op.condition == Condition::if_present) {
    if (live == nullptr) return keep;
  } else if (op.condition != Condition::always && !comparison_holds(live, op, outcome)) {
    if (outcome.error != ErrorCode::ok) {
      outcome.has_value = false;
      outcome.value.clear();
    }
    return keep;
  }
  return store_or_erase(live, op.value, due_of(op.expiry, live, now), now, outcome);
}

}  // namespace semel::engine
