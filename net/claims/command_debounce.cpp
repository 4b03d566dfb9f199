// Debounce after the last call. The rule is in patterns/trailing_debounce.cpp.
#include <algorithm>

#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "semel/patterns/trailing_debounce.hpp"

namespace semel::net {
namespace {

constexpr std::int64_t list_default = 100;

/// QUIET ms [MAX-WAIT ms] [KEEP ms], in any order.
Status read_terms(WordSpan words, TrailingTerms& terms) {
  bool has_quiet = false;
  bool has_wait = false;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const bool is_quiet = is_word(words[i], "quiet");
    const bool is_wait = is_word(words[i], "max-wait");
    if (!is_quiet && !is_wait && !is_word(words[i], "keep")) {
      return reply_error(unknown_word(words[i], "QUIET, MAX-WAIT, KEEP"));
    }
    const std::string_view name = is_quiet ? "QUIET" : is_wait ? "MAX-WAIT" : "KEEP";
    if (i + 1 == words.size()) {
      return reply_error("ERR " + std::string{name} + " needs a value behind it");
    }
    std::int64_t number = 0;
    SEMEL_CHECK(read_number(name, words[i + 1], 1, limits::debounce_max.count(), number));
    (is_quiet ? terms.quiet : is_wait ? terms.max_wait : terms.keep) = Millis{number};
    has_quiet = has_quiet || is_quiet;
    has_wait = has_wait || is_wait;
  }
  if (!has_quiet) return reply_error("ERR QUIET ms is missing");
  if (!has_wait) terms.max_wait = std::max(terms.max_wait, terms.quiet);
  if (terms.max_wait >= terms.quiet) return Done{};
  return reply_error("ERR MAX-WAIT must not be less than QUIET");
}

void fail_trailing(Call& call, const Error& error, std::string_view key) {
  const bool is_ours = error.code == ErrorCode::bad_option && !error.detail.empty();
  is_ours ? call.fail("ERR " + error.detail) : fail_about(call, error.code, key);
}

void write_turn(RespWriter& reply, const TrailingTurn& turn) {
  if (turn.state == TrailingState::idle || turn.state == TrailingState::quiet) {
    const bool is_quiet = turn.state == TrailingState::quiet;
    reply.map(is_quiet ? 2 : 1);
    reply.bulk("outcome"), reply.bulk(is_quiet ? "quiet" : "idle");
    if (is_quiet) reply.bulk("due_ms"), write_number(reply, turn.due_in.count());
    return;
  }
  const bool runs =
      turn.claim.answer == ClaimAnswer::granted || turn.claim.answer == ClaimAnswer::regranted;
  if (!write_claim_before(reply, turn.claim, runs ? 2 : 1)) return;
  reply.bulk("key"), reply.bulk(turn.key);
  if (runs) reply.bulk("payload"), reply.bulk(turn.payload);
}

std::string_view name_of(TrailingState state) noexcept {
  switch (state) {
    case TrailingState::running:
      return "running";
    case TrailingState::due:
      return "due";
    case TrailingState::quiet:
      return "quiet";
    case TrailingState::idle:
    case TrailingState::unanswered:
      break;
  }
  return "idle";
}

}  // namespace

namespace handlers {

void semel_debounce(Call& call) {
  TrailingTerms terms;
  if (!accept(call, read_terms(call.args.subspan(4), terms))) return;
  Claims* const claims = claims_of(call, call.args[1]);
  if (claims == nullptr) return;
  const Result<TrailingCall> stored = call_trailing(*claims, call.args[2], call.args[3], terms);
  if (!stored.ok()) return fail_trailing(call, stored.error(), call.args[2]);
  call.reply.map(3);
  call.reply.bulk("outcome"), call.reply.bulk("stored");
  call.reply.bulk("due_ms"), write_number(call.reply, stored->due_in.count());
  call.reply.bulk("replaced"), write_flag(call.reply, stored->replaced);
}

void semel_debouncerun(Call& call) {
  ClaimWords words;
  WordSpan rest = call.args.subspan(3);
  if (!accept(call, read_claim_words(rest, false, words))) return;
  Claims* const claims = claims_of(call, call.args[1]);
  if (claims == nullptr) return;
  words.request.key = call.args[2];
  if (!set_owner(call, words)) return;
  const DecisionsOf client{call};
  const Result<TrailingTurn> turn = take_trailing(*claims, words.request);
  if (!turn.ok()) return fail_trailing(call, turn.error(), words.request.key);
  write_turn(call.reply, *turn);
}

void semel_debounceend(Call& call) {
  Epoch epoch = 0;
  if (!accept(call, read_epoch(call.args[3], epoch))) return;
  if (call.args.size() > 5) return call.fail_arity();
  const bool again = call.args.size() == 5;
  if (again && !is_word(call.args[4], "again")) {
    return call.fail(unknown_word(call.args[4], "AGAIN"));
  }
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return write_owner(call.reply, unknown_claim());
  if (found.claims == nullptr) return;
  const DecisionsOf client{call};
  const OwnerOutcome ended = end_trailing(*found.claims, call.args[2], epoch,
                                          again ? TrailingEnd::again : TrailingEnd::done);
  write_owner(call.reply, ended);
}

void semel_debounces(Call& call) {
  std::int64_t count = list_default;
  if (call.args.size() > 2) {
    if (!is_word(call.args[2], "count")) return call.fail(unknown_word(call.args[2], "COUNT"));
    if (call.args.size() != 4) return call.fail_arity();
    constexpr auto most = static_cast<std::int64_t>(limits::debounces_max);
    if (!accept(call, read_number("COUNT", call.args[3], 1, most, count))) return;
  }
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return call.reply.array(0);
  if (found.claims == nullptr) return;
  const auto all = debounces(*found.claims, static_cast<std::size_t>(count));
  if (!all.ok()) return call.fail(all.error());
  call.reply.array(all->size());
  for (const TrailingView& each : *all) {
    call.reply.map(3);
    call.reply.bulk("key"), call.reply.bulk(each.key);
    call.reply.bulk("state"), call.reply.bulk(name_of(each.state));
    call.reply.bulk("due_ms"), write_number(call.reply, each.due_in.count());
  }
}

}  // namespace handlers
}  // namespace semel::net
