#include "engine/rules/string_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include <xxhash.h>

#include "base/checked.hpp"
#include "base/hex.hpp"
#include "engine/rules/counter_rules.hpp"

namespace semel::engine {

namespace {

constexpr std::size_t digest_digits = 16;

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

/// The IF* family against a record of strings or none. Errors: bad_digest, before the record is
/// looked at, so that a wrong operand never passes by luck; wrong_type.
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
  Decision decision = store_or_erase(live, live->value, due, now, outcome);
  decision.raw = live->raw;
  return decision;
}

/// As Redis, which leaves a value that it changed in place without an encoding.
Decision raw(Decision decision) noexcept {
  decision.raw = true;
  return decision;
}

Decision decide_append(const RecordView* live, const StoreOp& op, std::size_t value_bytes_max,
                       StoreOutcome& outcome, std::string& scratch) {
  if (!is_string(live)) return fail(outcome, ErrorCode::wrong_type);
  const std::size_t before = live != nullptr ? live->value.size() : 0;
  if (op.value.size() > value_bytes_max || before > value_bytes_max - op.value.size()) {
    outcome.number = static_cast<std::int64_t>(before + op.value.size());
    outcome.second = static_cast<std::int64_t>(value_bytes_max);
    return fail(outcome, ErrorCode::value_too_long);
  }
  outcome.applied = true;
  outcome.number = static_cast<std::int64_t>(before + op.value.size());
  if (live == nullptr) return store_string(op.value, no_end);
  scratch.assign(live->value).append(op.value);
  return raw(store_string(scratch, live->due));
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
    outcome.number = base::checked_add(op.amount, static_cast<std::int64_t>(op.value.size()))
                         .value_or(std::numeric_limits<std::int64_t>::max());
    outcome.second = static_cast<std::int64_t>(value_bytes_max);
    return fail(outcome, ErrorCode::value_too_long);
  }
  scratch.assign(before);
  scratch.resize(std::max(before.size(), offset + op.value.size()), '\0');
  scratch.replace(offset, op.value.size(), op.value);
  outcome.applied = true;
  outcome.number = static_cast<std::int64_t>(scratch.size());
  return raw(store_string(scratch, live != nullptr ? live->due : no_end));
}

// --- keys -----------------------------------------------------------------------------------

/// Stores `live` as it is, of any kind, with a key that ends at `due`.
Decision retime(const RecordView& live, Timestamp due, std::string& scratch) {
  const Timestamp before = key_end_of(live);
  Decision decision{.action = Action::store,
                    .kind = live.kind,
                    .due = due,
                    .value = live.value,
                    .gives_up = due < before,
                    .raw = live.raw};
  if (live.kind == Kind::hash && with_key_end(live.value, due, scratch)) {
    decision.value = scratch;
    decision.due = ends_of_hash(scratch)->due();
  }
  return decision;
}

/// When the next field of a hash ends; 0: none does.
std::int64_t next_end_of(const RecordView& live, Timestamp now) {
  const std::optional<HashEnds> ends = ends_of_hash(live.value);
  if (!ends) return 0;
  Timestamp next = ends->first;
  if (next <= now) {
    next = no_end;
    if (const LargeHashRules* const large = large_hash_rules(live.value)) {
      next = large->next_end(live.value, now);
    }
    HashView{live.value}.each([&](const HashView::Found& pair) {
      if (pair.due > now) next = std::min(next, pair.due);
    });
  }
  return next == no_end ? 0 : next.time_since_epoch().count();
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

Decision decide_expire(const RecordView* live, const StoreOp& op, Timestamp now,
                       StoreOutcome& outcome, std::string& scratch) {
  const ExpireRule& rule = op.rule;
  const bool nx_with_others =
      rule.only_without_ttl && (rule.only_with_ttl || rule.only_later || rule.only_earlier);
  if (nx_with_others || (rule.only_later && rule.only_earlier) || !sets_due(op.expiry)) {
    return fail(outcome, ErrorCode::syntax);
  }
  if (live == nullptr) return keep;
  const Timestamp due = due_of(op.expiry, live, now);
  if (!rule_allows(rule, key_end_of(*live), due)) return keep;
  outcome.applied = true;
  return due > now ? retime(*live, due, scratch) : erase(live);
}

Decision decide_persist(const RecordView* live, StoreOutcome& outcome, std::string& scratch) {
  if (live == nullptr || key_end_of(*live) == no_end) return keep;
  outcome.applied = true;
  return retime(*live, no_end, scratch);
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

Decision decide_compared_set(const RecordView* live, const StoreOp& op, Timestamp now,
                             StoreOutcome& outcome) {
  if (live != nullptr && op.get && live->kind != Kind::string) {
    return fail(outcome, ErrorCode::wrong_type);
  }
  const bool holds = comparison_holds(live, op, outcome);
  if (outcome.error != ErrorCode::ok) return keep;
  if (live != nullptr && op.get) return_value(*live, outcome);
  return holds ? store_or_erase(live, op.value, due_of(op.expiry, live, now), now, outcome) : keep;
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
      if (live != nullptr && live->kind == Kind::hash) outcome.second = next_end_of(*live, now);
      return keep;
    case Verb::type:
      return keep;
    case Verb::strlen:
      return decide_strlen(live, outcome);
    case Verb::getrange:
      return decide_getrange(live, op, outcome);
    case Verb::digest:
      return decide_digest(live, outcome);
    case Verb::expire_time:
      if (live != nullptr) outcome.due = key_end_of(*live);
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
      return decide_expire(live, op, now, outcome, scratch);
    case Verb::persist:
      return decide_persist(live, outcome, scratch);
  }
  return keep;
}

}  // namespace semel::engine
