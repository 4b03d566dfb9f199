// Strings: SET in the dialects of Redis 7 and of those after it, and what reads and counts.
#include <limits>
#include <vector>

#include "net/expiry_words.hpp"
#include "net/handlers.hpp"
#include "net/text.hpp"

namespace semel::net {

std::optional<ExpiryUnit> expiry_unit_of(std::string_view word) noexcept {
  if (is_word(word, "ex")) return ExpiryUnit::in_seconds;
  if (is_word(word, "px")) return ExpiryUnit::in_ms;
  if (is_word(word, "exat")) return ExpiryUnit::at_seconds;
  if (is_word(word, "pxat")) return ExpiryUnit::at_ms;
  return std::nullopt;
}

std::optional<Expiry> expiry_of(Call& call, ExpiryUnit unit, std::string_view number) {
  const auto value = integer_of(number);
  if (!value) {
    call.fail_number();
    return std::nullopt;
  }
  const bool in_seconds = unit == ExpiryUnit::in_seconds || unit == ExpiryUnit::at_seconds;
  if (*value <= 0 || (in_seconds && *value > std::numeric_limits<std::int64_t>::max() / 1000)) {
    call.fail_expire();
    return std::nullopt;
  }
  const std::int64_t ms = in_seconds ? *value * 1000 : *value;
  if (unit == ExpiryUnit::at_seconds || unit == ExpiryUnit::at_ms) {
    return Expiry::at(call.store().from_unix_ms(ms));
  }
  if (Millis{ms} > limits::ttl_max) {
    call.fail_expire();
    return std::nullopt;
  }
  return Expiry::in(Millis{ms});
}

namespace handlers {
namespace {

/// The options of SET and GETEX as they stand there.
struct Words {
  Condition condition = Condition::always;
  Bytes operand{};
  bool get = false;
  bool keeps = false;
  bool persists = false;
  std::optional<ExpiryUnit> unit{};
  std::string_view number{};
};

std::optional<Condition> condition_of(std::string_view word) noexcept {
  if (is_word(word, "nx")) return Condition::if_absent;
  if (is_word(word, "xx")) return Condition::if_present;
  if (is_word(word, "ifeq")) return Condition::if_equal;
  if (is_word(word, "ifne")) return Condition::if_not_equal;
  if (is_word(word, "ifdeq")) return Condition::if_digest_equal;
  if (is_word(word, "ifdne")) return Condition::if_digest_not_equal;
  return std::nullopt;
}

/// False: it is not there, or not with what was there before.
bool take_word(Words& words, std::span<const std::string_view>& rest, bool of_set) {
  const std::string_view word = rest.front();
  rest = rest.subspan(1);
  // Each may come twice, and the last counts, but not with another one.
  if (const auto unit = expiry_unit_of(word)) {
    if (words.keeps || words.persists || words.unit.value_or(*unit) != *unit) return false;
    if (rest.empty()) return false;
    words.unit = unit;
    words.number = rest.front();
    rest = rest.subspan(1);
    return true;
  }
  if (!of_set) return words.persists = !words.unit && is_word(word, "persist");
  if (is_word(word, "keepttl")) return words.keeps = !words.unit;
  if (is_word(word, "get")) return words.get = true;
  const auto condition = condition_of(word);
  if (!condition) return false;
  if (words.condition != Condition::always && words.condition != *condition) return false;
  words.condition = *condition;
  if (*condition == Condition::if_absent || *condition == Condition::if_present) return true;
  if (rest.empty()) return false;
  words.operand = rest.front();
  rest = rest.subspan(1);
  return true;
}

/// None: an error has been written.
std::optional<Words> read_words(Call& call, std::span<const std::string_view> rest, bool of_set) {
  Words words;
  while (!rest.empty()) {
    if (take_word(words, rest, of_set)) continue;
    call.fail_syntax();
    return std::nullopt;
  }
  return words;
}

void set_for(Call& call, ExpiryUnit unit) {
  const auto expiry = expiry_of(call, unit, call.words[2]);
  if (!expiry) return;
  const auto done = call.store().set(call.key(), call.words[3], {.expiry = *expiry});
  call.answer(done, [&](const SetResult&) { call.reply.ok(); });
}

void add(Call& call, std::int64_t by) {
  call.answer(call.store().incr_by(call.key(), by));
}

/// None: an error has been written.
std::optional<std::vector<KeyValue>> pairs_of(Call& call) {
  if (call.words.size() % 2 == 0) {
    call.fail_arity();
    return std::nullopt;
  }
  std::vector<KeyValue> pairs;
  pairs.reserve(call.words.size() / 2);
  for (std::size_t i = 1; i < call.words.size(); i += 2) {
    pairs.push_back({call.words[i], call.words[i + 1]});
  }
  return pairs;
}

}  // namespace

void set(Call& call) {
  const auto words = read_words(call, call.words.subspan(3), true);
  if (!words) return;
  SetOptions options{.condition = words->condition, .operand = words->operand, .get = words->get};
  if (words->keeps) options.expiry = Expiry::keep();
  if (words->unit) {
    const auto expiry = expiry_of(call, *words->unit, words->number);
    if (!expiry) return;
    options.expiry = *expiry;
  }
  call.answer(call.store().set(call.key(), call.words[2], options), [&](const SetResult& done) {
    if (words->get) return done.previous ? call.reply.bulk(*done.previous) : call.reply.null();
    done.stored ? call.reply.ok() : call.reply.null();
  });
}

void setex(Call& call) {
  set_for(call, ExpiryUnit::in_seconds);
}
void psetex(Call& call) {
  set_for(call, ExpiryUnit::in_ms);
}
void setnx(Call& call) {
  call.answer(call.store().setnx(call.key(), call.words[2]));
}
void get(Call& call) {
  call.answer(call.store().get(call.key()));
}
void getset(Call& call) {
  call.answer(call.store().getset(call.key(), call.words[2]));
}
void getdel(Call& call) {
  call.answer(call.store().getdel(call.key()));
}

void getex(Call& call) {
  const auto words = read_words(call, call.words.subspan(2), false);
  if (!words) return;
  if (!words->unit && !words->persists) return get(call);
  if (words->persists) return call.answer(call.store().getex(call.key(), Expiry::clear()));
  // A key that is not there is told before a time that is wrong.
  const auto there = call.store().get(call.key());
  if (!there || !*there) return call.answer(there);
  const auto expiry = expiry_of(call, *words->unit, words->number);
  if (expiry) call.answer(call.store().getex(call.key(), *expiry));
}

void append(Call& call) {
  call.answer(call.store().append(call.key(), call.words[2]));
}
void strlen(Call& call) {
  call.answer(call.store().strlen(call.key()));
}

void getrange(Call& call) {
  const auto start = integer_of(call.words[2]);
  const auto end = integer_of(call.words[3]);
  if (!start || !end) return call.fail_number();
  call.answer(call.store().getrange(call.key(), *start, *end),
              [&](const std::string& bytes) { call.reply.bulk(bytes); });
}

void setrange(Call& call) {
  const auto offset = integer_of(call.words[2]);
  if (!offset) return call.fail_number();
  call.answer(call.store().setrange(call.key(), *offset, call.words[3]));
}

void incr(Call& call) {
  add(call, 1);
}
void decr(Call& call) {
  add(call, -1);
}

void incrby(Call& call) {
  const auto by = integer_of(call.words[2]);
  by ? add(call, *by) : call.fail_number();
}

void decrby(Call& call) {
  const auto by = integer_of(call.words[2]);
  by ? call.answer(call.store().decr_by(call.key(), *by)) : call.fail_number();
}

void incrbyfloat(Call& call) {
  const auto by = float_of(call.words[2]);
  if (!by) return call.fail("ERR value is not a valid float");
  call.answer(call.store().incr_by_float(call.key(), *by),
              [&](const std::string& text) { call.reply.bulk(text); });
}

void mget(Call& call) {
  const std::vector<Bytes> keys{call.words.begin() + 1, call.words.end()};
  call.answer(call.store().mget(keys), [&](const auto& values) {
    call.reply.array(values.size());
    for (const auto& value : values) value ? call.reply.bulk(*value) : call.reply.null();
  });
}

void mset(Call& call) {
  if (const auto pairs = pairs_of(call)) call.answer(call.store().mset(*pairs));
}
void msetnx(Call& call) {
  if (const auto pairs = pairs_of(call)) call.answer(call.store().msetnx(*pairs));
}

}  // namespace handlers
}  // namespace semel::net
