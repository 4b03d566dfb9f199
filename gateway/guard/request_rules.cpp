#include "gateway/guard/request_rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/hex.hpp"
#include "base/random.hpp"
#include "semel/patterns/signed_request.hpp"

namespace semel::gateway {
namespace {

constexpr std::size_t token_bytes = 16;

Prepared refuse(Outcome outcome, std::string detail) {
  return {.refusal = Refusal{outcome, std::move(detail)}};
}

Admission not_admitted(Outcome outcome, std::string detail, Millis retry_after = Millis{0}) {
  return {.outcome = outcome, .refusal = Refusal{outcome, std::move(detail), retry_after}};
}

}  // namespace

Result<std::unique_ptr<RequestRules>> RequestRules::open(const std::vector<Route>& routes,
                                                         std::vector<SigningKey> keys) {
  const std::vector<std::string> errors = check(routes, keys);
  if (!errors.empty()) return Error{ErrorCode::bad_option, errors.front()};
  return std::unique_ptr<RequestRules>{new RequestRules{routes, std::move(keys)}};
}

std::vector<std::string> RequestRules::check(const std::vector<Route>& routes,
                                             const std::vector<SigningKey>& keys) {
  const RequestRules rules{routes, keys};
  std::vector<std::string> errors;
  for (const Route& route : routes) rules.check(route, errors);
  return errors;
}

void RequestRules::check(const Route& route, std::vector<std::string>& errors) const {
  const auto fail = [&](const std::string& text) {
    errors.push_back("route '" + route.name + "': " + text);
  };
  if (route.signature.is_required) {
    for (const std::string& id : route.signature.keys) {
      if (secrets_of(route.signature, id).empty()) fail("there is no signing key '" + id + "'");
    }
    if (keys_.empty()) fail("there is no signing key");
  }
  if (route.guard != Guard::issue_token) return;
  const Route* const issued_for = find(route.token_route);
  if (issued_for != nullptr && issued_for->guard == Guard::form_token) return;
  fail("token-route '" + route.token_route + "' is no route with guard = \"form-token\"");
}

const Route* RequestRules::find(std::string_view name) const noexcept {
  const auto found = std::find_if(routes_.begin(), routes_.end(),
                                  [&](const Route& each) { return each.name == name; });
  return found == routes_.end() ? nullptr : &*found;
}

std::vector<std::string> RequestRules::secrets_of(const SignaturePolicy& policy,
                                                  std::string_view id) const {
  const auto& allowed = policy.keys;
  const bool is_allowed =
      allowed.empty() || std::find(allowed.begin(), allowed.end(), id) != allowed.end();
  std::vector<std::string> secrets;
  for (const SigningKey& key : keys_) {
    if (is_allowed && key.id == id) secrets.push_back(key.secret);
  }
  return secrets;
}

std::optional<Refusal> RequestRules::check_headers(const Route& route,
                                                   const Request& request) const {
  std::string_view key_id;
  if (route.signature.is_required) {
    const Result<SignatureHeaders> headers = signature_headers(request.fields);
    if (!headers) return Refusal{Outcome::signature_missing, headers.error().detail};
    key_id = headers->key_id;
  }
  if (route.guard == Guard::idempotency_key) {
    const FieldLookup found = find_field(request.fields, "Idempotency-Key");
    if (!found.value && !route.key_required) return std::nullopt;
    if (!found.value) {
      return Refusal{Outcome::key_missing, "this route requires the header Idempotency-Key"};
    }
    if (found.repeated) return Refusal{Outcome::key_invalid, "Idempotency-Key is there twice"};
    const Result<std::string> key = parse_idempotency_key(*found.value);
    if (!key) return Refusal{Outcome::key_invalid, key.error().detail};
  } else if (route.guard == Guard::form_token) {
    const FieldLookup found = find_field(request.fields, route.token_header);
    if (!found.value || found.value->empty() || found.repeated) {
      return Refusal{Outcome::token_missing,
                     "this route requires the header " + route.token_header + " once"};
    }
    if (found.value->size() > limits::idempotency_key_max) {
      return Refusal{Outcome::token_unknown, "longer than any token"};
    }
  } else if (route.guard != Guard::debounce && route.guard != Guard::issue_token) {
    return std::nullopt;
  }
  const Result<std::string> scope = scope_of(route.scope, request, key_id);
  if (scope) return std::nullopt;
  if (scope.error().code == ErrorCode::refused) {
    return Refusal{Outcome::store_unavailable, scope.error().detail};
  }
  return Refusal{Outcome::scope_missing, scope.error().detail};
}

std::optional<Refusal> RequestRules::check_signature(const Route& route,
                                                     const Request& request) const {
  const Result<SignatureHeaders> headers = signature_headers(request.fields);
  SEMEL_ASSERT(headers.ok());  // check_headers() has looked
  const SignedParts parts{route.signature, request};
  const SignedRequest asked{.caller = headers->key_id,
                            .parameters = parts.fields(),
                            .timestamp_unix_ms = headers->timestamp_unix_ms,
                            .nonce = headers->nonce,
                            .signature = headers->signature};
  if (!is_well_formed(asked)) return nonce_refusal(route, ReplayAnswer::malformed, {});
  const bool is_signed = is_signed_by(asked, secrets_of(route.signature, headers->key_id));
  return nonce_refusal(route, is_signed ? ReplayAnswer::accepted : ReplayAnswer::bad_signature, {});
}

Prepared RequestRules::prepare(const Route& route, const Request& request) const {
  std::string_view key_id;
  if (route.signature.is_required) {
    const Result<SignatureHeaders> headers = signature_headers(request.fields);
    SEMEL_ASSERT(headers.ok());  // check_headers() has looked
    key_id = headers->key_id;
  }
  Prepared made;
  made.work.route = &route;
  std::string key;
  if (route.guard == Guard::idempotency_key) {
    const FieldLookup found = find_field(request.fields, "Idempotency-Key");
    if (!found.value) return made;
    Result<std::string> parsed = parse_idempotency_key(*found.value);
    SEMEL_ASSERT(parsed.ok());
    key = *std::move(parsed);
  } else if (route.guard == Guard::form_token) {
    key = *find_field(request.fields, route.token_header).value;
  } else if (route.guard != Guard::debounce) {
    return made;
  }
  const Result<Fingerprint> print = fingerprint_of_request(route.fingerprint, request);
  if (!print && print.error().code == ErrorCode::syntax) {
    return refuse(Outcome::bad_request, print.error().detail);
  }
  const Result<std::string> scope = scope_of(route.scope, request, key_id);
  if (!print || !scope) return refuse(Outcome::store_unavailable, "libcrypto has failed");
  if (route.guard == Guard::debounce) {
    key = base::hex_of(print->digest);
  } else {
    made.work.fingerprint = *print;
  }
  made.work.is_claimed = true;
  made.work.key = claim_key(*scope, key);
  return made;
}

NewToken RequestRules::new_token(const Route& issuing, const Request& request) const {
  if (auto refusal = check_headers(issuing, request)) return {.refusal = std::move(refusal)};
  const Route* const route = find(issuing.token_route);
  SEMEL_ASSERT(route != nullptr);  // open() has looked
  const Result<std::string> scope = scope_of(route->scope, request, {});
  if (!scope) return {.refusal = Refusal{Outcome::scope_missing, scope.error().detail}};
  std::array<std::uint8_t, token_bytes> random{};
  base::fill_random(random);
  NewToken made{.refusal = std::nullopt, .token = base::hex_of(random)};
  made.key = claim_key(*scope, made.token);
  return made;
}

Refusal busy(const MemoryBudget& budget) {
  constexpr Millis memory_pause{1'000};
  return {Outcome::gateway_busy,
          "body-memory is " + std::to_string(budget.bytes()) + " bytes, which others hold",
          memory_pause};
}

Admission admission_of(Work& work, ClaimOutcome&& outcome) {
  const bool is_debounce = work.route->guard == Guard::debounce;
  switch (outcome.answer) {
    case ClaimAnswer::granted:
    case ClaimAnswer::regranted:
      work.epoch = outcome.epoch;
      return {};
    case ClaimAnswer::in_flight:
      if (is_debounce) {
        return not_admitted(Outcome::debounced, "equal requests are refused for a time",
                            outcome.remaining);
      }
      return not_admitted(Outcome::in_flight, "ask again later", outcome.retry_after);
    case ClaimAnswer::mismatch:
      return not_admitted(Outcome::mismatch, "method, path, query or body differ from the first");
    case ClaimAnswer::in_doubt:
      return not_admitted(Outcome::in_doubt, "an operator must resolve it: " + work.key);
    case ClaimAnswer::unknown:
      return not_admitted(Outcome::token_unknown, "ask for a new one");
    case ClaimAnswer::replay:
    case ClaimAnswer::kept_failure: {
      if (outcome.result_expired || outcome.result.empty()) {
        return not_admitted(Outcome::reply_not_kept, "");
      }
      const auto held = std::make_shared<const std::string>(std::move(outcome.result));
      Result<RecordedReply> reply = decode_reply(*held);
      if (!reply) return not_admitted(Outcome::reply_not_kept, reply.error().detail);
      reply->held_here = held;
      if (reply->body_dropped) {
        return not_admitted(Outcome::reply_not_kept,
                            "its status was " + std::to_string(reply->status));
      }
      return {.outcome = Outcome::replayed, .reply = *std::move(reply)};
    }
    case ClaimAnswer::unanswered:
    case ClaimAnswer::too_old:
    case ClaimAnswer::too_new:
    case ClaimAnswer::busy:
    case ClaimAnswer::unprotected:
      break;
  }
  constexpr Millis store_pause{1'000};
  return not_admitted(Outcome::store_unavailable, std::string{sentence_of(outcome.error)},
                      store_pause);
}

std::optional<Refusal> nonce_refusal(const Route& route, ReplayAnswer answer,
                                     std::string_view busy) {
  switch (answer) {
    case ReplayAnswer::accepted:
      return std::nullopt;
    case ReplayAnswer::bad_signature:
      return Refusal{Outcome::signature_invalid, "by none of the key's secrets"};
    case ReplayAnswer::too_old:
      return Refusal{Outcome::signature_expired,
                     "Semel-Timestamp is " + std::to_string(route.signature.window.count()) +
                         " ms ago or longer"};
    case ReplayAnswer::too_new:
      return Refusal{Outcome::signature_expired, "Semel-Timestamp is in the future"};
    case ReplayAnswer::replayed:
      return Refusal{Outcome::nonce_reused, "Semel-Nonce was used before; sign a repeat anew"};
    case ReplayAnswer::malformed:
      return Refusal{Outcome::signature_invalid, "a part of the signature is out of its range"};
    case ReplayAnswer::unanswered:
    case ReplayAnswer::busy:
      break;
  }
  return Refusal{Outcome::store_unavailable, std::string{busy}};
}

Completion completion_of(OwnerOutcome&& outcome) {
  if (outcome.answer == OwnerAnswer::ok && outcome.error == ErrorCode::ok) return {};
  if (outcome.answer != OwnerAnswer::stale_owner) return {.recorded = Recorded::no};
  Completion completion{.recorded = Recorded::superseded};
  if (outcome.has_result) {
    const auto held = std::make_shared<const std::string>(std::move(outcome.result));
    Result<RecordedReply> newer = decode_reply(*held);
    if (newer && !newer->body_dropped) completion.newer = *std::move(newer);
    if (completion.newer) completion.newer->held_here = held;
  }
  return completion;
}

std::optional<std::string_view> record_of(const Route& route, const RecordedReply& reply,
                                          std::string& room) {
  if (!reply.is_cut && encoded_bytes(reply) <= route.record_bytes) {
    if (!reply.record.empty()) return reply.record;
    room = encode(reply);
    return room;
  }
  if (route.too_large == TooLarge::in_doubt) return std::nullopt;
  room = record_without_body(reply);
  return room;
}

std::string record_without_body(const RecordedReply& reply) {
  return encode({.status = reply.status, .body_dropped = true});
}

}  // namespace semel::gateway
