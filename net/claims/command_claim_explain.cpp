// SEMEL.EXPLAIN: the last decisions about a key, from the decision log of this node.
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/claim_words.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "semel/claim_fields.hpp"

namespace semel::net {
namespace {

void write_decision(RespWriter& reply, const ClaimDecision& decision) {
  constexpr std::size_t pairs = 12 + claim_numbers.size();
  const auto number = [&](std::string_view name, std::int64_t value) {
    reply.bulk(name);
    write_number(reply, value);
  };
  const auto text = [&](std::string_view name, std::string_view value) {
    reply.bulk(name);
    reply.bulk(value);
  };
  reply.map(pairs);
  text("outcome", decision.outcome);
  text("call", word_of(decision.call));
  number("first_unix_ms", decision.first_unix_ms);
  number("last_unix_ms", decision.last_unix_ms);
  number("times", static_cast<std::int64_t>(decision.times));
  number("epoch", static_cast<std::int64_t>(decision.epoch));
  for (const ClaimNumber& each : claim_numbers) number(each.answer_name, decision.*each.noted);
  text("owner", decision.owner);
  text("client", decision.client);
  text("seen", word_of(decision.seen));
  number("seen_epoch", static_cast<std::int64_t>(decision.seen_epoch));
  text("seen_owner", decision.seen_owner);
  text("why", decision.why);
}

}  // namespace

namespace handlers {

void semel_explain(Call& call) {
  constexpr auto count_max = static_cast<std::int64_t>(limits::decisions_per_key_max);
  std::int64_t count = count_max;
  if (call.args.size() > 3) {
    if (!is_word(call.args[3], "count")) return call.fail(unknown_word(call.args[3], "COUNT"));
    if (call.args.size() != 5) return call.fail_arity();
    if (!accept(call, read_number("COUNT", call.args[4], 1, count_max, count))) return;
  }
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return call.reply.array(0);
  if (found.claims == nullptr) return;
  const auto decisions = found.claims->explain(call.args[2], static_cast<std::size_t>(count));
  if (!decisions.ok() && decisions.error().code == ErrorCode::bad_option) {
    return call.fail("ERR no decisions are kept: decision-log-size is 0");
  }
  if (!decisions.ok()) return fail_about(call, decisions.error().code, call.args[2]);
  call.reply.array(decisions->size());
  for (const ClaimDecision& each : *decisions) write_decision(call.reply, each);
}

}  // namespace handlers
}  // namespace semel::net
