#include "net/scripts/native_scripts.hpp"

#include <algorithm>

#include "net/commands/command.hpp"
#include "net/commands/expiry_words.hpp"
#include "net/commands/key_events.hpp"
#include "net/events/keyspace_events.hpp"
#include "net/events/monitor.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/native_run.hpp"

namespace semel::net {
namespace {

using lua::Invocation;
using lua::KnownScript;
using lua::ScriptAnswer;
using lua::ScriptCommand;
using lua::ScriptShape;
using lua::ScriptWord;

constexpr std::int64_t exact_max = std::int64_t{1} << 53;  ///< of whole numbers in Lua

/// A text that is the same again behind tonumber and the way back.
bool is_whole(std::string_view text) noexcept {
  const auto number = integer_of(text);
  return number && *number > -exact_max && *number < exact_max;
}

bool fits(const ScriptWord& word, const Invocation& invocation) noexcept {
  switch (word.from) {
    case ScriptWord::From::text:
      return true;
    case ScriptWord::From::key:
      return word.index < invocation.keys.size();
    case ScriptWord::From::argument:
      return word.index < invocation.args.size();
    case ScriptWord::From::number:
      return word.index < invocation.args.size() && is_whole(invocation.args[word.index]);
  }
  return false;
}

bool publishes(std::string_view word) noexcept {
  const CommandRow* const row = find_command(word);
  return row != nullptr && row->has(fact_publishes);
}

/// What a meaning asks of its arguments beside their number.
bool fits_meaning(const ScriptShape& shape, const Invocation& invocation) noexcept {
  const auto& args = invocation.args;
  switch (shape.known) {
    case KnownScript::prolong:
      return args[2] != "0" || is_whole(args[1]);
    case KnownScript::obtain_by_prefix:
      return !args[1].starts_with('-');
    case KnownScript::release_reentrant:
      return shape.entry->variant != 0 || publishes(args[3]);
    case KnownScript::release_by_force:
      return shape.entry->variant != 0 || publishes(args[1]);
    case KnownScript::renew_many:
      return args.size() > invocation.keys.size();
    default:
      return true;
  }
}

std::string_view word_at(const ScriptWord& word, const Invocation& invocation) noexcept {
  if (word.from == ScriptWord::From::text) return word.text;
  return word.from == ScriptWord::From::key ? invocation.keys[word.index]
                                            : invocation.args[word.index];
}

// --- one operation -------------------------------------------------------------------------

/// What writes an outcome in the form that a script's reply has in every dialect.
bool is_answered_alike(Verb verb) noexcept {
  switch (verb) {
    case Verb::digest:
    case Verb::incr_by_float:
    case Verb::increx:
      return false;
    default:
      return true;
  }
}

/// Reads `command` as the request that it is.
ArgumentError plan_command(const Call& call, const ScriptCommand& command,
                           const Invocation& invocation, StoreOp& op, const Single*& single) {
  constexpr std::size_t words_max = 16;
  const CommandRow* const row = find_command(command.front().text);
  if (row == nullptr || row->single == nullptr || row->is(flag_noscript) ||
      command.size() > words_max || command.size() < 2 || !row->takes(command.size()) ||
      command[1].from != ScriptWord::From::key) {
    return ArgumentError::special;
  }
  std::array<std::string_view, words_max> words;
  for (std::size_t i = 0; i < command.size(); ++i) words[i] = word_at(command[i], invocation);
  const Call inner{.services = call.services,
                   .engine = call.engine,
                   .client = call.client,
                   .args = std::span{words}.first(command.size()),
                   .reply = call.reply,
                   .row = row};
  op.key = words[1];
  single = row->single;
  const ArgumentError error = single->plan(inner, op);
  const bool is_usable = op.arithmetic == nullptr && is_answered_alike(op.verb);
  return error == ArgumentError::none && !is_usable ? ArgumentError::special : error;
}

ArgumentError plan_compare(const Call& call, const ScriptShape& shape, const Invocation& invocation,
                           StoreOp& op) {
  const ScriptCommand& command = shape.commands.front();
  if (shape.commands.size() != 1) return ArgumentError::special;
  // Asked before a plan is made: a renewal of a lock is none of the two, and would be planned
  // twice.
  const CommandRow* const row = find_command(command.front().text);
  if (row == nullptr ||
      (row->single != &singles::del_single && row->single != &singles::set_single))
    return ArgumentError::special;
  const Single* unused = nullptr;
  const ArgumentError error = plan_command(call, command, invocation, op, unused);
  if (error != ArgumentError::none || op.condition != Condition::always || op.get)
    return ArgumentError::special;
  if (op.verb == Verb::del) {
    op.verb = Verb::delex;
  } else if (op.verb != Verb::set) {
    return ArgumentError::special;
  }
  op.condition = Condition::if_equal;
  op.operand = invocation.args.front();
  return ArgumentError::none;
}

/// SET of the first argument, if the key is not there, with the end that `command` says.
ArgumentError plan_absent(const Call& call, const ScriptShape& shape, const Invocation& invocation,
                          StoreOp& op) {
  const ScriptCommand& command = shape.commands.front();
  op.key = invocation.keys.front();
  if (command.front().text == "set") {
    const Single* unused = nullptr;
    const ArgumentError error = plan_command(call, command, invocation, op, unused);
    if (error != ArgumentError::none) return error;
  } else {
    const bool is_ms = command.front().text == "pexpire";
    const auto unit = is_ms ? ExpiryUnit::in_ms : ExpiryUnit::in_seconds;
    const ArgumentError error = read_expiry(call, unit, word_at(command[2], invocation), op.expiry);
    if (error != ArgumentError::none) return error;
    op.verb = Verb::set;
    op.value = invocation.args.front();
  }
  op.condition = Condition::if_absent;
  op.get = shape.known == KnownScript::get_or_set;
  return ArgumentError::none;
}

ArgumentError plan_meaning(const Call& call, const Invocation& invocation, StoreOp& op,
                           NativePlan& plan) {
  const ScriptShape& shape = *plan.shape;
  switch (shape.known) {
    case KnownScript::one_command:
      return plan_command(call, shape.commands.front(), invocation, op, plan.single);
    case KnownScript::compare_and_run:
      return plan_compare(call, shape, invocation, op);
    case KnownScript::take:
      op.verb = Verb::getdel;
      op.key = invocation.keys.front();
      return ArgumentError::none;
    case KnownScript::get_or_set:
    case KnownScript::set_absent:
      return plan_absent(call, shape, invocation, op);
    default:
      return ArgumentError::special;
  }
}

void write_answer(Call& call, const ScriptAnswer& answer, const StoreOp& op) {
  switch (answer.kind) {
    case ScriptAnswer::Kind::last:
      // Of DEL, UNLINK, EXPIRE: one key; of SET: OK.
      return op.verb == Verb::set ? call.reply.ok() : call.reply.integer(1);
    case ScriptAnswer::Kind::number:
      return call.reply.integer(answer.number);
    case ScriptAnswer::Kind::nothing:
      return call.reply.null();
    case ScriptAnswer::Kind::status:
      return call.reply.simple(answer.text);
    case ScriptAnswer::Kind::error:
      return call.reply.error(answer.text);
    case ScriptAnswer::Kind::bulk:
      return call.reply.bulk(answer.text);
  }
}

void write_outcome(Call& call, const NativePlan& plan, const StoreOp& op,
                   const StoreOutcome& outcome) {
  if (plan.single != nullptr) {
    if (outcome.number < exact_max && outcome.number > -exact_max) [[likely]]
      return plan.single->answer(call, op, outcome);
    StoreOutcome rounded = outcome;
    rounded.number = through_lua(outcome.number);
    return plan.single->answer(call, op, rounded);
  }
  const lua::KnownEntry& entry = *plan.shape->entry;
  switch (plan.shape->known) {
    case KnownScript::compare_and_run:
      if (outcome.applied) return write_answer(call, entry.answer, op);
      return write_answer(call, outcome.found ? entry.differs : entry.missing, op);
    case KnownScript::get_or_set:
      if (outcome.has_value) return call.reply.bulk(outcome.value);
      if (entry.answer.kind == ScriptAnswer::Kind::bulk) return call.reply.bulk(op.value);
      return write_answer(call, entry.answer, op);
    case KnownScript::set_absent: {
      if (!outcome.applied) return write_answer(call, entry.missing, op);
      const bool is_last = entry.answer.kind == ScriptAnswer::Kind::last;
      return is_last ? call.reply.integer(1) : write_answer(call, entry.answer, op);
    }
    default:
      return outcome.has_value ? call.reply.bulk(outcome.value) : call.reply.null();
  }
}

}  // namespace

std::optional<lua::KeyPositions> key_positions(std::string_view command) {
  const CommandRow* const row = find_command(command);
  // What reaches into another database is not in the shards of the keys of this one.
  const bool is_plain = row != nullptr && row->first_key > 0 && !row->is(flag_movablekeys) &&
                        !row->has(fact_elsewhere);
  if (!is_plain) return std::nullopt;
  return lua::KeyPositions{.first = row->first_key, .last = row->last_key, .step = row->key_step};
}

bool accepts_native(const ScriptShape& shape, const Invocation& invocation) {
  // Of a script that names commands by other names it is not known what it means.
  if (shape.known == KnownScript::unknown || has_renamed_commands()) return false;
  if (shape.entry != nullptr) {
    const bool has_all = invocation.keys.size() >= shape.entry->keys &&
                         invocation.args.size() >= shape.entry->arguments;
    if (!has_all || !fits_meaning(shape, invocation)) return false;
  }
  return std::ranges::all_of(shape.commands, [&](const ScriptCommand& command) {
    return std::ranges::all_of(command,
                               [&](const ScriptWord& word) { return fits(word, invocation); });
  });
}

bool keeps_to_keys(const ScriptShape& shape) noexcept {
  return shape.declares_keys || shape.entry != nullptr;
}

ArgumentError plan_native(const Call& call, const ScriptShape& shape, std::string_view sha,
                          StoreOp& op, NativePlan& plan) {
  constexpr std::size_t fixed_words = 3;  // name, text or SHA-1, number of keys
  // Subscribers to misses or to events of their own changes, and monitors, must see the script's
  // commands in its order.
  const bool is_usual = call.args.size() > fixed_words && call.args[2] == "1" &&
                        !call.services.monitors.any() && !call.notifies('m') &&
                        !call.client.subscribes();
  if (!is_usual || shape.known == KnownScript::unknown) return ArgumentError::special;
  const Invocation invocation{.keys = call.args.subspan(fixed_words, 1),
                              .args = call.args.subspan(fixed_words + 1),
                              .dialect = call.client.dialect};
  if (!accepts_native(shape, invocation)) return ArgumentError::special;
  plan = {.shape = &shape, .sha = sha};
  return plan_meaning(call, invocation, op, plan);
}

void answer_native(Call& call, const NativePlan& plan, const StoreOp& op,
                   const StoreOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) {
    std::string text;
    RespWriter error{text, Resp::two};
    Call inner{.services = call.services,
               .engine = call.engine,
               .client = call.client,
               .args = {},
               .reply = error};
    inner.fail(outcome.error);
    const std::string_view line = std::string_view{text}.substr(1, text.size() - 3);
    // The kind of a record is found out by the first command; what else fails is the change.
    const std::vector<std::uint32_t>& lines = plan.shape->lines;
    const bool changes_first =
        plan.shape->known == KnownScript::set_absent && plan.shape->entry->variant == 0;
    const bool is_first =
        outcome.error == ErrorCode::wrong_type || changes_first || lines.size() < 2;
    return write_script_error(call.reply, line, plan.sha, lines[is_first ? 0 : 1]);
  }
  if (call.services.events.any()) [[unlikely]]
    notify_change(call, op, outcome);
  write_outcome(call, plan, op, outcome);
}

std::array<std::string_view, 2> commands_of(const NativePlan& plan, const StoreOutcome& outcome) {
  const ScriptShape& shape = *plan.shape;
  switch (shape.known) {
    case KnownScript::one_command:
      return {shape.commands.front().front().text, {}};
    case KnownScript::take: {
      const bool deletes = outcome.found || shape.entry->variant == 1;
      return {"get", deletes ? std::string_view{"del"} : std::string_view{}};
    }
    case KnownScript::set_absent: {
      const std::string_view name = shape.commands.front().front().text;
      if (shape.entry->variant == 2) return {name, {}};
      const std::string_view first = shape.entry->variant == 0 ? "setnx" : "exists";
      return {first, outcome.applied ? name : std::string_view{}};
    }
    default: {
      const std::string_view name = shape.commands.front().front().text;
      return {"get", outcome.applied ? name : std::string_view{}};
    }
  }
}

}  // namespace semel::net
