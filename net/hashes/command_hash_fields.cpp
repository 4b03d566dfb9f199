// Fields of hashes that end by themselves: HEXPIRE, HTTL, HPERSIST and their like of Redis 7.4;
// HGETDEL, HGETEX and HSETEX of Redis 8.0.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.hpp"
#include "engine/object_api/hash_fields.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/handlers/presence.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "semel/hashes.hpp"

namespace semel::net {
namespace {

using engine::FieldsChange;
using Args = std::span<const std::string_view>;

KeyRef key_of(const Call& call) {
  return {call.client.db, call.key()};
}

// --- words --------------------------------------------------------------------------------------

constexpr std::string_view fields_missing =
    "ERR Mandatory argument FIELDS is missing or not at the right position";

/// FIELDS, the number of fields, and the fields to the end. Returns an error; empty: none.
std::string read_fields(const Call& call, Args rest, std::string_view bad_number,
                        std::vector<Bytes>& fields) {
  if (rest.empty() || !is_word(rest[0], "fields")) return std::string{fields_missing};
  if (rest.size() < 3) return call.arity_text();
  const auto count = integer_of(rest[1]);
  if (!count || *count < 1) return std::string{bad_number};
  if (static_cast<std::uint64_t>(*count) != rest.size() - 2) {
    return "ERR The `numfields` parameter must match the number of arguments";
  }
  fields.assign(rest.begin() + 2, rest.end());
  return {};
}

constexpr std::string_view not_positive = "ERR Number of fields must be a positive integer";

/// An end of fields, where 0 and a time that has passed are allowed. Returns an error; empty: none.
std::string read_end(const Call& call, ExpiryUnit unit, std::string_view number, Expiry& expiry) {
  const auto value = integer_of(number);
  if (!value) return "ERR value is not an integer or out of range";
  if (*value < 0) return "ERR invalid expire time, must be >= 0";
  const std::string too_late =
      "ERR invalid expire time in '" + std::string{call.row->name} + "' command";
  const bool in_seconds = unit == ExpiryUnit::in_seconds || unit == ExpiryUnit::at_seconds;
  const auto ms = base::checked_mul(*value, std::int64_t{in_seconds ? 1'000 : 1});
  if (!ms) return too_late;
  if (unit == ExpiryUnit::at_seconds || unit == ExpiryUnit::at_ms) {
    if (*ms > command_ttl_max.count() + call.engine.clock().unix_ms()) return too_late;
    expiry = Expiry::at(call.store().from_unix_ms(*ms));
    return {};
  }
  if (Millis{*ms} > command_ttl_max) return too_late;
  const bool is_relative = *ms >= 1 && Millis{*ms} <= limits::ttl_max;
  expiry = is_relative ? Expiry::in(Millis{*ms}) : Expiry::at(call.engine.now() + Millis{*ms});
  return {};
}

/// None: not one of NX, XX, GT, LT.
std::optional<ExpireRule> rule_of(std::string_view word) noexcept {
  if (is_word(word, "nx")) return ExpireRule{.only_without_ttl = true};
  if (is_word(word, "xx")) return ExpireRule{.only_with_ttl = true};
  if (is_word(word, "gt")) return ExpireRule{.only_later = true};
  if (is_word(word, "lt")) return ExpireRule{.only_earlier = true};
  return std::nullopt;
}

/// WRONGTYPE comes before errors of arguments. True: an error has been written.
bool fails(Call& call, const std::string& error) {
  if (error.empty()) return false;
  const auto there = call.engine.hashes(call.client.db).hlen(call.key());
  there.ok() ? call.fail(error) : call.fail(there.error());
  return true;
}

// --- replies and events -------------------------------------------------------------------------

void notify_gone(Call& call, const FieldsChange& change) {
  if (change.removes) call.notify('h', "hdel", call.key());
  if (change.is_gone) call.notify('g', "del", call.key());
}

void write_numbers(Call& call, const std::vector<std::int64_t>& numbers) {
  call.reply.array(numbers.size());
  for (const std::int64_t number : numbers) call.reply.integer(number);
}

void write_value(Call& call, const std::optional<std::string>& value) {
  value ? call.reply.bulk(*value) : call.reply.null();
}

template <ExpiryUnit unit>
void set_ends(Call& call) {
  std::vector<Bytes> fields;
  Expiry expiry;
  std::string error = read_end(call, unit, call.args[2], expiry);
  const auto rule = rule_of(call.args[3]);
  if (error.empty()) {
    error = read_fields(call, call.args.subspan(rule ? 4 : 3),
                        "ERR Parameter `numFields` should be greater than 0", fields);
  }
  if (fails(call, error)) return;
  const auto done =
      engine::expire_fields(call.engine, key_of(call), fields, expiry, rule.value_or(ExpireRule{}));
  if (!done.ok()) return call.fail(done.error());
  if (done->change.retimes) call.notify('h', "hexpire", call.key());
  notify_gone(call, done->change);
  write_numbers(call, done->numbers);
}

enum class EndAs { left, when };

/// HTTL rounds up, as HEXPIRETIME does: a field that is there has at least 1.
template <EndAs as, bool in_seconds>
void tell_ends(Call& call) {
  notify_miss(call, call.key());
  std::vector<Bytes> fields;
  if (fails(call, read_fields(call, call.args.subspan(2), not_positive, fields))) return;
  const auto ends = engine::field_ends(call.engine, key_of(call), fields);
  if (!ends.ok()) return call.fail(ends.error());
  const Timestamp now = call.engine.now();
  std::vector<std::int64_t> numbers;
  numbers.reserve(fields.size());
  for (const std::optional<Timestamp>& end : *ends) {
    if (!end || *end == no_end) {
      numbers.push_back(end ? -1 : -2);
      continue;
    }
    const std::int64_t ms = as == EndAs::left ? std::max((*end - now).count(), std::int64_t{1})
                                              : call.store().to_unix_ms(*end);
    numbers.push_back(in_seconds ? (ms + 999) / 1'000 : ms);
  }
  write_numbers(call, numbers);
}

// --- HGETEX -------------------------------------------------------------------------------------

/// What stands in front of FIELDS, at most one. Returns an error; empty: none.
std::string read_get_ex(const Call& call, std::optional<Expiry>& expiry,
                        std::vector<Bytes>& fields) {
  Args rest = call.args.subspan(2);
  if (const auto unit = expiry_unit_of(rest[0])) {
    Expiry read;
    std::string error = read_end(call, *unit, rest[1], read);
    if (!error.empty()) return error;
    expiry = read;
    rest = rest.subspan(2);
  } else if (is_word(rest[0], "persist")) {
    expiry = Expiry::clear();
    rest = rest.subspan(1);
  }
  return read_fields(call, rest, not_positive, fields);
}

/// Values of fields that may be named several times. `removes`: a field was there only once.
void write_named(Call& call, const std::vector<Bytes>& named, const std::vector<Bytes>& fields,
                 std::vector<std::optional<std::string>> values, bool removes) {
  call.reply.array(named.size());
  for (const Bytes field : named) {
    const auto at = std::lower_bound(fields.begin(), fields.end(), field) - fields.begin();
    auto& value = values[static_cast<std::size_t>(at)];
    write_value(call, value);
    if (removes) value.reset();
  }
}

// --- HSETEX -------------------------------------------------------------------------------------

struct SetWords {
  Condition condition = Condition::always;
  Expiry expiry{};
  std::vector<FieldValue> pairs{};
};

std::string read_pairs(const Call& call, Args rest, SetWords& words) {
  const auto count = integer_of(rest[0]);
  if (!count || *count < 1) return "ERR invalid number of fields";
  const std::size_t behind = rest.size() - 1;
  if (behind % 2 != 0 || static_cast<std::uint64_t>(*count) != behind / 2) {
    return call.arity_text();
  }
  for (std::size_t i = 1; i < rest.size(); i += 2) words.pairs.push_back({rest[i], rest[i + 1]});
  return {};
}

/// Returns an error; empty: none.
std::string read_set(const Call& call, SetWords& words) {
  bool has_expiry = false;
  for (Args rest = call.args.subspan(2); !rest.empty(); rest = rest.subspan(1)) {
    if (is_word(rest[0], "fields") && rest.size() > 1) {
      return read_pairs(call, rest.subspan(1), words);
    }
    const bool is_absent = is_word(rest[0], "fnx");
    const auto unit = expiry_unit_of(rest[0]);
    if (is_absent || is_word(rest[0], "fxx")) {
      if (words.condition != Condition::always) {
        return "ERR Only one of FXX or FNX arguments can be specified";
      }
      words.condition = is_absent ? Condition::if_absent : Condition::if_present;
    } else if (unit || is_word(rest[0], "keepttl")) {
      if (std::exchange(has_expiry, true)) {
        return "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified";
      }
      words.expiry = Expiry::keep();
      if (!unit) continue;
      if (rest.size() < 2) return call.arity_text();
      std::string error = read_end(call, *unit, rest[1], words.expiry);
      if (!error.empty()) return error;
      rest = rest.subspan(1);
    } else {
      return "ERR unknown argument: " + std::string{rest[0]};
    }
  }
  return std::string{fields_missing};
}

}  // namespace

namespace handlers {

void hexpire(Call& call) {
  set_ends<ExpiryUnit::in_seconds>(call);
}
void hpexpire(Call& call) {
  set_ends<ExpiryUnit::in_ms>(call);
}
void hexpireat(Call& call) {
  set_ends<ExpiryUnit::at_seconds>(call);
}
void hpexpireat(Call& call) {
  set_ends<ExpiryUnit::at_ms>(call);
}

void httl(Call& call) {
  tell_ends<EndAs::left, true>(call);
}
void hpttl(Call& call) {
  tell_ends<EndAs::left, false>(call);
}
void hexpiretime(Call& call) {
  tell_ends<EndAs::when, true>(call);
}
void hpexpiretime(Call& call) {
  tell_ends<EndAs::when, false>(call);
}

void hpersist(Call& call) {
  std::vector<Bytes> fields;
  if (fails(call, read_fields(call, call.args.subspan(2), not_positive, fields))) return;
  const auto done = engine::persist_fields(call.engine, key_of(call), fields);
  if (!done.ok()) return call.fail(done.error());
  if (done->change.is_changed) call.notify('h', "hpersist", call.key());
  write_numbers(call, done->numbers);
}

void hgetdel(Call& call) {
  std::vector<Bytes> fields;
  if (fails(call, read_fields(call, call.args.subspan(2), not_positive, fields))) return;
  const auto taken = engine::get_and_delete_fields(call.engine, key_of(call), fields);
  if (!taken.ok()) return call.fail(taken.error());
  notify_gone(call, taken->change);
  call.reply.array(fields.size());
  for (const auto& value : taken->values) write_value(call, value);
}

void hgetex(Call& call) {
  std::vector<Bytes> named;
  std::optional<Expiry> expiry;
  if (fails(call, read_get_ex(call, expiry, named))) return;
  // Each field is read once, however often it is named.
  std::vector<Bytes> fields = named;
  std::sort(fields.begin(), fields.end());
  fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
  auto taken = engine::get_and_expire_fields(call.engine, key_of(call), fields, expiry);
  if (!taken.ok()) return call.fail(taken.error());
  const FieldsChange& change = taken->change;
  const bool persists = expiry && expiry->mode() == Expiry::Mode::clear;
  if (change.retimes) call.notify('h', persists ? "hpersist" : "hexpire", call.key());
  notify_gone(call, change);
  write_named(call, named, fields, std::move(taken->values), change.removes);
}

void hsetex(Call& call) {
  SetWords words;
  if (fails(call, read_set(call, words))) return;
  const Bytes keys[] = {call.key()};
  Presence before{call, 'n', keys};
  const auto done = before.around([&] {
    return engine::set_fields(call.engine, key_of(call), words.pairs, words.expiry,
                              words.condition);
  });
  if (!done.ok()) return call.fail(done.error());
  const FieldsChange& change = done->change;
  if (change.is_changed && !change.removes) {
    if (before.was_absent(0)) call.notify('n', "new", call.key());
    call.notify('h', "hset", call.key());
    if (change.retimes) call.notify('h', "hexpire", call.key());
  }
  notify_gone(call, change);
  call.reply.integer(done->is_set ? 1 : 0);
}

}  // namespace handlers
}  // namespace semel::net
