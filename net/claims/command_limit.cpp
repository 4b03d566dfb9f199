// Rate limits. patterns/rate_rules.cpp has the rule.
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "semel/patterns/rate_limit.hpp"

namespace semel::net {
namespace {

/// KIND limit period-ms [REFILL n] [COST n], behind the key.
Status read_limit(WordSpan words, RateTerms& terms, std::uint64_t& cost) {
  constexpr auto most = static_cast<std::int64_t>(limits::rate_max);
  if (is_word(words[0], "fixed")) {
    terms.kind = RateKind::fixed_window;
  } else if (is_word(words[0], "sliding")) {
    terms.kind = RateKind::sliding_window;
  } else if (is_word(words[0], "bucket")) {
    terms.kind = RateKind::token_bucket;
  } else {
    return reply_error(unknown_word(words[0], "FIXED, SLIDING, BUCKET"));
  }
  std::int64_t number = 0;
  SEMEL_CHECK(read_number("the limit", words[1], 1, most, number));
  terms.limit = static_cast<std::uint64_t>(number);
  SEMEL_CHECK(read_number("the period", words[2], 1, limits::rate_period_max.count(), number));
  terms.period = Millis{number};
  for (std::size_t i = 3; i < words.size(); i += 2) {
    const bool is_refill = is_word(words[i], "refill");
    if (!is_refill && !is_word(words[i], "cost")) {
      return reply_error(unknown_word(words[i], "REFILL, COST"));
    }
    const std::string_view name = is_refill ? "REFILL" : "COST";
    if (i + 1 == words.size()) {
      return reply_error("ERR " + std::string{name} + " needs a value behind it");
    }
    SEMEL_CHECK(read_number(name, words[i + 1], is_refill ? 1 : 0, most, number));
    (is_refill ? terms.refill : cost) = static_cast<std::uint64_t>(number);
  }
  return Done{};
}

}  // namespace

namespace handlers {

void semel_limit(Call& call) {
  RateTerms terms;
  std::uint64_t cost = 1;
  if (!accept(call, read_limit(call.args.subspan(2), terms, cost))) return;
  const Result<RateOutcome> taken = take_rate(call.engine, call.client.db, call.key(), terms, cost);
  if (!taken.ok()) {
    const Error& error = taken.error();
    const bool is_ours = error.code == ErrorCode::bad_option && !error.detail.empty();
    return is_ours ? call.fail("ERR " + error.detail) : call.fail(error.code);
  }
  write_rate(call.reply, *taken);
  if (taken->allowed && cost != 0) call.notify('$', "set", call.key());
}

}  // namespace handlers
}  // namespace semel::net
