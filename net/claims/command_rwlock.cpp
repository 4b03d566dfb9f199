// Read/write locks. What one is: patterns/holders/read_write_lock.cpp.
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/reply_error.hpp"
#include "net/resp/text.hpp"
#include "semel/patterns/read_write_lock.hpp"

namespace semel::net::handlers {
namespace {

struct AccessWords {
  Access access = Access::read;
  std::optional<Duration> next{};
  ClaimWords claim{};
};

[[nodiscard]] Status read_access_words(WordSpan words, AccessWords& read) {
  if (is_word(words[3], "write")) {
    read.access = Access::write;
  } else if (!is_word(words[3], "read")) {
    return reply_error(unknown_word(words[3], "READ, WRITE"));
  }
  WordSpan rest = words.subspan(4);
  const bool has_next = rest.size() > 1 && is_word(rest[0], "next");
  if (has_next) {
    std::int64_t ms = 0;
    SEMEL_CHECK(read_number("NEXT", rest[1], 1, limits::next_max.count(), ms));
    read.next = Millis{ms};
    rest = rest.subspan(2);
  }
  SEMEL_CHECK(read_claim_words(rest, false, read.claim));
  if (has_next && !read.claim.request.claim_id) {
    return reply_error("ERR NEXT needs a CLAIM-ID");
  }
  return Done{};
}

}  // namespace

void semel_rwlock(Call& call) {
  AccessWords words;
  if (!accept(call, read_access_words(call.args, words))) return;
  Claims* const claims = claims_of(call, call.args[1]);
  if (claims == nullptr) return;
  ClaimRequest& request = words.claim.request;
  request.key = call.args[2];
  if (!set_owner(call, words.claim)) return;
  const DecisionsOf client{call};
  const AccessOutcome found = claim_access(*claims, request, words.access, words.next);
  if (found.claim.error == ErrorCode::key_too_long) {
    return fail_about(call, found.claim.error, request.key);
  }
  write_access(call.reply, found);
}

void semel_rwlocks(Call& call) {
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return call.reply.array(0);
  if (found.claims == nullptr) return;
  const Result<std::vector<AccessView>> held = accesses_held(*found.claims, call.args[2]);
  if (!held) return fail_about(call, held.error().code, call.args[2]);
  call.reply.array(held->size());
  for (const AccessView& each : *held) write_held_access(call.reply, each);
}

}  // namespace semel::net::handlers
