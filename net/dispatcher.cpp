// From the words of a request to the handler of its row, or to a refusal.
#include <algorithm>

#include "net/node.hpp"
#include "net/single.hpp"
#include "net/text.hpp"
#include "net/transaction.hpp"

namespace semel::net {
namespace {

constexpr std::size_t shown_bytes_max = 128;  // of a name and of arguments that nobody knows

std::string_view up_to_zero(std::string_view text) noexcept {
  return text.substr(0, text.find('\0'));
}

void fail_unknown(Call& call) {
  std::string text = "ERR unknown command '";
  text += up_to_zero(call.words[0]).substr(0, shown_bytes_max);
  text += "', with args beginning with: ";
  std::string shown;
  for (std::size_t i = 1; i < call.words.size() && shown.size() < shown_bytes_max; ++i) {
    const std::size_t room = shown_bytes_max - shown.size();
    shown.append("'").append(up_to_zero(call.words[i]).substr(0, room)).append("' ");
  }
  call.fail(text + shown);
}

void fail_unknown_subcommand(Call& call) {
  std::string parent{call.row->name};
  std::transform(parent.begin(), parent.end(), parent.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  const std::string_view word = up_to_zero(call.words[1]).substr(0, shown_bytes_max);
  call.fail("ERR unknown subcommand '" + std::string{word} + "'. Try " + parent + " HELP.");
}

/// False: an error has been written.
bool find_row(Call& call) {
  call.row = find_command(call.words[0]);
  if (call.row == nullptr) {
    fail_unknown(call);
    return false;
  }
  if (is_container(*call.row) && call.words.size() > 1) {
    const CommandRow* const sub = find_subcommand(*call.row, call.words[1]);
    if (sub != nullptr) {
      call.row = sub;
    } else {
      fail_unknown_subcommand(call);
      return false;
    }
  }
  if (call.row->takes(call.words.size())) return true;
  call.fail_arity();
  return false;
}

}  // namespace

void Call::fail(ErrorCode code) {
  std::string text{resp_prefix_of(code)};
  text.append(" ").append(sentence_of(code));
  fail(text);
}

void Call::fail(Fault fault) {
  switch (fault) {
    case Fault::none:
    case Fault::special:
    case Fault::syntax:
      return fail("ERR syntax error");
    case Fault::integer:
      return fail("ERR value is not an integer or out of range");
    case Fault::floating:
      return fail("ERR value is not a valid float");
    case Fault::expire:
      return fail("ERR invalid expire time in '" + std::string{row->name} + "' command");
    case Fault::arity:
      return fail("ERR wrong number of arguments for '" + std::string{row->name} + "' command");
  }
}

const CommandRow* admit(Call& call) {
  const auto check = [&] {
    if (!find_row(call)) return false;
    if (!call.client.authenticated && !call.row->is(flag_no_auth)) {
      call.fail("NOAUTH Authentication required.");
      return false;
    }
    if (call.client.transaction != nullptr && call.row->is(flag_no_multi)) {
      call.fail("ERR Command not allowed inside a transaction");
      return false;
    }
    return true;
  };
  if (check()) return call.row;
  if (call.client.transaction != nullptr) call.client.transaction->failed = true;
  return nullptr;
}

void dispatch(Call& call) {
  if (admit(call) == nullptr) return;
  if (call.client.transaction != nullptr && is_queued(*call.row)) return enqueue(call);
  execute(call);
}

void execute(Call& call) {
  call.row->handler(call);
  if (!call.row->is(flag_write) || !call.node.watches.any()) [[likely]]
    return;
  for_each_key(*call.row, call.words,
               [&](std::string_view key) { call.node.watches.touched(call.client.db, key); });
}

bool run_single(Call& call, const Single& single, Fault& fault) {
  StoreOp op{.db = call.client.db, .key = call.key()};
  fault = single.plan(call, op);
  if (fault != Fault::none) return false;
  StoreOutcome outcome;
  call.engine.apply(op, outcome);
  answer_single(call, single, op, outcome);
  return true;
}

void answer_single(Call& call, const Single& single, const StoreOp& op,
                   const StoreOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return call.fail(outcome.error);
  single.answer(call, op, outcome);
}

}  // namespace semel::net
