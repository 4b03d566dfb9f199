#include "tests/proofs/model/oracle.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace semel::proofs {
namespace {

/// What the store must answer, before it is compared.
struct Expected {
  ErrorCode error = ErrorCode::ok;
  bool found = false;
  bool applied = false;
  bool applied_is_free = false;  ///< nothing changes either way: both answers are right
  bool value_is_meant = false;
  bool has_value = false;
  std::string value;
  std::optional<std::int64_t> number;
  std::optional<std::int64_t> second;
  std::optional<Ms> due;

  enum class Next : std::uint8_t { same, stored, erased } next = Next::same;
  std::string next_value;
  Ms next_due = never;
};

struct View {
  const KeyState& state;
  const StoreOp& op;
  const Moment& moment;
  bool found;

  [[nodiscard]] bool is_string() const { return !found || state.kind == Kind::string; }
  [[nodiscard]] std::string text() const { return found ? state.value : std::string{}; }
  [[nodiscard]] Ms due() const { return found ? state.due : never; }
};

Expected refused(ErrorCode error) {
  Expected expected;
  expected.error = error;
  return expected;
}

/// A new due of `expiry`, or none if the operand is not valid.
std::optional<Ms> new_due(const Expiry& expiry, Ms now, Ms old_due) {
  switch (expiry.mode()) {
    case Expiry::Mode::clear:
      return never;
    case Expiry::Mode::keep:
      return old_due;
    case Expiry::Mode::in:
      if (expiry.ttl().count() < 1 || expiry.ttl() > limits::ttl_max) return std::nullopt;
      return now + expiry.ttl().count();
    case Expiry::Mode::at:
      return to_ms(expiry.when());
  }
  return std::nullopt;
}

/// The record becomes `value` until `due`; a due that has passed leaves nothing behind.
void become(Expected& expected, std::string value, Ms due, Ms now) {
  expected.applied = true;
  expected.next = due <= now ? Expected::Next::erased : Expected::Next::stored;
  expected.next_value = std::move(value);
  expected.next_due = due;
}

bool is_hex_digest(Bytes text) {
  return text.size() == 16 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

bool looks_at_value(Condition condition) {
  return condition != Condition::always && condition != Condition::if_absent &&
         condition != Condition::if_present;
}

ErrorCode condition_error(const View& view) {
  if (!looks_at_value(view.op.condition)) return ErrorCode::ok;
  const bool wants_digest = view.op.condition == Condition::if_digest_equal ||
                            view.op.condition == Condition::if_digest_not_equal;
  if (wants_digest && !is_hex_digest(view.op.operand)) return ErrorCode::bad_digest;
  if (!view.is_string()) return ErrorCode::wrong_type;
  return ErrorCode::ok;
}

Expected expect_set(const View& view) {
  const StoreOp& op = view.op;
  if (op.get && !view.is_string()) return refused(ErrorCode::wrong_type);
  if (const ErrorCode error = condition_error(view); error != ErrorCode::ok) return refused(error);
  const std::optional<Ms> due = new_due(op.expiry, view.moment.now, view.due());
  Expected expected;
  expected.value_is_meant = op.get;
  expected.has_value = op.get && view.found;
  if (expected.has_value) expected.value = view.text();
  if (condition_holds(view.state, op, view.moment.now)) {
    become(expected, std::string{op.value}, *due, view.moment.now);
  }
  return expected;
}

Expected expect_getex(const View& view) {
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  const std::optional<Ms> due = new_due(view.op.expiry, view.moment.now, view.due());
  if (view.found && !due) return refused(ErrorCode::invalid_expire);
  Expected expected;
  expected.value_is_meant = true;
  expected.has_value = view.found;
  expected.value = view.text();
  if (!view.found || view.op.expiry.mode() == Expiry::Mode::keep) return expected;
  if (*due == view.due()) {
    expected.applied_is_free = true;
    return expected;
  }
  become(expected, view.text(), *due, view.moment.now);
  return expected;
}

Expected expect_getrange(const View& view) {
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  Expected expected;
  const std::string text = view.text();
  const auto size = static_cast<std::int64_t>(text.size());
  std::int64_t start = view.op.amount;
  std::int64_t end = view.op.end;
  const bool empty_by_sign = start < 0 && end < 0 && start > end;
  if (start < 0) start = std::max<std::int64_t>(start + size, 0);
  if (end < 0) end = std::max<std::int64_t>(end + size, 0);
  end = std::min(end, size - 1);
  expected.value_is_meant = false;
  if (!empty_by_sign && start <= end && size > 0) {
    expected.value =
        text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start + 1));
  }
  return expected;
}

Expected expect_append(const View& view) {
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  std::string text = view.text();
  text.append(view.op.value);
  if (text.size() > view.moment.value_bytes_max) return refused(ErrorCode::value_too_long);
  Expected expected;
  expected.number = static_cast<std::int64_t>(text.size());
  if (view.found && view.op.value.empty()) {
    expected.applied_is_free = true;
    return expected;
  }
  become(expected, std::move(text), view.due(), view.moment.now);
  return expected;
}

Expected expect_setrange(const View& view) {
  if (view.op.amount < 0) return refused(ErrorCode::offset_out_of_range);
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  std::string text = view.text();
  Expected expected;
  expected.number = static_cast<std::int64_t>(text.size());
  if (view.op.value.empty()) return expected;
  const auto offset = static_cast<std::size_t>(view.op.amount);
  if (offset > view.moment.value_bytes_max ||
      offset + view.op.value.size() > view.moment.value_bytes_max) {
    return refused(ErrorCode::value_too_long);
  }
  text.resize(std::max(text.size(), offset + view.op.value.size()), '\0');
  text.replace(offset, view.op.value.size(), view.op.value);
  expected.number = static_cast<std::int64_t>(text.size());
  become(expected, std::move(text), view.due(), view.moment.now);
  return expected;
}

/// An integer exactly as Redis prints it: no plus, no leading zeros, no spaces.
std::optional<std::int64_t> parse_integer(Bytes text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (std::to_string(value) != text) return std::nullopt;
  return value;
}

Expected expect_integer_step(const View& view) {
  const bool decrement = view.op.verb == Verb::decr_by;
  if (decrement && view.op.amount == std::numeric_limits<std::int64_t>::min()) {
    return refused(ErrorCode::decrement_overflow);
  }
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  const std::optional<std::int64_t> old = view.found ? parse_integer(view.state.value) : 0;
  if (!old) return refused(ErrorCode::not_an_integer);
  const std::int64_t by = decrement ? -view.op.amount : view.op.amount;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(*old, by, &sum)) return refused(ErrorCode::increment_overflow);
  Expected expected;
  expected.number = sum;
  become(expected, std::to_string(sum), view.due(), view.moment.now);
  return expected;
}

std::optional<long double> parse_float(const std::string& text) {
  constexpr std::size_t redis_float_bytes_max = 5 * 1024;
  const Bytes spaces{" \t\n\v\f\r"};
  if (text.empty() || text.size() >= redis_float_bytes_max) return std::nullopt;
  if (spaces.find(text.front()) != Bytes::npos || text.find('\0') != std::string::npos) {
    return std::nullopt;
  }
  char* end = nullptr;
  errno = 0;
  const long double value = std::strtold(text.c_str(), &end);
  if (*end != '\0' || std::isnan(value)) return std::nullopt;
  if (errno == ERANGE && (std::isinf(value) || value == 0)) return std::nullopt;
  return value;
}

std::string float_text(long double value) {
  char buffer[6000];
  const int length = std::snprintf(buffer, sizeof buffer, "%.17Lf", value);
  std::string text(buffer, static_cast<std::size_t>(length));
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

Expected expect_float_step(const View& view) {
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  const std::optional<long double> old = view.found ? parse_float(view.state.value) : 0.0L;
  if (!old) return refused(ErrorCode::not_a_float);
  const long double sum = *old + view.op.arithmetic->by_float;
  if (std::isnan(sum) || std::isinf(sum)) return refused(ErrorCode::nan_or_infinity);
  Expected expected;
  expected.value_is_meant = true;
  expected.has_value = true;
  expected.value = float_text(sum);
  become(expected, expected.value, view.due(), view.moment.now);
  return expected;
}

Expected expect_increx(const View& view) {
  const Arithmetic& arithmetic = *view.op.arithmetic;
  if (!view.is_string()) return refused(ErrorCode::wrong_type);
  const std::optional<std::int64_t> old = view.found ? parse_integer(view.state.value) : 0;
  if (!old) return refused(ErrorCode::not_an_integer);
  using Limits = std::numeric_limits<std::int64_t>;
  // A long double holds every sum of two 64-bit integers exactly.
  const auto wide = [](std::int64_t value) { return static_cast<long double>(value); };
  const long double lower = wide(arithmetic.has_lower ? arithmetic.lower : Limits::min());
  const long double upper = wide(arithmetic.has_upper ? arithmetic.upper : Limits::max());
  const long double wanted = wide(*old) + wide(view.op.amount);
  const bool outside = wanted < lower || wanted > upper;
  Expected expected;
  if (outside && !arithmetic.saturate) {
    expected.number = *old;
    expected.second = 0;
    return expected;
  }
  const auto fresh = static_cast<std::int64_t>(std::clamp(wanted, lower, upper));
  std::int64_t added = 0;
  if (__builtin_sub_overflow(fresh, *old, &added)) return refused(ErrorCode::increment_overflow);
  expected.number = fresh;
  expected.second = added;
  Ms due = view.due();
  if (!arithmetic.expiry_only_without_ttl || due == never) {
    const std::optional<Ms> asked = new_due(view.op.expiry, view.moment.now, due);
    due = *asked;
  }
  become(expected, std::to_string(fresh), due, view.moment.now);
  return expected;
}

Expected expect_delex(const View& view) {
  if (const ErrorCode error = condition_error(view); error != ErrorCode::ok) return refused(error);
  Expected expected;
  if (view.found && condition_holds(view.state, view.op, view.moment.now)) {
    expected.applied = true;
    expected.next = Expected::Next::erased;
  }
  return expected;
}

Expected expect_expire(const View& view) {
  const ExpireRule& asked_rule = view.op.rule;
  if (asked_rule.only_later && asked_rule.only_earlier) return refused(ErrorCode::syntax);
  if (asked_rule.only_without_ttl &&
      (asked_rule.only_with_ttl || asked_rule.only_later || asked_rule.only_earlier)) {
    return refused(ErrorCode::syntax);
  }
  Expected expected;
  if (!view.found) return expected;
  const std::optional<Ms> asked = new_due(view.op.expiry, view.moment.now, view.due());
  const ExpireRule& rule = asked_rule;
  const Ms old = view.due();
  if (rule.only_without_ttl && old != never) return expected;
  if (rule.only_with_ttl && old == never) return expected;
  if (rule.only_later && (old == never || *asked <= old)) return expected;
  if (rule.only_earlier && *asked >= old) return expected;
  become(expected, view.state.value, *asked, view.moment.now);
  return expected;
}

Expected expect_read(const View& view) {
  Expected expected;
  switch (view.op.verb) {
    case Verb::exists:
    case Verb::type:
      return expected;
    case Verb::expire_time:
      expected.due = view.due();
      return expected;
    case Verb::strlen:
      if (!view.is_string()) return refused(ErrorCode::wrong_type);
      expected.number = static_cast<std::int64_t>(view.text().size());
      return expected;
    default:
      if (!view.is_string()) return refused(ErrorCode::wrong_type);
      expected.value_is_meant = true;
      expected.has_value = view.found;
      if (view.found) {
        expected.value = view.op.verb == Verb::digest ? digest_text(view.state.value) : view.text();
      }
      return expected;
  }
}

Expected expect_getdel(const View& view) {
  Expected expected = expect_read(view);
  if (expected.error == ErrorCode::ok && view.found) {
    expected.applied = true;
    expected.next = Expected::Next::erased;
  }
  return expected;
}

Expected expect_persist(const View& view) {
  Expected expected;
  if (view.found && view.due() != never) {
    become(expected, view.state.value, never, view.moment.now);
  }
  return expected;
}

/// What Redis refuses while it reads the command, before it looks at the key.
ErrorCode argument_error(const View& view) {
  if (view.op.value.size() > view.moment.value_bytes_max) return ErrorCode::value_too_long;
  const bool reads_key_first = view.op.verb == Verb::getex;
  if (!reads_key_first && !new_due(view.op.expiry, view.moment.now, never)) {
    return ErrorCode::invalid_expire;
  }
  return ErrorCode::ok;
}

Expected expect_by_verb(const View& view) {
  switch (view.op.verb) {
    case Verb::set:
      return expect_set(view);
    case Verb::getdel:
      return expect_getdel(view);
    case Verb::getex:
      return expect_getex(view);
    case Verb::getrange:
      return expect_getrange(view);
    case Verb::append:
      return expect_append(view);
    case Verb::setrange:
      return expect_setrange(view);
    case Verb::incr_by:
    case Verb::decr_by:
      return expect_integer_step(view);
    case Verb::incr_by_float:
      return expect_float_step(view);
    case Verb::increx:
      return expect_increx(view);
    case Verb::del:
    case Verb::delex:
      return expect_delex(view);
    case Verb::expire:
      return expect_expire(view);
    case Verb::persist:
      return expect_persist(view);
    default:
      return expect_read(view);
  }
}

Expected expect(const View& view) {
  if (const ErrorCode error = argument_error(view); error != ErrorCode::ok) return refused(error);
  const Expected expected = expect_by_verb(view);
  const Verb verb = view.op.verb;
  const bool changes = verb == Verb::expire || verb == Verb::persist ||
                       (verb == Verb::set && view.op.condition != Condition::if_absent);
  const bool is_claim = view.found && view.state.kind == Kind::claim;
  if (is_claim && changes && expected.error == ErrorCode::ok) return refused(ErrorCode::wrong_type);
  return expected;
}

Complaint compare(const Expected& expected, const View& view, const StoreOutcome& seen) {
  if (seen.error != expected.error) return "error";
  if (expected.error != ErrorCode::ok) return nullptr;
  if (seen.found != view.found) return "found";
  if (view.found && seen.kind != view.state.kind) return "kind";
  if (!expected.applied_is_free && seen.applied != expected.applied) return "applied";
  if (expected.value_is_meant && seen.has_value != expected.has_value) return "has_value";
  if (expected.value_is_meant && expected.has_value && seen.value != expected.value) return "value";
  if (view.op.verb == Verb::getrange && seen.value != expected.value) return "value of a range";
  if (expected.number && seen.number != *expected.number) return "number";
  if (expected.second && seen.second != *expected.second) return "second number";
  if (expected.due && view.found && to_ms(seen.due) != *expected.due) return "due";
  return nullptr;
}

}  // namespace

std::string digest_text(Bytes value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(value.data(), value.size())));
  return text;
}

bool alive(const KeyState& state, Ms now) noexcept {
  return state.present && now < state.due;
}

bool answers(const KeyState& state, Ms now) noexcept {
  const bool is_vacant = state.kind == Kind::claim && state.claim.state == ClaimState::vacant;
  return alive(state, now) && !is_vacant;
}

void remove(KeyState& state) {
  const Version floor = state.floor;
  state = KeyState{};
  state.floor = floor;
}

void put_string(KeyState& state, std::string value, Ms due) {
  remove(state);
  state.present = true;
  state.value = std::move(value);
  state.due = due;
}

bool condition_holds(const KeyState& state, const StoreOp& op, Ms now) {
  const Bytes operand = op.operand;
  const bool found = answers(state, now);
  const auto digest_is_operand = [&] {
    const std::string digest = digest_text(state.value);
    return std::equal(digest.begin(), digest.end(), operand.begin(), operand.end(),
                      [](char mine, char asked) {
                        return mine == (asked >= 'A' && asked <= 'F' ? asked + 32 : asked);
                      });
  };
  switch (op.condition) {
    case Condition::always:
      return true;
    case Condition::if_version:
      return op.expected == (found ? state.version : 0);
    case Condition::if_absent:
      return !found;
    case Condition::if_present:
      return found;
    case Condition::if_equal:
      return found && state.value == operand;
    case Condition::if_not_equal:
      return !found || state.value != operand;
    case Condition::if_digest_equal:
      return found && digest_is_operand();
    case Condition::if_digest_not_equal:
      return !found || !digest_is_operand();
  }
  return false;
}

Complaint step(KeyState& state, const StoreOp& op, const StoreOutcome& seen, const Moment& moment) {
  if (state.present && !alive(state, moment.now)) remove(state);
  const View view{state, op, moment, answers(state, moment.now)};
  const Expected expected = expect(view);
  if (Complaint complaint = compare(expected, view, seen)) return complaint;
  if (expected.error != ErrorCode::ok) return nullptr;

  const bool stored = expected.next == Expected::Next::stored ||
                      (expected.applied_is_free && seen.applied && seen.version != state.version);
  if (stored) {
    if (seen.version <= state.floor) return "version of a write does not grow";
    if (expected.next == Expected::Next::stored) {
      state.kind = Kind::string;
      state.claim = ClaimFacts{};
      state.value = expected.next_value;
      state.due = expected.next_due;
    }
    state.present = true;
    state.version = state.floor = seen.version;
    return nullptr;
  }
  if (expected.next == Expected::Next::erased) {
    if (!view.found) return nullptr;  // written with an end that has passed, over nothing
    if (seen.version != 0 && seen.version != state.version) {
      if (seen.version <= state.floor) return "version of an erase does not grow";
      state.floor = seen.version;
    }
    remove(state);
    return nullptr;
  }
  if (!view.found) return nullptr;
  pass_time(state, moment.now);
  return take_own_version(state, seen.version);
}

std::size_t hash_of(const KeyState& state) noexcept {
  std::size_t hash = std::hash<std::string>{}(state.value);
  const auto mix = [&hash](std::uint64_t part) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  };
  mix(state.present);
  mix(static_cast<std::uint64_t>(state.due));
  mix(state.version);
  mix(state.floor);
  mix(static_cast<std::uint64_t>(state.claim.state));
  mix(state.claim.epoch);
  mix(static_cast<std::uint64_t>(state.claim.lease_until));
  mix(state.claim.attempts);
  return hash;
}

}  // namespace semel::proofs
