// Faults of single requests, where the node was started for tests.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.hpp"
#include "net/claims/claim_call.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "net/time/faults.hpp"
#include "net/time/test_clock.hpp"

namespace semel::net::handlers {
namespace {

constexpr std::int64_t delay_ms_max = 60'000;
constexpr std::int64_t times_max = 1'000'000'000;
constexpr std::size_t fault_text_bytes_max = 512;  // of an error or a pattern

/// False: an error has been written.
bool may_plant(Call& call) {
  if (call.services.test_clock != nullptr) return true;
  call.fail("ERR SEMEL.FAULT needs a node started with test-clock");
  return false;
}

/// A reply of one line. The detail of an error is the whole reply.
Status check_fault_text(std::string_view name, std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return reply_error("ERR " + std::string{name} + " " + std::string{why});
  };
  if (text.empty()) return bad("is empty");
  if (text.size() > fault_text_bytes_max) {
    return bad("is longer than " + std::to_string(fault_text_bytes_max) + " bytes");
  }
  if (name == "ERROR" && text.find_first_of("\r\n") != std::string_view::npos) {
    return bad("has a line break");
  }
  return Done{};
}

/// Reads the action and its argument, and removes them from `words`.
Status read_fault_action(WordSpan& words, FaultTerms& fault) {
  const std::string_view action = words[0];
  const bool takes_word = is_word(action, "delay") || is_word(action, "error");
  if (takes_word && words.size() < 2) return reply_error("ERR syntax error");
  if (is_word(action, "delay")) {
    fault.action = FaultAction::delay;
    std::int64_t ms = 0;
    SEMEL_CHECK(read_number("DELAY", words[1], 0, delay_ms_max, ms));
    fault.delay = Millis{ms};
  } else if (is_word(action, "error")) {
    fault.action = FaultAction::error;
    SEMEL_CHECK(check_fault_text("ERROR", words[1]));
    fault.error = words[1];
  } else if (is_word(action, "drop")) {
    fault.action = FaultAction::drop;
  } else if (is_word(action, "drop-reply")) {
    fault.action = FaultAction::drop_reply;
  } else {
    return reply_error("ERR a fault is DELAY ms, ERROR text, DROP or DROP-REPLY");
  }
  words = words.subspan(takes_word ? 2 : 1);
  return Done{};
}

Status read_fault_option(std::string_view name, std::string_view word, FaultTerms& fault) {
  std::int64_t number = 0;
  if (is_word(name, "command")) {
    SEMEL_CHECK(check_fault_text("COMMAND", word));
    fault.command = base::lower_of(word);
  } else if (is_word(name, "key")) {
    SEMEL_CHECK(check_fault_text("KEY", word));
    fault.key = word;
  } else if (is_word(name, "nth")) {
    SEMEL_CHECK(read_number("NTH", word, 1, times_max, number));
    fault.nth = static_cast<std::uint64_t>(number);
  } else if (is_word(name, "count")) {
    SEMEL_CHECK(read_number("COUNT", word, 0, times_max, number));
    fault.count = static_cast<std::uint64_t>(number);
  } else {
    return reply_error("ERR syntax error");
  }
  return Done{};
}

void write_fault(RespWriter& reply, const PlantedFault& planted) {
  const FaultTerms& fault = planted.fault;
  const auto text = [&](std::string_view name, std::string_view value) {
    reply.bulk(name), reply.bulk(value);
  };
  const auto number = [&](std::string_view name, std::uint64_t value) {
    reply.bulk(name), reply.integer(static_cast<std::int64_t>(value));
  };
  constexpr std::size_t fields = 9;
  reply.map(fields);
  number("id", planted.id);
  text("action", name_of(fault.action));
  number("delay", static_cast<std::uint64_t>(fault.delay.count()));
  text("error", fault.error);
  text("command", fault.command);
  text("key", fault.key);
  number("nth", fault.nth);
  number("count", fault.count);
  number("acted", planted.acted);
}

}  // namespace

void semel_fault(Call& call) {
  call.fail_arity();  // a subcommand is always meant
}

void semel_fault_add(Call& call) {
  if (!may_plant(call)) return;
  WordSpan words = call.args.subspan(2);
  FaultTerms fault;
  if (!accept(call, read_fault_action(words, fault))) return;
  for (; words.size() >= 2; words = words.subspan(2)) {
    if (!accept(call, read_fault_option(words[0], words[1], fault))) return;
  }
  if (!words.empty()) return call.fail_syntax();
  const auto id = call.services.test_clock->faults.add(std::move(fault));
  if (!id) {
    return call.fail("ERR there are " + std::to_string(Faults::count_max) +
                     " faults; SEMEL.FAULT CLEAR removes them");
  }
  call.reply.integer(static_cast<std::int64_t>(*id));
}

void semel_fault_clear(Call& call) {
  if (!may_plant(call)) return;
  std::int64_t id = 0;
  if (call.args.size() > 3) return call.fail_arity();
  if (call.args.size() == 3) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (!accept(call, read_number("id", call.args[2], 1, most, id))) return;
  }
  const std::size_t removed =
      call.services.test_clock->faults.clear(static_cast<std::uint64_t>(id));
  call.reply.integer(static_cast<std::int64_t>(removed));
}

void semel_fault_list(Call& call) {
  if (!may_plant(call)) return;
  const std::vector<PlantedFault> faults = call.services.test_clock->faults.all();
  call.reply.array(faults.size());
  for (const PlantedFault& planted : faults) write_fault(call.reply, planted);
}

}  // namespace semel::net::handlers
