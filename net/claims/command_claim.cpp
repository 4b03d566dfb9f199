// Single claims: the claim, the owner's calls, and the operator's.
#include "net/claims/claim_call.hpp"
#include "net/claims/claim_reply.hpp"
#include "net/claims/claim_session.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

void fail_namespace(Call& call, std::string_view name, std::string_view why) {
  call.fail(std::string{"ERR namespace "}.append(quoted_word(name)).append(": ").append(why));
}

void fail_namespace(Call& call, std::string_view name, const Error& error) {
  std::string text{resp_prefix_of(error.code)};
  text.append(" namespace ").append(quoted_word(name));
  // The engine's details about a namespace begin with its name: "jobs is ..", "jobs: ..".
  std::string_view detail = error.detail.empty() ? sentence_of(error.code) : error.detail;
  const std::string_view behind = detail.starts_with(name) ? detail.substr(name.size()) : detail;
  const bool has_name = behind.starts_with(": ") || behind.starts_with(" is ");
  call.fail(has_name ? text.append(behind) : text.append(": ").append(detail));
}

bool accept(Call& call, const Status& parsed) {
  if (parsed) [[likely]]
    return true;
  call.fail(parsed.error().detail);
  return false;
}

ClaimOutcome claim(Call& call, Claims& claims, const ClaimRequest& request) {
  Repeat* const repeat = call.context().repeat;
  if (repeat == nullptr) [[likely]]
    return claims.claim(request);
  ClaimOutcome outcome;
  repeat->has_missed = !repeat->from.repeat_claim(claims, request, outcome);
  return outcome;
}

bool set_owner(Call& call, ClaimWords& words) {
  if (call.context().repeat != nullptr) return true;  // finished work has no owner
  // In a group the session is an entry of the replicated log, and arrives with the request.
  if (words.binds && call.context().applies_log() && call.client.session == 0) {
    call.fail("ERR BIND: the node that was asked has opened no session for its connection");
    return false;
  }
  words.request.session = words.binds ? session_of(call.engine, call.client) : 0;
  return true;
}

void fail_about(Call& call, ErrorCode code, std::string_view key) {
  std::string text = error_text(code);
  if (code == ErrorCode::key_too_long) {
    text.append(": ").append(std::to_string(key.size())).append(" bytes and its namespace");
  }
  call.fail(text);
}

OwnerOutcome unknown_claim() {
  OwnerOutcome outcome;
  outcome.answer = OwnerAnswer::unknown;
  return outcome;
}

namespace {

using OwnerVerb = OwnerOutcome (Claims::*)(const OwnerCall&);

/// Parses "ns key epoch" into `owner`.
FoundSpace read_owner(Call& call, OwnerCall& owner) {
  owner.key = call.args[2];
  if (!accept(call, read_epoch(call.args[3], owner.epoch))) return {};
  return find_space(call, call.args[1]);
}

void run_owner(Call& call, OwnerVerb verb, const OwnerCall& owner, FoundSpace found) {
  if (found.undeclared) return write_owner(call.reply, unknown_claim());
  if (found.claims == nullptr) return;
  const DecisionsOf client{call};
  const OwnerOutcome outcome = (found.claims->*verb)(owner);
  if (outcome.error == ErrorCode::key_too_long) return fail_about(call, outcome.error, owner.key);
  write_owner(call.reply, outcome);
}

/// KEEP, RELEASE or IN-DOUBT; none: another word.
std::optional<Policy::OnFailure> on_failure_of(std::string_view word) noexcept {
  if (is_word(word, "keep")) return Policy::OnFailure::keep;
  if (is_word(word, "release")) return Policy::OnFailure::release;
  if (is_word(word, "in-doubt")) return Policy::OnFailure::in_doubt;
  return std::nullopt;
}

/// 1 if there was a record; else 0.
void answer_operator(Call& call, const Result<bool>& found) {
  found.ok() ? write_number(call.reply, *found ? 1 : 0)
             : fail_about(call, found.error().code, call.args[2]);
}

}  // namespace

namespace handlers {

void semel_claim(Call& call) {
  ClaimWords words;
  WordSpan rest = call.args.subspan(3);
  if (!accept(call, read_claim_words(rest, false, words))) return;
  Claims* const claims = claims_of(call, call.args[1]);
  if (claims == nullptr) return;
  words.request.key = call.args[2];
  if (!set_owner(call, words)) return;
  const DecisionsOf client{call};
  const ClaimOutcome outcome = claim(call, *claims, words.request);
  if (has_missed(call)) return;
  if (outcome.error == ErrorCode::key_too_long) {
    return fail_about(call, outcome.error, words.request.key);
  }
  write_claim(call.reply, outcome);
}

void semel_issue(Call& call) {
  std::optional<Millis> ttl;
  if (call.args.size() != 3) {
    if (!is_word(call.args[3], "ttl")) return call.fail(unknown_word(call.args[3], "TTL"));
    if (call.args.size() != 5) return call.fail_arity();
    if (!accept(call, read_ms("TTL", call.args[4], 1, ttl.emplace()))) return;
  }
  const FoundSpace found = find_space(call, call.args[1]);
  Claims* const claims = found.claims;
  if (claims == nullptr && !found.undeclared) return;
  if (claims == nullptr || !claims->policy().issued) {
    return fail_namespace(call, call.args[1], "no keys are issued in it: declare it ISSUED");
  }
  const DecisionsOf client{call};
  answer_operator(call, claims->issue(call.args[2], ttl));
}

void semel_complete(Call& call) {
  if (call.args.size() > 5) return call.fail_arity();
  OwnerCall owner;
  if (call.args.size() == 5) owner.payload = call.args[4];
  run_owner(call, &Claims::complete, owner, read_owner(call, owner));
}

void semel_fail(Call& call) {
  if (call.args.size() > 6) return call.fail_arity();
  OwnerCall owner;
  if (call.args.size() == 5) {
    owner.on_failure = on_failure_of(call.args[4]);
    if (!owner.on_failure) owner.payload = call.args[4];
  } else if (call.args.size() == 6) {
    owner.payload = call.args[4];
    owner.on_failure = on_failure_of(call.args[5]);
    if (!owner.on_failure) return call.fail(unknown_word(call.args[5], "KEEP, RELEASE, IN-DOUBT"));
  }
  run_owner(call, &Claims::fail, owner, read_owner(call, owner));
}

void semel_renew(Call& call) {
  OwnerCall owner;
  if (call.args.size() != 4) {
    if (!is_word(call.args[4], "lease")) return call.fail(unknown_word(call.args[4], "LEASE"));
    if (call.args.size() != 6) return call.fail_arity();
    Millis lease{0};
    if (!accept(call, read_ms("LEASE", call.args[5], 1, lease))) return;
    owner.lease = lease;
  }
  run_owner(call, &Claims::renew, owner, read_owner(call, owner));
}

void semel_release(Call& call) {
  OwnerCall owner;
  run_owner(call, &Claims::release, owner, read_owner(call, owner));
}

void semel_getclaim(Call& call) {
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return write_view(call.reply, {});  // absent
  if (found.claims == nullptr) return;
  const Result<ClaimView> view = found.claims->get(call.args[2]);
  view ? write_view(call.reply, *view) : fail_about(call, view.error().code, call.args[2]);
}

void semel_resolve(Call& call) {
  const bool is_done = is_word(call.args[3], "done");
  if (!is_done && !is_word(call.args[3], "released")) {
    return call.fail(unknown_word(call.args[3], "DONE, RELEASED"));
  }
  if (call.args.size() > (is_done ? 5U : 4U)) return call.fail_arity();
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return write_number(call.reply, 0);
  Claims* const claims = found.claims;
  if (claims == nullptr) return;
  const DecisionsOf client{call};
  const Bytes result = call.args.size() == 5 ? call.args[4] : Bytes{};
  answer_operator(call, claims->resolve(call.args[2],
                                        is_done ? Resolution::done : Resolution::released, result));
}

void semel_forget(Call& call) {
  const FoundSpace found = find_space(call, call.args[1]);
  if (found.undeclared) return write_number(call.reply, 0);
  if (found.claims == nullptr) return;
  const DecisionsOf client{call};
  answer_operator(call, found.claims->forget(call.args[2]));
}

}  // namespace handlers
}  // namespace semel::net
