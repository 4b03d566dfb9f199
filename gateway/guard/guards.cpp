#include "gateway/guard/guards.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "base/hex.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "gateway/rules/work_key.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel::gateway {
namespace {

constexpr std::string_view namespace_prefix = "gw.";
constexpr std::string_view owner_label = "gateway";
constexpr std::size_t token_bytes = 16;

Prepared refuse(Outcome outcome, std::string detail) {
  return {.refusal = Refusal{outcome, std::move(detail)}};
}

Admission not_admitted(Outcome outcome, std::string detail, Millis retry_after = Millis{0}) {
  return {.outcome = outcome, .refusal = Refusal{outcome, std::move(detail), retry_after}};
}

/// Declares the namespace, or gives it these terms.
Result<Claims> declare(Engine& engine, const Route& route) {
  const std::string name = std::string{namespace_prefix} + route.name;
  Policy policy = claim_policy(route);
  Result<Claims> made = engine.claims(name, policy);
  if (made || made.error().code != ErrorCode::namespace_differs) return made;
  SEMEL_TRY(changed, engine.change_namespace(name, policy));
  static_cast<void>(changed);  // what changed is in the configuration, which the caller reads
  return engine.claims(name);
}

std::string text_of(ErrorCode code) {
  return std::string{sentence_of(code)};
}

}  // namespace

/// What a route needs at run time.
struct RouteState {
  const Route* route = nullptr;
  std::optional<Claims> claims{};
  std::optional<ReplayGuard> replay_guard{};
};

class Guards::Impl {
 public:
  Impl(Engine& engine, std::vector<SigningKey> keys, std::optional<Millis> watch_every)
      : engine_(engine), keys_(std::move(keys)), watchdog_(engine, watch_every) {}

  [[nodiscard]] Status add(const Route& route);
  [[nodiscard]] Status check_token_routes() const;
  [[nodiscard]] RouteState& state_of(const Route& route) {
    const auto found = states_.find(&route);
    SEMEL_ASSERT(found != states_.end());
    return found->second;
  }
  [[nodiscard]] RouteState* find(std::string_view name) {
    const auto found = std::find_if(states_.begin(), states_.end(),
                                    [&](const auto& each) { return each.first->name == name; });
    return found == states_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::vector<std::string> secrets_of(const SignaturePolicy& policy,
                                                    std::string_view id) const;
  [[nodiscard]] std::optional<Refusal> check_signature(RouteState& state, const Request& request,
                                                       const SignatureHeaders& headers);

  /// Two owners of a key may be here at a time: one that has lost its lease, and the next.
  using Kept = std::tuple<const Route*, Epoch, std::string>;

  void keep(const Work& work) {
    Watchdog::Guard guard =
        watchdog_.keep(*state_of(*work.route).claims, work.key, work.epoch, work.route->lease);
    const base::MutexLock lock{mutex_};
    kept_.insert_or_assign(Kept{work.route, work.epoch, work.key}, std::move(guard));
  }
  void stop_keeping(const Work& work) {
    Watchdog::Guard ended;  // destroyed without the lock: it may wait for a renewal
    const base::MutexLock lock{mutex_};
    // By a view: it also runs where there is no memory.
    const auto found = kept_.find(std::tuple{work.route, work.epoch, std::string_view{work.key}});
    if (found == kept_.end()) return;
    ended = std::move(found->second);
    kept_.erase(found);
  }

  Engine& engine_;
  const std::vector<SigningKey> keys_;
  std::map<const Route*, RouteState> states_;  // as it is once open() has returned

 private:
  Watchdog watchdog_;
  base::Mutex mutex_;
  std::map<Kept, Watchdog::Guard, std::less<>> kept_ SEMEL_GUARDED_BY(mutex_);
};

Status Guards::Impl::add(const Route& route) {
  RouteState& state = states_[&route];
  state.route = &route;
  if (route.is_claimed() || route.guard == Guard::debounce) {
    SEMEL_TRY(claims, declare(engine_, route));
    state.claims = claims;
  }
  if (!route.signature.is_required) return Done{};
  for (const std::string& id : route.signature.keys) {
    if (secrets_of(route.signature, id).empty()) {
      return Error{ErrorCode::bad_option,
                   "route '" + route.name + "': there is no signing key '" + id + "'"};
    }
  }
  if (keys_.empty()) {
    return Error{ErrorCode::bad_option, "route '" + route.name + "': there is no signing key"};
  }
  const SignaturePolicy& policy = route.signature;
  SEMEL_TRY(guard, ReplayGuard::open(engine_, {.window = policy.window,
                                               .ahead = policy.ahead,
                                               .name = "gw-nonce." + route.name,
                                               .secrets_of = [this, &policy](Bytes id) {
                                                 return secrets_of(policy, id);
                                               }}));
  state.replay_guard.emplace(std::move(guard));
  return Done{};
}

Status Guards::Impl::check_token_routes() const {
  for (const auto& [route, state] : states_) {
    if (route->guard != Guard::issue_token) continue;
    const bool is_there = std::any_of(states_.begin(), states_.end(), [&](const auto& other) {
      return other.first->name == route->token_route && other.first->guard == Guard::form_token;
    });
    if (!is_there) {
      return Error{ErrorCode::bad_option, "route '" + route->name + "': token_route '" +
                                              route->token_route +
                                              "' is no route with guard = \"form-token\""};
    }
  }
  return Done{};
}

std::vector<std::string> Guards::Impl::secrets_of(const SignaturePolicy& policy,
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

std::optional<Refusal> Guards::Impl::check_signature(RouteState& state, const Request& request,
                                                     const SignatureHeaders& headers) {
  const SignedParts parts{state.route->signature, request};
  const ReplayOutcome outcome =
      state.replay_guard->check({.caller = headers.key_id,
                                 .parameters = parts.fields(),
                                 .timestamp_unix_ms = headers.timestamp_unix_ms,
                                 .nonce = headers.nonce,
                                 .signature = headers.signature});
  switch (outcome.answer) {
    case ReplayAnswer::accepted:
      return std::nullopt;
    case ReplayAnswer::bad_signature:
      return Refusal{Outcome::signature_invalid, "by none of the key's secrets"};
    case ReplayAnswer::too_old:
      return Refusal{Outcome::signature_expired,
                     "Semel-Timestamp is " + std::to_string(state.route->signature.window.count()) +
                         " ms ago or longer"};
    case ReplayAnswer::too_new:
      return Refusal{Outcome::signature_expired, "Semel-Timestamp is in the future"};
    case ReplayAnswer::replayed:
      return Refusal{Outcome::nonce_reused, "Semel-Nonce was used before; sign a repeat anew"};
    case ReplayAnswer::malformed:
      return Refusal{Outcome::signature_invalid, "a part of the signature is out of its range"};
    case ReplayAnswer::busy:
      break;
  }
  return Refusal{Outcome::store_unavailable, text_of(outcome.error)};
}

Guards::Guards(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Guards::~Guards() = default;

Result<std::unique_ptr<Guards>> Guards::open(Engine& engine, const std::vector<Route>& routes,
                                             std::vector<SigningKey> keys,
                                             std::optional<Millis> watch_every) {
  auto impl = std::make_unique<Impl>(engine, std::move(keys), watch_every);
  for (const Route& route : routes) SEMEL_CHECK(impl->add(route));
  SEMEL_CHECK(impl->check_token_routes());
  return std::unique_ptr<Guards>{new Guards{std::move(impl)}};
}

Engine& Guards::engine() const noexcept {
  return impl_->engine_;
}

std::optional<Refusal> Guards::check_headers(const Route& route, const Request& request) const {
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

Prepared Guards::prepare(const Route& route, const Request& request) {
  if (const auto refusal = check_headers(route, request)) return {.refusal = refusal};
  std::string_view key_id;
  if (route.signature.is_required) {
    const Result<SignatureHeaders> headers = signature_headers(request.fields);
    SEMEL_ASSERT(headers.ok());  // check_headers() has looked
    key_id = headers->key_id;
    const auto refusal = impl_->check_signature(impl_->state_of(route), request, *headers);
    if (refusal) return {.refusal = refusal};
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

namespace {

ClaimRequest request_of(const Work& work) {
  return {.key = work.key, .fingerprint = work.fingerprint, .owner = owner_label};
}

}  // namespace

Admission Guards::claim(Work& work) {
  return admission_of(work, impl_->state_of(*work.route).claims->claim(request_of(work)));
}

void Guards::wait(const Work& work, ClaimCallback done) {
  const Timestamp deadline = impl_->engine_.now() + work.route->wait;
  // No need to cancel it: it ends at the deadline, or with the engine.
  static_cast<void>(impl_->state_of(*work.route)
                        .claims->claim_or_wait(request_of(work), deadline, std::move(done)));
}

Admission Guards::admission_of(Work& work, ClaimOutcome&& outcome) const {
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
      Result<RecordedReply> reply = decode_reply(outcome.result);
      if (!reply) return not_admitted(Outcome::reply_not_kept, reply.error().detail);
      if (reply->body_dropped) {
        return not_admitted(Outcome::reply_not_kept,
                            "its status was " + std::to_string(reply->status));
      }
      return {.outcome = Outcome::replayed, .reply = *std::move(reply)};
    }
    case ClaimAnswer::too_old:
    case ClaimAnswer::too_new:
    case ClaimAnswer::busy:
    case ClaimAnswer::unprotected:
      break;
  }
  constexpr Millis store_pause{1'000};
  return not_admitted(Outcome::store_unavailable, text_of(outcome.error), store_pause);
}

Guards::Keeper::Keeper(Guards& guards, const Work& work) : guards_(guards), work_(work) {
  const OwnerOutcome renewed =
      guards.impl_->state_of(*work.route).claims->renew({.key = work.key, .epoch = work.epoch});
  has_lease_ = renewed.answer == OwnerAnswer::ok && renewed.error == ErrorCode::ok;
  if (has_lease_) guards.impl_->keep(work);
}

Guards::Keeper::~Keeper() {
  guards_.impl_->stop_keeping(work_);
}

Completion Guards::complete(const Work& work, const RecordedReply& reply) {
  impl_->stop_keeping(work);
  Claims& claims = *impl_->state_of(*work.route).claims;
  std::string bytes;
  if (encoded_bytes(reply) <= work.route->record_bytes) {
    bytes = encode(reply);
  } else if (work.route->too_large == TooLarge::in_doubt) {
    const bool is_noted = doubt(work, "the reply was longer than record_bytes");
    return {.recorded = is_noted ? Recorded::yes : Recorded::no};
  } else {
    bytes = encode({.status = reply.status, .body_dropped = true});
  }
  OwnerOutcome outcome = claims.complete(
      {.key = work.key, .epoch = work.epoch, .payload = bytes, .keeping = ResultKeeping::optional});
  if (outcome.answer == OwnerAnswer::ok && outcome.error == ErrorCode::ok) return {};
  if (outcome.answer != OwnerAnswer::stale_owner) return {.recorded = Recorded::no};
  Completion completion{.recorded = Recorded::superseded};
  if (outcome.has_result) {
    Result<RecordedReply> newer = decode_reply(outcome.result);
    if (newer && !newer->body_dropped) completion.newer = *std::move(newer);
  }
  return completion;
}

void Guards::release(const Work& work) {
  impl_->stop_keeping(work);
  Claims& claims = *impl_->state_of(*work.route).claims;
  // Where keys are issued a release is a failure that gives the token back. A refusal leaves the
  // claim to its lease, which errs on the side of the route's on_lease_end.
  static_cast<void>(claims.fail(
      {.key = work.key, .epoch = work.epoch, .on_failure = Policy::OnFailure::release}));
}

bool Guards::doubt(const Work& work, std::string_view why) {
  impl_->stop_keeping(work);
  const OwnerOutcome outcome = impl_->state_of(*work.route)
                                   .claims->fail({.key = work.key,
                                                  .epoch = work.epoch,
                                                  .payload = why,
                                                  .on_failure = Policy::OnFailure::in_doubt});
  return outcome.answer == OwnerAnswer::ok && outcome.error == ErrorCode::ok;
}

Guards::IssuedToken Guards::issue_token(const Route& issuing, const Request& request) {
  if (auto refusal = check_headers(issuing, request)) return {.refusal = std::move(refusal)};
  RouteState* const state = impl_->find(issuing.token_route);
  SEMEL_ASSERT(state != nullptr && state->claims);  // open() has looked
  const Result<std::string> scope = scope_of(state->route->scope, request, {});
  if (!scope) return {.refusal = Refusal{Outcome::scope_missing, scope.error().detail}};
  std::array<std::uint8_t, token_bytes> random{};
  base::fill_random(random);
  std::string token = base::hex_of(random);
  const Result<bool> issued =
      state->claims->issue(claim_key(*scope, token), state->route->token_ttl);
  if (!issued.ok()) {
    return {.refusal = Refusal{Outcome::store_unavailable, text_of(issued.error().code)}};
  }
  return {.refusal = std::nullopt, .token = std::move(token)};
}

Status Guards::resolve(std::string_view route, std::string_view key, bool is_done) {
  RouteState* const state = impl_->find(route);
  if (state == nullptr || !state->claims) {
    return Error{ErrorCode::bad_option, "no route with claims has the name '" +
                                            std::string{route.substr(0, limits::route_name_max)} +
                                            "'"};
  }
  // Claims that are held are not for operators here: their reply may be on its way.
  SEMEL_TRY(view, state->claims->get(key));
  if (view.state != ClaimState::in_doubt) {
    return Error{ErrorCode::no_such_key, "nothing is in doubt under this key"};
  }
  const Result<bool> resolved =
      state->claims->resolve(key, is_done ? Resolution::done : Resolution::released);
  if (!resolved.ok()) return resolved.error();
  if (!*resolved) return Error{ErrorCode::no_such_key, "nothing is in doubt under this key"};
  return Done{};
}

}  // namespace semel::gateway
