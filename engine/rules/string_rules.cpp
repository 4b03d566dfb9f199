#include "engine/rules/string_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <xxhash.h>

#include "base/checked.hpp"
#include "base/hex.hpp"
#include "engine/rules/numbers.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t digest_digits = 16;

bool sets_due(const Expiry& expiry) noexcept {
  return expiry.mode() == Expiry::Mode::in || expiry.mode() == Expiry::Mode::at;
}

// --- values ---------------------------------------------------------------------------------

std::uint64_t digest_of(Bytes value) noexcept {
  return XXH3_64bits(value.data(), value.size());
}

/// A digest as written by people: 16 hex digits, any case.
std::optional<std::uint64_t> parse_digest(Bytes text) noexcept {
  if (text.size() != digest_digits) return std::nullopt;
  std::uint64_t digest = 0;
  for (const char c : text) {
    const int digit = base::hex_value(c);
    if (digit < 0) return std::nullopt;
    digest = digest << 4 | static_cast<unsigned>(digit);
  }
  return digest;
}

}  // namespace

bool comparison_holds(const RecordView* live, const StoreOp& op, StoreOutcome& outcome) noexcept {
  if (op.condition == Condition::if_version) {
    if (!is_string(live)) outcome.error = ErrorCode::wrong_type;
    return is_string(live) && op.expected == (live != nullptr ? live->version : 0);
  }
  const bool by_digest =
      op.condition == Condition::if_digest_equal || op.condition == Condition::if_digest_not_equal;
  const bool wants_equal =
      op.condition == Condition::if_equal || op.condition == Condition::if_digest_equal;

  std::optional<std::uint64_t> digest;
  if (by_digest) {
    digest = parse_digest(op.operand);
    if (!digest) {
      outcome.error = ErrorCode::bad_digest;
      return false;
    }
  }
  if (!is_string(live)) {
    outcome.error = ErrorCode::wrong_type;
    return false;
  }
  if (live == nullptr) return !wants_equal;
  const bool equal = by_digest ? digest_of(live->value) == *digest : live->value == op.operand;
  return equal == wants_equal;
}

namespace {

// --- reads ----------------------------------------------------------------------------------

Decision decide_strlen(const RecordView* live, StoreOutcome& outcome) noexcept {
  if (!is_string(live)) return fail(outcome, ErrorCode::wrong_type);
  if (live != nullptr) outcome.number = static_cast<std::int64_t>(live->value.size());
  return keep;
}

/// Both ends inclusive; a negative one counts from the end and stops at the first byte. So
/// 0..-100 of "hello" is "h", as in Redis.
Decision decide_getrange(const RecordView* live, const StoreOp& op, StoreOutcome& outcome) {
  if (!is_string(live)) return fail(outcome, ErrorCode::wrong_type);
  outcome.has_value = true;
  if (live == nullptr || live->value.empty()) return keep;
  if (op.amount < 0 && op.end < 0 && op.amount > op.end) return keep;

  const auto size = static_cast<std::int64_t>(live->value.size());
  const std::int64_t start =
      std::max<std::int64_t>(op.amount < 0 ? op.amount + size : op.amount, 0);
  const std::int64_t end =
      std::min(std::max<std::int64_t>(op.end < 0 ? op.end + size : op.end, 0), size - 1);
  if (start > end) return keep;
  outcome.value.assign(live->value.substr(static_cast<std::size_t>(start),
                                          static_cast<std::size_t>(end - start + 1)));
  return keep;
}

Decision decide_digest(const RecordView* live, StoreOutcome& outcome) {
  if (!is_string(live)) return fail(outcome, ErrorCode::wrong_type);
  if (live == nullptr) return keep;
  std::uint64_t digest = digest_of(live->value);
  char text[digest_digits];
  for (std::size_t i = digest_digits; i-- > 0; digest >>= 4)
    text[i] = base::hex_digits[digest & 15];
  outcome.value.assign(text, digest_digits);
  outcome.has_value = true;
  return keep;
}

// --- whole values ---------------------------------------------------------------------------

Decision decide_getdel(const RecordView* live, StoreOutcome& outcome) {
  if (live == nullptr) return keep;
  if (live->kind != Kind::string) return fail(outcome, ErrorCode::wrong_type);
  return_value(*live, outcome);
  outcome.applied = true;
  return erase(live);
}

Decision decide_getex(const RecordView* live, const StoreOp& op, Timestamp now,
                      StoreOutcome& outcome) {
  if (live == nullptr) return keep;
  if (live->kind != Kind::string) return fail(outcome, ErrorCode::wrong_type);
  if (!in_range(op.expiry)) return fail(outcome, ErrorCode::invalid_expire);
  return_value(*live, outcome);
  const Timestamp due = due_of(op.expiry, live, now);
  if (due == live->due) return keep;
  return store_or_erase(live, live->value, due, now, outcome);
}

Decision decide_append(const RecordView* live, const StoreOp& op, std::size_t value_bytes_max,
                       StoreOutcome& outcome, std::string& scratch) {
  if (!is_string(live)) return fail(outcome, ErrorCode::wrong_type);
  const std::size_t before = live != nullptr ? live->value.size() : 0;
  if (op.value.size() > value_bytes_max || before > value_bytes_max - op.value.size()) {
    return fail(outcome, ErrorCode::value_too_long);
  }
  outcome.applied = true;
  outcome.number = static_cast<std::int64_t>(before + op.value.size());
  if (live == nullptr) return store_string(op.value, no_end);
  scratch.assign(live->value).append(op.value);
  return store_string(scratch, live->due);
}

Decision decide_setrange(const RecordView* live, const StoreOp& op, std::size_t value_bytes_max,
                         StoreOutcome& outcome, std::string& scratch) {
  if (op.amount < 0) return fail(outcome, ErrorCode::offset_out_of_range);
  if (!is_string(live)) return fail(outcome, ErrorCode::wrong_type);
  const Bytes before = live != nullptr ? live->value : Bytes{};
  if (op.value.empty()) {  // nothing to write, so nothing is created or padded either
    outcome.number = static_cast<std::int64_t>(before.size());
    return keep;
  }
  const auto offset = static_cast<std::size_t>(op.amount);
  if (op.value.size() > value_bytes_max || offset > value_bytes_max - op.value.size()) {
    return fail(outcome, ErrorCode::value_too_long);
  }
  scratch.assign(before);
  scratch.resize(std::max(before.size(), offset + op.value.size()), '\0');
  scratch.replace(offset, op.value.size(), op.value);
  outcome.applied = true;
  outcome.number = static_cast<std::int64_t>(scratch.size());
  return store_string(scratch, live != nullptr ? live->due : no_end);
}

// --- counters -------------------------------------------------------------------------------

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

// --- keys -----------------------------------------------------------------------------------

/// Stores `live` as it is, of any kind, to end at `due`.
Decision retime(const RecordView& live, Timestamp due) noexcept {
  return {.action = Action::store, .kind = live.kind, .due = due, .value = live.value};
}

Decision decide_del(const RecordView* live, StoreOutcome& outcome) noexcept {
  outcome.applied = live != nullptr;
  return erase(live);
}

/// Without a condition like del, on any kind; an absent record is never an error of kind, but a
/// digest that is none always is one.
Decision decide_delex(const RecordView* live, const StoreOp& op, StoreOutcome& outcome) noexcept {
  switch (op.condition) {
    case Condition::always:
    case Condition::if_present:
      return decide_del(live, outcome);
    case Condition::if_absent:
      return fail(outcome, ErrorCode::syntax);
    case Condition::if_equal:
    case Condition::if_not_equal:
    case Condition::if_digest_equal:
    case Condition::if_digest_not_equal:
    case Condition::if_version:
      break;
  }
  if (!comparison_holds(live, op, outcome)) return keep;
  return decide_del(live, outcome);
}

/// True if EXPIRE's rule lets `due` replace the record's. A record without ttl never ends, so
/// nothing is later than its end and everything is earlier.
bool rule_allows(const ExpireRule& rule, Timestamp before, Timestamp due) noexcept {
  const bool has_ttl = before != no_end;
  if (rule.only_without_ttl && has_ttl) return false;
  if (rule.only_with_ttl && !has_ttl) return false;
  if (rule.only_later && (!has_ttl || due <= before)) return false;
  if (rule.only_earlier && has_ttl && due >= before) return false;
  return true;
}

Decision decide_expire(const RecordView* live, const StoreOp& op, Timestamp now,
                       StoreOutcome& outcome) noexcept {
  const ExpireRule& rule = op.rule;
  const bool nx_with_others =
      rule.only_without_ttl && (rule.only_with_ttl || rule.only_later || rule.only_earlier);
  if (nx_with_others || (rule.only_later && rule.only_earlier) || !sets_due(op.expiry)) {
    return fail(outcome, ErrorCode::syntax);
  }
  if (live == nullptr) return keep;
  const Timestamp due = due_of(op.expiry, live, now);
  if (!rule_allows(rule, live->due, due)) return keep;
  outcome.applied = true;
  return due > now ? retime(*live, due) : erase(live);
}

Decision decide_persist(const RecordView* live, StoreOutcome& outcome) noexcept {
  if (live == nullptr || live->due == no_end) return keep;
  outcome.applied = true;
  return retime(*live, no_end);
}

}  // namespace

ErrorCode explain(const StoreOp& op, std::size_t key_bytes_max,
                  std::size_t value_bytes_max) noexcept {
  if (op.db >= limits::db_count) return ErrorCode::db_out_of_range;
  if (op.key.empty()) return ErrorCode::key_empty;
  if (op.key.size() > key_bytes_max) return ErrorCode::key_too_long;
  if (op.value.size() > value_bytes_max) return ErrorCode::value_too_long;
  if (op.verb != Verb::getex && !in_range(op.expiry)) return ErrorCode::invalid_expire;
  return ErrorCode::ok;
}

Decision decide_other(const RecordView* live, const StoreOp& op, Timestamp now,
                      std::size_t value_bytes_max, StoreOutcome& outcome, std::string& scratch) {
  switch (op.verb) {
    case Verb::get:
      return decide_get(live, outcome);
    case Verb::set:
      return decide_set(live, op, now, outcome);
    case Verb::del:
      return decide_del(live, outcome);
    case Verb::exists:
    case Verb::type:
      return keep;
    case Verb::strlen:
      return decide_strlen(live, outcome);
    case Verb::getrange:
      return decide_getrange(live, op, outcome);
    case Verb::digest:
      return decide_digest(live, outcome);
    case Verb::expire_time:
      if (live != nullptr) outcome.due = live->due;
      return keep;
    case Verb::getdel:
      return decide_getdel(live, outcome);
    case Verb::getex:
      return decide_getex(live, op, now, outcome);
    case Verb::append:
      return decide_append(live, op, value_bytes_max, outcome, scratch);
    case Verb::setrange:
      return decide_setrange(live, op, value_bytes_max, outcome, scratch);
    case Verb::incr_by:
    case Verb::decr_by:
      return decide_incr_by(live, op, value_bytes_max, outcome, scratch);
    case Verb::incr_by_float:
      return decide_incr_by_float(live, op, value_bytes_max, outcome, scratch);
    case Verb::increx:
      return decide_increx(live, op, now, value_bytes_max, outcome, scratch);
    case Verb::delex:
      return decide_delex(live, op, outcome);
    case Verb::expire:
      return decide_expire(live, op, now, outcome);
    case Verb::persist:
      return decide_persist(live, outcome);
  }
  return keep;
}

}  // namespace semel::engine
