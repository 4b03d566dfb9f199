// Strings in the dialects after Redis 7: DELEX, DIGEST, MSETEX and INCREX of Redis 8, DELIFEQ of
// Valkey.
#include <vector>

#include "net/commands/expiry_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/commands/key_events.hpp"
#include "net/commands/single_key_command.hpp"
#include "net/handlers/presence.hpp"
#include "net/resp/text.hpp"
#include "semel/engine_host.hpp"

namespace semel::net {
namespace {

std::optional<Condition> value_condition_of(std::string_view word) noexcept {
  if (is_word(word, "ifeq")) return Condition::if_equal;
  if (is_word(word, "ifne")) return Condition::if_not_equal;
  if (is_word(word, "ifdeq")) return Condition::if_digest_equal;
  if (is_word(word, "ifdne")) return Condition::if_digest_not_equal;
  return std::nullopt;
}

ArgumentError plan_delex(const Call& call, StoreOp& op) {
  op.verb = Verb::del;
  if (call.args.size() == 2) return ArgumentError::none;
  if (call.args.size() != 4) return ArgumentError::arity;
  const auto condition = value_condition_of(call.args[2]);
  if (!condition) return ArgumentError::syntax;
  op.verb = Verb::delex;
  op.condition = *condition;
  op.operand = call.args[3];
  return ArgumentError::none;
}

ArgumentError plan_delifeq(const Call& call, StoreOp& op) {
  op.verb = Verb::delex;
  op.condition = Condition::if_equal;
  op.operand = call.args[2];
  return ArgumentError::none;
}

ArgumentError plan_digest(const Call&, StoreOp& op) {
  op.verb = Verb::digest;
  return ArgumentError::none;
}

/// Its operands have no place in an operation of a batch.
ArgumentError plan_increx(const Call&, StoreOp&) {
  return ArgumentError::special;
}

void answer_applied(Call& call, const StoreOp&, const StoreOutcome& found) {
  call.reply.integer(found.applied ? 1 : 0);
}

void answer_value(Call& call, const StoreOp&, const StoreOutcome& found) {
  found.has_value ? call.reply.bulk(found.value) : call.reply.null();
}

void answer_increx(Call& call, const StoreOp& op, const StoreOutcome& found) {
  call.reply.array(2);
  if (!op.arithmetic->use_float) {
    call.reply.integer(found.number);
    call.reply.integer(found.second);
    return;
  }
  const std::size_t space = std::min(found.value.find(' '), found.value.size());
  call.reply.bulk(std::string_view{found.value}.substr(0, space));
  call.reply.bulk(std::string_view{found.value}.substr(std::min(space + 1, found.value.size())));
}

/// INCREX as it stands there. Numbers are read when it is known of which kind they are.
struct IncrexWords {
  std::optional<std::string_view> by_int{};
  std::optional<std::string_view> by_float{};
  std::optional<std::string_view> lower{};
  std::optional<std::string_view> upper{};
  std::optional<ExpiryUnit> unit{};
  std::string_view time{};
  bool saturate = false;
  bool persists = false;
  bool only_without_ttl = false;
};

bool read_increx(std::span<const std::string_view> rest, IncrexWords& words) {
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const std::string_view word = rest[i];
    const bool has_value = i + 1 < rest.size();
    const auto once = [&](std::optional<std::string_view>& field) {
      if (field || !has_value) return false;
      field = rest[++i];
      return true;
    };
    if (is_word(word, "byint")) {
      if (!once(words.by_int)) return false;
    } else if (is_word(word, "byfloat")) {
      if (!once(words.by_float)) return false;
    } else if (is_word(word, "lbound")) {
      if (!once(words.lower)) return false;
    } else if (is_word(word, "ubound")) {
      if (!once(words.upper)) return false;
    } else if (is_word(word, "saturate")) {
      words.saturate = true;
    } else if (is_word(word, "persist")) {
      words.persists = true;
    } else if (is_word(word, "enx")) {
      words.only_without_ttl = true;
    } else if (const auto unit = expiry_unit_of(word); unit && has_value && !words.unit) {
      words.unit = unit;
      words.time = rest[++i];
    } else {
      return false;
    }
  }
  const bool both = words.by_int && words.by_float;
  return !both && !(words.unit && words.persists) && (words.unit || !words.only_without_ttl);
}

/// Reads `text`, if there is one, into `value`, and sets `is_there`. False: it is not a number.
template <class Number, class Read>
bool read_number(const std::optional<std::string_view>& text, Number& value, bool& is_there,
                 Read&& read) {
  is_there = text.has_value();
  if (!text) return true;
  const auto number = read(*text);
  if (!number) return false;
  value = *number;
  return true;
}

ArgumentError read_operands(const IncrexWords& words, StoreOp& op, Arithmetic& arithmetic) {
  arithmetic.saturate = words.saturate;
  arithmetic.expiry_only_without_ttl = words.only_without_ttl;
  arithmetic.use_float = words.by_float.has_value();
  op.amount = 1;
  bool given = false;
  if (arithmetic.use_float) {
    const bool right =
        read_number(words.by_float, arithmetic.by_float, given, float_of) &&
        read_number(words.lower, arithmetic.lower_float, arithmetic.has_lower, float_of) &&
        read_number(words.upper, arithmetic.upper_float, arithmetic.has_upper, float_of);
    return right ? ArgumentError::none : ArgumentError::floating;
  }
  const bool right = read_number(words.by_int, op.amount, given, integer_of) &&
                     read_number(words.lower, arithmetic.lower, arithmetic.has_lower, integer_of) &&
                     read_number(words.upper, arithmetic.upper, arithmetic.has_upper, integer_of);
  return right ? ArgumentError::none : ArgumentError::integer;
}

void run(Call& call, const Single& single) {
  ArgumentError error = ArgumentError::none;
  if (!run_single(call, single, error)) call.fail(error);
}

struct MsetexWords {
  std::vector<KeyValue> pairs{};
  Condition condition = Condition::always;
  Expiry expiry = Expiry::clear();
};

/// False: an error has been written.
bool read_msetex(Call& call, MsetexWords& msetex) {
  const auto count = integer_of(call.args[1]);
  if (!count || *count < 1 || *count > static_cast<std::int64_t>(limits::section_keys_max)) {
    return call.fail("ERR invalid numkeys value"), false;
  }
  const std::size_t behind = 2 + 2 * static_cast<std::size_t>(*count);
  if (behind > call.args.size()) {
    return call.fail("ERR wrong number of key-value pairs"), false;
  }
  for (std::size_t i = 2; i < behind; i += 2) {
    msetex.pairs.push_back({call.args[i], call.args[i + 1]});
  }
  bool has_expiry = false;
  for (std::size_t i = behind; i < call.args.size(); ++i) {
    const std::string_view word = call.args[i];
    const bool is_nx = is_word(word, "nx");
    if (is_nx || is_word(word, "xx")) {
      const Condition condition = is_nx ? Condition::if_absent : Condition::if_present;
      if (msetex.condition != Condition::always && msetex.condition != condition) {
        return call.fail_syntax(), false;
      }
      msetex.condition = condition;
      continue;
    }
    if (std::exchange(has_expiry, true)) return call.fail_syntax(), false;
    if (is_word(word, "keepttl")) {
      msetex.expiry = Expiry::keep();
      continue;
    }
    const auto unit = expiry_unit_of(word);
    if (!unit || i + 1 == call.args.size()) return call.fail_syntax(), false;
    const ArgumentError error = read_expiry(call, *unit, call.args[++i], msetex.expiry);
    if (error != ArgumentError::none) return call.fail(error), false;
  }
  return true;
}

/// The events of a SET for each key in turn.
void notify_msetex(Call& call, const Presence& before, const MsetexWords& msetex) {
  for (std::size_t i = 0; i < msetex.pairs.size(); ++i) {
    const Bytes key = msetex.pairs[i].key;
    if (!before.is_old(i)) call.notify('n', "new", key);
    call.notify('$', "set", key);
    notify_expiry(call, msetex.expiry, key);
  }
}

}  // namespace

namespace singles {

const Single delex_single{plan_delex, answer_applied};
const Single delifeq_single{plan_delifeq, answer_applied};
const Single digest_single{plan_digest, answer_value};
const Single increx_single{plan_increx, answer_increx};

}  // namespace singles

namespace handlers {

void delex(Call& call) {
  run(call, singles::delex_single);
}
void delifeq(Call& call) {
  run(call, singles::delifeq_single);
}
void digest(Call& call) {
  run(call, singles::digest_single);
}

void increx(Call& call) {
  IncrexWords words;
  if (!read_increx(call.args.subspan(2), words)) return call.fail_syntax();
  Arithmetic arithmetic;
  StoreOp op{.verb = Verb::increx,
             .db = call.client.db,
             .expiry = words.persists ? Expiry::clear() : Expiry::keep(),
             .key = call.key(),
             .arithmetic = &arithmetic};
  ArgumentError error = read_operands(words, op, arithmetic);
  if (error == ArgumentError::none && words.unit)
    error = read_expiry(call, *words.unit, words.time, op.expiry);
  if (error != ArgumentError::none) return call.fail(error);
  StoreOutcome outcome;
  if (!call.notifies('g')) {
    call.engine.host().apply(op, outcome);
    return answer_single(call, singles::increx_single, op, outcome);
  }
  // Whether the counter's end was set or taken away depends on the one it had.
  const KeyRef ref{call.client.db, call.key()};
  Result<Section> section = call.engine.section({&ref, 1});
  if (!section) return call.fail(section.error());
  StoreOutcome before;
  call.engine.host().apply({.verb = Verb::expire_time, .db = call.client.db, .key = call.key()},
                           before);
  call.engine.host().apply(op, outcome);
  if (const Status done = section->commit(); !done) return call.fail(done.error());
  const bool had_end = before.found && before.due != no_end;
  arithmetic.expiry_only_without_ttl = words.only_without_ttl && had_end;
  if (words.persists && !had_end) op.expiry = Expiry::keep();
  answer_single(call, singles::increx_single, op, outcome);
}

void msetex(Call& call) {
  MsetexWords msetex;
  if (!read_msetex(call, msetex)) return;
  std::vector<Bytes> keys;
  for (const KeyValue& pair : msetex.pairs) keys.push_back(pair.key);
  Presence before{call, 'n', keys};
  const Result<bool> done = before.around(
      [&] { return call.store().msetex(msetex.pairs, msetex.condition, msetex.expiry); });
  if (done.has_value() && *done) notify_msetex(call, before, msetex);
  call.answer(done);
}

}  // namespace handlers
}  // namespace semel::net
