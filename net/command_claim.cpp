// Claims one by one: asked for, ended by their owner, looked at, and set right by an operator.
#include "net/claim_call.hpp"
#include "net/claim_reply.hpp"
#include "net/claim_session.hpp"
#include "net/handlers.hpp"
#include "net/node.hpp"
#include "net/text.hpp"

namespace semel::net {

std::optional<Claims> claims_of(Call& call, std::string_view name) {
  std::optional<Claims> claims = call.node.claims.known(name);
  if (!claims) [[unlikely]] {
    const Result<Claims> opened = call.node.claims.open(name, call.client.db);
    if (!opened) {
      fail_namespace(call, name, opened.error().detail);
      return std::nullopt;
    }
    claims = *opened;
  }
  if (claims->policy().db == call.client.db) [[likely]]
    return claims;
  fail_namespace(call, name, ClaimSpaces::elsewhere(*claims, call.client.db));
  return std::nullopt;
}

void fail_namespace(Call& call, std::string_view name, std::string_view why) {
  call.fail(std::string{"ERR namespace "}.append(quoted_word(name)).append(": ").append(why));
}

bool accept(Call& call, const std::string& fault) {
  if (fault.empty()) [[likely]]
    return true;
  call.fail(fault);
  return false;
}

void set_owner(Call& call, ClaimWords& words) {
  words.request.session = words.binds ? session_of(call.engine, call.client) : 0;
}

void fail_about(Call& call, ErrorCode code, std::string_view key) {
  std::string text = error_text(code);
  if (code == ErrorCode::key_too_long) {
    text.append(": ").append(std::to_string(key.size())).append(" bytes and its namespace");
  }
  call.fail(text);
}

namespace {

using OwnerVerb = OwnerOutcome (Claims::*)(const OwnerCall&);

/// "ns key epoch": `owner` is filled; none: an error has been written.
std::optional<Claims> read_owner(Call& call, OwnerCall& owner) {
  owner.key = call.words[2];
  if (!accept(call, read_epoch(call.words[3], owner.epoch))) return std::nullopt;
  return claims_of(call, call.words[1]);
}

void run_owner(Call& call, OwnerVerb verb, const OwnerCall& owner, std::optional<Claims> claims) {
  if (!claims) return;
  const OwnerOutcome outcome = ((*claims).*verb)(owner);
  if (outcome.error == ErrorCode::key_too_long) return fail_about(call, outcome.error, owner.key);
  write_owner(call.reply, outcome);
}

/// KEEP or RELEASE; none: another word.
std::optional<Policy::OnFailure> on_failure_of(std::string_view word) noexcept {
  if (is_word(word, "keep")) return Policy::OnFailure::keep;
  if (is_word(word, "release")) return Policy::OnFailure::release;
  if (is_word(word, "in-doubt")) return Policy::OnFailure::in_doubt;
  return std::nullopt;
}

/// 1 if something was there; else 0.
void answer_operator(Call& call, const Result<bool>& found) {
  found.ok() ? call.reply.integer(*found ? 1 : 0)
             : fail_about(call, found.error().code, call.words[2]);
}

}  // namespace

namespace handlers {

void semel_claim(Call& call) {
  ClaimWords words;
  WordSpan rest = call.words.subspan(3);
  if (!accept(call, read_claim_words(rest, false, words))) return;
  std::optional<Claims> claims = claims_of(call, call.words[1]);
  if (!claims) return;
  words.request.key = call.words[2];
  set_owner(call, words);
  const ClaimOutcome outcome = claims->claim(words.request);
  if (outcome.error == ErrorCode::key_too_long) {
    return fail_about(call, outcome.error, words.request.key);
  }
  write_claim(call.reply, outcome);
}

void semel_issue(Call& call) {
  std::optional<Millis> ttl;
  if (call.words.size() != 3) {
    if (!is_word(call.words[3], "ttl")) return call.fail(unknown_word(call.words[3], "TTL"));
    if (call.words.size() != 5) return call.fail_arity();
    if (!accept(call, read_ms("TTL", call.words[4], 1, ttl.emplace()))) return;
  }
  std::optional<Claims> claims = claims_of(call, call.words[1]);
  if (!claims) return;
  if (!claims->policy().issued) {
    return fail_namespace(call, call.words[1], "no keys are issued in it: declare it ISSUED");
  }
  answer_operator(call, claims->issue(call.words[2], ttl));
}

void semel_complete(Call& call) {
  if (call.words.size() > 5) return call.fail_arity();
  OwnerCall owner;
  if (call.words.size() == 5) owner.payload = call.words[4];
  run_owner(call, &Claims::complete, owner, read_owner(call, owner));
}

void semel_fail(Call& call) {
  if (call.words.size() > 6) return call.fail_arity();
  OwnerCall owner;
  if (call.words.size() == 5) {
    owner.on_failure = on_failure_of(call.words[4]);
    if (!owner.on_failure) owner.payload = call.words[4];
  } else if (call.words.size() == 6) {
    owner.payload = call.words[4];
    owner.on_failure = on_failure_of(call.words[5]);
    if (!owner.on_failure) return call.fail(unknown_word(call.words[5], "KEEP, RELEASE, IN-DOUBT"));
  }
  run_owner(call, &Claims::fail, owner, read_owner(call, owner));
}

void semel_renew(Call& call) {
  OwnerCall owner;
  if (call.words.size() != 4) {
    if (!is_word(call.words[4], "lease")) return call.fail(unknown_word(call.words[4], "LEASE"));
    if (call.words.size() != 6) return call.fail_arity();
    if (!accept(call, read_ms("LEASE", call.words[5], 1, owner.lease.emplace()))) return;
  }
  run_owner(call, &Claims::renew, owner, read_owner(call, owner));
}

void semel_release(Call& call) {
  OwnerCall owner;
  run_owner(call, &Claims::release, owner, read_owner(call, owner));
}

void semel_getclaim(Call& call) {
  std::optional<Claims> claims = claims_of(call, call.words[1]);
  if (!claims) return;
  const Result<ClaimView> view = claims->get(call.words[2]);
  view ? write_view(call.reply, *view) : fail_about(call, view.error().code, call.words[2]);
}

void semel_resolve(Call& call) {
  const bool is_done = is_word(call.words[3], "done");
  if (!is_done && !is_word(call.words[3], "released")) {
    return call.fail(unknown_word(call.words[3], "DONE, RELEASED"));
  }
  if (call.words.size() > (is_done ? 5U : 4U)) return call.fail_arity();
  std::optional<Claims> claims = claims_of(call, call.words[1]);
  if (!claims) return;
  const Bytes result = call.words.size() == 5 ? call.words[4] : Bytes{};
  answer_operator(call, claims->resolve(call.words[2],
                                        is_done ? Resolution::done : Resolution::released, result));
}

void semel_forget(Call& call) {
  std::optional<Claims> claims = claims_of(call, call.words[1]);
  if (claims) answer_operator(call, claims->forget(call.words[2]));
}

}  // namespace handlers
}  // namespace semel::net
