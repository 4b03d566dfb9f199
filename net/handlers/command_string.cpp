// Strings: SET in the dialects of Redis 7 and of those after it, and what reads and counts.
#include <limits>
#include <map>
#include <vector>

#include "net/commands/expiry_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/handlers/presence.hpp"
#include "net/resp/text.hpp"
#include "net/resp/word_code.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {

namespace {

std::optional<ExpiryUnit> unit_of(std::uint64_t code) noexcept {
  switch (code) {
    case code_of_word("ex"):
      return ExpiryUnit::in_seconds;
    case code_of_word("px"):
      return ExpiryUnit::in_ms;
    case code_of_word("exat"):
      return ExpiryUnit::at_seconds;
    case code_of_word("pxat"):
      return ExpiryUnit::at_ms;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<ExpiryUnit> expiry_unit_of(std::string_view word) noexcept {
  return unit_of(code_of(word));
}

ArgumentError read_expiry(const Call& call, ExpiryUnit unit, std::string_view number,
                          Expiry& expiry) {
  auto value = short_integer_of(number);
  if (!value) value = integer_of(number);
  if (!value) return ArgumentError::integer;
  const bool in_seconds = unit == ExpiryUnit::in_seconds || unit == ExpiryUnit::at_seconds;
  if (*value <= 0 || (in_seconds && *value > std::numeric_limits<std::int64_t>::max() / 1000)) {
    return ArgumentError::expire;
  }
  const std::int64_t ms = in_seconds ? *value * 1000 : *value;
  if (unit == ExpiryUnit::at_seconds || unit == ExpiryUnit::at_ms) {
    if (ms > command_ttl_max.count() + call.engine.clock().unix_ms()) return ArgumentError::expire;
    expiry = Expiry::at(call.store().from_unix_ms(ms));
    return ArgumentError::none;
  }
  if (Millis{ms} > command_ttl_max) return ArgumentError::expire;
  // Longer than what the engine takes as a time from now is a moment.
  expiry = Millis{ms} <= limits::ttl_max ? Expiry::in(Millis{ms})
                                         : Expiry::at(call.engine.now() + Millis{ms});
  return ArgumentError::none;
}

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

bool take_value(std::string_view& value, std::span<const std::string_view>& rest) noexcept {
  if (rest.empty()) return false;
  value = rest.front();
  rest = rest.subspan(1);
  return true;
}

// An option may be repeated, and the last counts, but it excludes the others of its kind.

bool take_unit(Words& words, ExpiryUnit unit, std::span<const std::string_view>& rest) noexcept {
  if (words.keeps || words.persists || words.unit.value_or(unit) != unit) return false;
  words.unit = unit;
  return take_value(words.number, rest);
}

bool take_condition(Words& words, Condition condition) noexcept {
  if (words.condition != Condition::always && words.condition != condition) return false;
  words.condition = condition;
  return true;
}

bool take_condition(Words& words, Condition condition,
                    std::span<const std::string_view>& rest) noexcept {
  return take_condition(words, condition) && take_value(words.operand, rest);
}

/// Most options have two letters.
std::uint64_t code_of_option(std::string_view word) noexcept {
  constexpr std::size_t usual = 2;
  if (word.size() != usual) return code_of(word);
  return packed_bytes(word.substr(0, usual)) | small_bits(usual);
}

/// An option of SET. False: the word is none, or not allowed with an earlier one.
bool take_word_of_set(Words& words, std::span<const std::string_view>& rest) noexcept {
  const std::uint64_t code = code_of_option(rest.front());
  rest = rest.subspan(1);
  switch (code) {
    case code_of_word("ex"):
      return take_unit(words, ExpiryUnit::in_seconds, rest);
    case code_of_word("px"):
      return take_unit(words, ExpiryUnit::in_ms, rest);
    case code_of_word("exat"):
      return take_unit(words, ExpiryUnit::at_seconds, rest);
    case code_of_word("pxat"):
      return take_unit(words, ExpiryUnit::at_ms, rest);
    case code_of_word("nx"):
      return take_condition(words, Condition::if_absent);
    case code_of_word("xx"):
      return take_condition(words, Condition::if_present);
    case code_of_word("get"):
      return words.get = true;
    case code_of_word("keepttl"):
      return words.keeps = !words.unit;
    case code_of_word("ifeq"):
      return take_condition(words, Condition::if_equal, rest);
    case code_of_word("ifne"):
      return take_condition(words, Condition::if_not_equal, rest);
    case code_of_word("ifdeq"):
      return take_condition(words, Condition::if_digest_equal, rest);
    case code_of_word("ifdne"):
      return take_condition(words, Condition::if_digest_not_equal, rest);
    default:
      return false;
  }
}

/// The same of GETEX.
bool take_word_of_getex(Words& words, std::span<const std::string_view>& rest) noexcept {
  const std::uint64_t code = code_of(rest.front());
  rest = rest.subspan(1);
  if (const auto unit = unit_of(code)) return take_unit(words, *unit, rest);
  return words.persists = code == code_of_word("persist") && !words.unit;
}

using TakeWord = bool (*)(Words&, std::span<const std::string_view>&);

/// False: syntax error.
template <TakeWord take_word>
bool read_words(std::span<const std::string_view> rest, Words& words) {
  while (!rest.empty()) {
    if (!take_word(words, rest)) return false;
  }
  return true;
}

/// None: an error has been written.
std::optional<std::vector<KeyValue>> pairs_of(Call& call) {
  if (call.args.size() % 2 == 0) {
    call.fail_arity();
    return std::nullopt;
  }
  std::vector<KeyValue> pairs;
  pairs.reserve(call.args.size() / 2);
  for (std::size_t i = 1; i < call.args.size(); i += 2) {
    pairs.push_back({call.args[i], call.args[i + 1]});
  }
  return pairs;
}

// --- plans ---------------------------------------------------------------------------------

ArgumentError plan_set(const Call& call, StoreOp& op) {
  Words words;
  if (!read_words<take_word_of_set>(call.args.subspan(3), words)) return ArgumentError::syntax;
  op.verb = Verb::set;
  op.condition = words.condition;
  op.operand = words.operand;
  op.get = words.get;
  op.value = call.args[2];
  if (words.keeps) op.expiry = Expiry::keep();
  return words.unit ? read_expiry(call, *words.unit, words.number, op.expiry) : ArgumentError::none;
}

template <ExpiryUnit unit>
ArgumentError plan_set_for(const Call& call, StoreOp& op) {
  op.verb = Verb::set;
  op.value = call.args[3];
  return read_expiry(call, unit, call.args[2], op.expiry);
}

ArgumentError plan_setnx(const Call& call, StoreOp& op) {
  op.verb = Verb::set;
  op.condition = Condition::if_absent;
  op.value = call.args[2];
  return ArgumentError::none;
}

ArgumentError plan_getset(const Call& call, StoreOp& op) {
  op.verb = Verb::set;
  op.get = true;
  op.value = call.args[2];
  return ArgumentError::none;
}

template <Verb verb>
ArgumentError plan_verb(const Call&, StoreOp& op) {
  op.verb = verb;
  return ArgumentError::none;
}

ArgumentError plan_getex(const Call& call, StoreOp& op) {
  Words words;
  if (!read_words<take_word_of_getex>(call.args.subspan(2), words)) return ArgumentError::syntax;
  op.verb = words.unit || words.persists ? Verb::getex : Verb::get;
  if (!words.unit) return ArgumentError::none;
  const ArgumentError error = read_expiry(call, *words.unit, words.number, op.expiry);
  // A missing key is answered before an invalid time.
  return error == ArgumentError::none ? error : ArgumentError::special;
}

ArgumentError plan_append(const Call& call, StoreOp& op) {
  op.verb = Verb::append;
  op.value = call.args[2];
  return ArgumentError::none;
}

ArgumentError plan_getrange(const Call& call, StoreOp& op) {
  op.verb = Verb::getrange;
  const auto start = integer_of(call.args[2]);
  const auto end = integer_of(call.args[3]);
  if (!start || !end) return ArgumentError::integer;
  op.amount = *start;
  op.end = *end;
  return ArgumentError::none;
}

ArgumentError plan_setrange(const Call& call, StoreOp& op) {
  op.verb = Verb::setrange;
  op.value = call.args[3];
  const auto offset = integer_of(call.args[2]);
  if (offset) op.amount = *offset;
  return offset ? ArgumentError::none : ArgumentError::integer;
}

template <Verb verb>
ArgumentError plan_step(const Call&, StoreOp& op) {
  op.verb = verb;
  op.amount = 1;
  return ArgumentError::none;
}

template <Verb verb>
ArgumentError plan_count(const Call& call, StoreOp& op) {
  op.verb = verb;
  const auto by = integer_of(call.args[2]);
  if (by) op.amount = *by;
  return by ? ArgumentError::none : ArgumentError::integer;
}

/// By a fraction: its operand has no place in an operation of a batch.
ArgumentError plan_special(const Call&, StoreOp&) {
  return ArgumentError::special;
}

// --- answers -------------------------------------------------------------------------------

void answer_set(Call& call, const StoreOp& op, const StoreOutcome& found) {
  if (op.get) return found.has_value ? call.reply.bulk(found.value) : call.reply.null();
  found.applied ? call.reply.ok() : call.reply.null();
}
void answer_ok(Call& call, const StoreOp&, const StoreOutcome&) {
  call.reply.ok();
}
void answer_applied(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.integer(found.applied ? 1 : 0);
}
void answer_value(Call& call, const StoreOp&, const StoreOutcome& found) {
  found.has_value ? call.reply.bulk(found.value) : call.reply.null();
}
void answer_bytes(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.bulk(found.value);
}
void answer_number(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.integer(found.number);
}

std::vector<Bytes> keys_of(const std::vector<KeyValue>& pairs) {
  std::vector<Bytes> keys;
  keys.reserve(pairs.size());
  for (const KeyValue& pair : pairs) keys.push_back(pair.key);
  return keys;
}

/// Of all pairs of MSET.
void notify_set(Call& call, const Presence& before, const std::vector<KeyValue>& pairs) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!before.is_old(i)) call.notify('n', "new", pairs[i].key);
    call.notify('$', "set", pairs[i].key);
  }
}

/// A value of MGET: a large one is held once for all that name it.
struct Found {
  bool is_there = false;
  std::string value{};
  SharedBytes large{};
};

/// Reads `keys` as of one instant. The values need not be copied again for the reply, and no more
/// bytes are copied than a reply may have: further values count as absent, and the reply, which is
/// too large, will not be sent.
Status read_all(Call& call, std::span<const Bytes> keys, std::vector<Found>& found) {
  std::optional<Section> section;
  if (keys.size() > 1) {
    std::vector<KeyRef> refs;
    refs.reserve(keys.size());
    for (const Bytes key : keys) refs.push_back({call.client.db, key});
    SEMEL_TRY(held, call.engine.section(refs));
    section.emplace(std::move(held));
  }
  std::map<Bytes, SharedBytes> met;
  std::size_t left = call.reply.room();
  StoreOutcome out;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    found[i].is_there = true;
    if (const auto again = met.find(keys[i]); again != met.end()) {
      found[i].large = again->second;
      continue;
    }
    call.engine.host().apply({.verb = Verb::get, .db = call.client.db, .key = keys[i]}, out);
    // A record of another kind has no value to show; MGET, unlike GET, does not complain.
    if (out.error == ErrorCode::wrong_type || (out.error == ErrorCode::ok && !out.has_value)) {
      found[i].is_there = false;
      continue;
    }
    if (out.error != ErrorCode::ok) return Error{out.error, {}};
    const std::size_t bytes = out.value.size();
    if (bytes > left) {
      call.reply.cut();
      break;
    }
    left -= bytes;
    if (bytes >= LargeReplies::bytes_min && call.reply.large() != nullptr) {
      found[i].large = call.reply.large()->share(std::move(out.value));
      met.emplace(keys[i], found[i].large);
    } else {
      found[i].value = out.value;
    }
  }
  return section ? section->commit() : Status{Done{}};
}

void run(Call& call, const Single& single) {
  ArgumentError error = ArgumentError::none;
  if (!run_single(call, single, error)) call.fail(error);
}

}  // namespace

namespace singles {

const Single set_single{plan_set, answer_set};
const Single setex_single{plan_set_for<ExpiryUnit::in_seconds>, answer_ok};
const Single psetex_single{plan_set_for<ExpiryUnit::in_ms>, answer_ok};
const Single setnx_single{plan_setnx, answer_applied};
const Single get_single{plan_verb<Verb::get>, answer_value};
const Single getset_single{plan_getset, answer_value};
const Single getdel_single{plan_verb<Verb::getdel>, answer_value};
const Single getex_single{plan_getex, answer_value};
const Single append_single{plan_append, answer_number};
const Single strlen_single{plan_verb<Verb::strlen>, answer_number};
const Single getrange_single{plan_getrange, answer_bytes};
const Single setrange_single{plan_setrange, answer_number};
const Single incr_single{plan_step<Verb::incr_by>, answer_number};
const Single decr_single{plan_step<Verb::decr_by>, answer_number};
const Single incrby_single{plan_count<Verb::incr_by>, answer_number};
const Single decrby_single{plan_count<Verb::decr_by>, answer_number};
const Single incrbyfloat_single{plan_special, answer_bytes};

}  // namespace singles

namespace handlers {

void set(Call& call) {
  run(call, singles::set_single);
}
void setex(Call& call) {
  run(call, singles::setex_single);
}
void psetex(Call& call) {
  run(call, singles::psetex_single);
}
void setnx(Call& call) {
  run(call, singles::setnx_single);
}
void get(Call& call) {
  run(call, singles::get_single);
}
void getset(Call& call) {
  run(call, singles::getset_single);
}
void getdel(Call& call) {
  run(call, singles::getdel_single);
}
void append(Call& call) {
  run(call, singles::append_single);
}
void strlen(Call& call) {
  run(call, singles::strlen_single);
}
void getrange(Call& call) {
  run(call, singles::getrange_single);
}
void setrange(Call& call) {
  run(call, singles::setrange_single);
}
void incr(Call& call) {
  run(call, singles::incr_single);
}
void decr(Call& call) {
  run(call, singles::decr_single);
}
void incrby(Call& call) {
  run(call, singles::incrby_single);
}
void decrby(Call& call) {
  run(call, singles::decrby_single);
}

void getex(Call& call) {
  ArgumentError error = ArgumentError::none;
  if (run_single(call, singles::getex_single, error)) return;
  if (error != ArgumentError::special) return call.fail(error);
  const auto there = call.store().get(call.key());
  if (there.ok() && !*there) call.notify('m', "keymiss", call.key());
  if (!there.ok() || !*there) return call.answer(there);
  Words words;
  Expiry expiry;
  // The plan has read them.
  static_cast<void>(read_words<take_word_of_getex>(call.args.subspan(2), words));
  call.fail(read_expiry(call, *words.unit, words.number, expiry));
}

void incrbyfloat(Call& call) {
  const auto by = float_of(call.args[2]);
  if (!by) {
    // WRONGTYPE comes before an invalid number.
    const auto there = call.store().strlen(call.key());
    return there.ok() ? call.fail("ERR value is not a valid float") : call.fail(there.error());
  }
  Arithmetic arithmetic;
  arithmetic.by_float = *by;
  const StoreOp op{.verb = Verb::incr_by_float,
                   .db = call.client.db,
                   .key = call.key(),
                   .arithmetic = &arithmetic};
  StoreOutcome outcome;
  call.engine.host().apply(op, outcome);
  answer_single(call, singles::incrbyfloat_single, op, outcome);
}

void mget(Call& call) {
  const std::vector<Bytes> keys{call.args.begin() + 1, call.args.end()};
  Presence before{call, 'm', keys};
  std::vector<Found> found(keys.size());
  const Status read = before.around([&] { return read_all(call, keys, found); });
  if (!read) return call.fail(read.error());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (before.was_absent(i)) call.notify('m', "keymiss", keys[i]);
  }
  call.reply.array(found.size());
  for (const Found& each : found) {
    if (each.large != nullptr) {
      call.reply.shared_bulk(each.large);
    } else {
      each.is_there ? call.reply.bulk(each.value) : call.reply.null();
    }
  }
}

void mset(Call& call) {
  const auto pairs = pairs_of(call);
  if (!pairs) return;
  Presence before{call, 'n', keys_of(*pairs)};
  const Status done = before.around([&] { return call.store().mset(*pairs); });
  if (done) notify_set(call, before, *pairs);
  call.answer(done);
}

void msetnx(Call& call) {
  const auto pairs = pairs_of(call);
  if (!pairs) return;
  Presence before{call, 'n', keys_of(*pairs)};
  const Result<bool> done = before.around([&] { return call.store().msetnx(*pairs); });
  if (done.ok() && *done) notify_set(call, before, *pairs);
  call.answer(done);
}

}  // namespace handlers
}  // namespace semel::net
