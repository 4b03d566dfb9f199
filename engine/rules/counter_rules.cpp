#include "engine/rules/counter_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/checked.hpp"
#include "engine/rules/numbers.hpp"
#include "engine/rules/string_rules_inline.hpp"

namespace semel::engine {

namespace {

/// The number in a record, 0 if there is none. Errors: wrong_type, not_an_integer.
bool read_integer(const RecordView* live, std::int64_t& value, StoreOutcome& outcome) noexcept {
  value = 0;
  if (live == nullptr) return true;
  if (live->kind != Kind::string) {
    outcome.error = ErrorCode::wrong_type;
  } else if (!parse_integer(live->value, value)) {
    outcome.error = ErrorCode::not_an_integer;
  }
  return outcome.error == ErrorCode::ok;
}

/// The same for floats. Errors: wrong_type, not_a_float.
bool read_float(const RecordView* live, long double& value, StoreOutcome& outcome) noexcept {
  value = 0;
  if (live == nullptr) return true;
  if (live->kind != Kind::string) {
    outcome.error = ErrorCode::wrong_type;
  } else if (!parse_float(live->value, value)) {
    outcome.error = ErrorCode::not_a_float;
  }
  return outcome.error == ErrorCode::ok;
}

}  // namespace

Decision decide_incr_by(const RecordView* live, const StoreOp& op, std::size_t value_bytes_max,
                        StoreOutcome& outcome, std::string& scratch) {
  std::int64_t amount = op.amount;
  if (op.verb == Verb::decr_by) {
    if (amount == std::numeric_limits<std::int64_t>::min()) {
      return fail(outcome, ErrorCode::decrement_overflow);
    }
    amount = -amount;
  }
  std::int64_t current = 0;
  if (!read_integer(live, current, outcome)) return keep;
  const auto next = base::checked_add(current, amount);
  if (!next) return fail(outcome, ErrorCode::increment_overflow);
  format_integer(*next, scratch);
  if (scratch.size() > value_bytes_max) return fail(outcome, ErrorCode::value_too_long);
  outcome.number = *next;
  outcome.applied = true;
  return store_string(scratch, live != nullptr ? live->due : no_end);
}

Decision decide_incr_by_float(const RecordView* live, const StoreOp& op,
                              std::size_t value_bytes_max, StoreOutcome& outcome,
                              std::string& scratch) {
  if (op.arithmetic == nullptr) return fail(outcome, ErrorCode::syntax);
  long double current = 0;
  if (!read_float(live, current, outcome)) return keep;
  const long double next = current + op.arithmetic->by_float;
  if (!std::isfinite(next)) return fail(outcome, ErrorCode::nan_or_infinity);
  scratch.clear();
  append_float(next, scratch);
  if (scratch.size() > value_bytes_max) return fail(outcome, ErrorCode::value_too_long);
  outcome.value.assign(scratch);
  outcome.has_value = true;
  outcome.applied = true;
  return store_string(scratch, live != nullptr ? live->due : no_end);
}

namespace {

/// When the counter ends after an increx that was applied.
Timestamp increx_due(const RecordView* live, const StoreOp& op, Timestamp now) noexcept {
  const bool has_ttl = live != nullptr && live->due != no_end;
  if (op.arithmetic->expiry_only_without_ttl && has_ttl) return live->due;
  return due_of(op.expiry, live, now);
}

/// An increment that leaves the bounds is refused (record and ttl stay), or with `saturate` brings
/// the counter to the bound it would have passed. No bound given: those of 64 bits.
Decision decide_increx_integer(const RecordView* live, const StoreOp& op, Timestamp now,
                               std::size_t value_bytes_max, StoreOutcome& outcome,
                               std::string& scratch) {
  using Limits = std::numeric_limits<std::int64_t>;
  const Arithmetic& arithmetic = *op.arithmetic;
  const std::int64_t lower = arithmetic.has_lower ? arithmetic.lower : Limits::min();
  const std::int64_t upper = arithmetic.has_upper ? arithmetic.upper : Limits::max();
  if (lower > upper) return fail(outcome, ErrorCode::bad_option);

  std::int64_t current = 0;
  if (!read_integer(live, current, outcome)) return keep;
  const auto sum = base::checked_add(current, op.amount);
  std::int64_t next = sum.value_or(0);
  std::optional<std::int64_t> applied = op.amount;
  if (!sum || next < lower || next > upper) {
    if (!arithmetic.saturate) {
      outcome.number = current;
      return keep;
    }
    const bool upwards = sum ? next > upper : op.amount > 0;
    next = upwards ? upper : lower;
    applied = base::checked_sub(next, current);
    if (!applied) return fail(outcome, ErrorCode::increment_overflow);
  }
  format_integer(next, scratch);
  if (scratch.size() > value_bytes_max) return fail(outcome, ErrorCode::value_too_long);
  outcome.number = next;
  outcome.second = *applied;
  return store_or_erase(live, scratch, increx_due(live, op, now), now, outcome);
}

void return_pair(long double value, long double applied, StoreOutcome& outcome) {
  outcome.value.clear();
  append_float(value, outcome.value);
  outcome.value.push_back(' ');
  append_float(applied, outcome.value);
  outcome.has_value = true;
}

Decision decide_increx_float(const RecordView* live, const StoreOp& op, Timestamp now,
                             std::size_t value_bytes_max, StoreOutcome& outcome,
                             std::string& scratch) {
  using Limits = std::numeric_limits<long double>;
  const Arithmetic& arithmetic = *op.arithmetic;
  const long double lower =
      arithmetic.has_lower ? std::max(arithmetic.lower_float, Limits::lowest()) : Limits::lowest();
  const long double upper =
      arithmetic.has_upper ? std::min(arithmetic.upper_float, Limits::max()) : Limits::max();
  if (!(lower <= upper)) return fail(outcome, ErrorCode::bad_option);  // a NaN bound, too

  long double current = 0;
  if (!read_float(live, current, outcome)) return keep;
  if (!std::isfinite(arithmetic.by_float) || !std::isfinite(current)) {
    return fail(outcome, ErrorCode::nan_or_infinity);
  }
  long double next = current + arithmetic.by_float;
  long double applied = arithmetic.by_float;
  if (!(next >= lower && next <= upper) || !std::isfinite(next)) {
    if (!arithmetic.saturate) {
      return_pair(current, 0, outcome);
      return keep;
    }
    next = next > upper ? upper : lower;
    applied = next - current;
    if (!std::isfinite(next) || !std::isfinite(applied)) {
      return fail(outcome, ErrorCode::nan_or_infinity);
    }
  }
  scratch.clear();
  append_float(next, scratch);
  if (scratch.size() > value_bytes_max) return fail(outcome, ErrorCode::value_too_long);
  return_pair(next, applied, outcome);
  return store_or_erase(live, scratch, increx_due(live, op, now), now, outcome);
}

}  // namespace

Decision decide_increx(const RecordView* live, const StoreOp& op, Timestamp now,
                       std::size_t value_bytes_max, StoreOutcome& outcome, std::string& scratch) {
  if (op.arithmetic == nullptr) return fail(outcome, ErrorCode::syntax);
  if (op.arithmetic->expiry_only_without_ttl && !sets_due(op.expiry)) {
    return fail(outcome, ErrorCode::syntax);
  }
  return op.arithmetic->use_float
             ? decide_increx_float(live, op, now, value_bytes_max, outcome, scratch)
             : decide_increx_integer(live, op, now, value_bytes_max, outcome, scratch);
}

}  // namespace semel::engine
