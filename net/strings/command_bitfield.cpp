// BITFIELD and BITFIELD_RO: integers of any length at any bit of a string.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/types/bits.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/strings/string_command.hpp"

namespace semel::net {
namespace {

using engine::BitfieldType;
using engine::Overflow;
using engine::StringEdit;

struct FieldStep {
  enum class Verb : std::uint8_t { get, set, add };

  Verb verb;
  BitfieldType type;
  Overflow overflow;
  std::uint64_t offset;
  std::int64_t operand = 0;
};

/// "i16", "u8": i1..i64, u1..u63.
std::optional<BitfieldType> type_of(std::string_view word) noexcept {
  if (word.empty() || (word.front() != 'i' && word.front() != 'u')) return std::nullopt;
  const bool is_signed = word.front() == 'i';
  const auto bits = integer_of(word.substr(1));
  if (!bits || *bits < 1 || *bits > (is_signed ? 64 : 63)) return std::nullopt;
  return BitfieldType{is_signed, static_cast<unsigned>(*bits)};
}

std::optional<Overflow> overflow_of(std::string_view word) noexcept {
  if (is_word(word, "wrap")) return Overflow::wrap;
  if (is_word(word, "sat")) return Overflow::saturate;
  if (is_word(word, "fail")) return Overflow::fail;
  return std::nullopt;
}

std::optional<FieldStep::Verb> verb_of(std::string_view word) noexcept {
  if (is_word(word, "get")) return FieldStep::Verb::get;
  if (is_word(word, "set")) return FieldStep::Verb::set;
  if (is_word(word, "incrby")) return FieldStep::Verb::add;
  return std::nullopt;
}

/// Reads the words of one step from args[at] on; `at` becomes the next one. None: the error is the
/// reply.
std::optional<FieldStep> read_step(Call& call, std::size_t& at, Overflow overflow) {
  const auto refuse = [&](auto error) {
    call.fail(error);
    return std::nullopt;
  };
  const auto verb = verb_of(call.args[at]);
  const std::size_t words = verb == FieldStep::Verb::get ? 3 : 4;
  if (!verb || call.args.size() - at < words) return refuse(ArgumentError::syntax);
  const auto type = type_of(call.args[at + 1]);
  if (!type) {
    return refuse(
        std::string_view{"ERR Invalid bitfield type. Use something like i16 u8. Note "
                         "that u64 is not supported but i64 is."});
  }
  const auto offset = bit_offset_of(call, call.args[at + 2], type->bits);
  if (!offset) return refuse(bad_bit_offset);
  FieldStep step{*verb, *type, overflow, *offset};
  if (words == 4) {
    const auto operand = integer_of(call.args[at + 3]);
    if (!operand) return refuse(ArgumentError::integer);
    step.operand = *operand;
  }
  at += words;
  return step;
}

/// None: the error is the reply.
std::optional<std::vector<FieldStep>> read_steps(Call& call) {
  std::vector<FieldStep> steps;
  Overflow overflow = Overflow::wrap;
  for (std::size_t at = 2; at < call.args.size();) {
    if (is_word(call.args[at], "overflow") && at + 1 < call.args.size()) {
      const auto named = overflow_of(call.args[at + 1]);
      if (!named) {
        call.fail("ERR Invalid OVERFLOW type specified");
        return std::nullopt;
      }
      overflow = *named;
      at += 2;
      continue;
    }
    const auto step = read_step(call, at, overflow);
    if (!step) return std::nullopt;
    steps.push_back(*step);
  }
  return steps;
}

/// How long the string is after the steps, if it is not longer already.
std::size_t bytes_written(const std::vector<FieldStep>& steps) noexcept {
  std::uint64_t bytes = 0;
  for (const FieldStep& step : steps) {
    if (step.verb == FieldStep::Verb::get) continue;
    bytes = std::max(bytes, (step.offset + step.type.bits - 1) / 8 + 1);
  }
  return static_cast<std::size_t>(bytes);
}

/// What the steps answer; none: it overflowed.
using Answers = std::vector<std::optional<std::int64_t>>;

/// Carries the steps out. Returns how many have changed something.
std::size_t run_steps(StringEdit& edit, const std::vector<FieldStep>& steps, Answers& answers) {
  const bool has_grown = edit.is_changed();
  std::size_t changes = 0;
  std::string& value = edit.value();
  for (const FieldStep& step : steps) {
    const std::int64_t old = engine::integer_at(value, step.offset, step.type);
    if (step.verb == FieldStep::Verb::get) {
      answers.emplace_back(old);
      continue;
    }
    const bool adds = step.verb == FieldStep::Verb::add;
    const auto result = engine::add_integers(adds ? old : step.operand, adds ? step.operand : 0,
                                             step.type, step.overflow);
    if (!result) {
      answers.emplace_back(std::nullopt);
      continue;
    }
    answers.emplace_back(adds ? *result : old);
    engine::set_integer(value, step.offset, step.type, *result);
    if (has_grown || *result != old) ++changes;
  }
  if (!has_grown && changes == 0) edit.keep();
  return changes;
}

void write_answers(Call& call, const Answers& answers) {
  call.reply.array(answers.size());
  for (const auto& answer : answers) answer ? call.reply.integer(*answer) : call.reply.null();
}

void read_fields(Call& call, const std::vector<FieldStep>& steps) {
  Answers answers;
  const auto get = [&](Bytes value) {
    answers.clear();
    for (const FieldStep& step : steps) {
      answers.emplace_back(engine::integer_at(value, step.offset, step.type));
    }
  };
  get({});
  if (read_string(call, call.key(), get)) write_answers(call, answers);
}

}  // namespace

namespace handlers {

void bitfield(Call& call) {
  const auto steps = read_steps(call);
  if (!steps) return;
  const std::size_t bytes = bytes_written(*steps);
  if (bytes == 0) return read_fields(call, *steps);
  Answers answers;
  std::size_t changes = 0;
  const std::size_t bytes_max = engine::value_bytes_max(call.engine);
  const auto done = change_string(call, call.key(), [&](StringEdit& edit) {
    answers.clear();
    const ErrorCode grown = grow_string(edit, bytes, bytes_max);
    if (grown == ErrorCode::ok) changes = run_steps(edit, *steps, answers);
    return grown;
  });
  if (!done) return;
  write_answers(call, answers);
  // A client that listens to its own changes gets the event behind the reply, as of redis-server.
  if (changes != 0) call.notify('$', "setbit", call.key());
}

void bitfield_ro(Call& call) {
  const auto steps = read_steps(call);
  if (!steps) return;
  if (bytes_written(*steps) != 0) {
    return call.fail("ERR BITFIELD_RO only supports the GET subcommand");
  }
  read_fields(call, *steps);
}

}  // namespace handlers
}  // namespace semel::net
