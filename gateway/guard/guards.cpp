#include "gateway/guard/guards.hpp"

#include <map>
#include <utility>

#include "base/assert.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "semel/patterns/watchdog.hpp"

namespace semel::gateway {
namespace {

/// Declares the namespace, or gives it these terms.
Result<Claims> declare(Engine& engine, const Route& route) {
  const std::string name = std::string{namespace_prefix} + route.name;
  Policy policy = claim_policy(route);
  Result<Claims> made = engine.claims(name, policy);
  if (made || made.error().code != ErrorCode::namespace_differs) return made;
  SEMEL_TRY(changed, engine.change_namespace(name, policy));
  static_cast<void>(changed);  // the caller has the configuration, which shows the change
  return engine.claims(name);
}

ClaimRequest request_of(const Work& work) {
  return {.key = work.key, .fingerprint = work.fingerprint, .owner = owner_label};
}

}  // namespace

/// The state of a route at run time.
struct RouteState {
  const Route* route = nullptr;
  std::optional<Claims> claims{};
  std::optional<ReplayGuard> replay_guard{};
};

class Guards::Impl {
 public:
  Impl(Engine& engine, std::unique_ptr<RequestRules> rules, std::optional<Millis> watch_every)
      : engine_(engine), rules_(std::move(rules)), watchdog_(engine, watch_every) {}

  [[nodiscard]] Status add(const Route& route);
  [[nodiscard]] RouteState& state_of(const Route& route) {
    const auto found = states_.find(&route);
    SEMEL_ASSERT(found != states_.end());
    return found->second;
  }
  [[nodiscard]] RouteState* find(std::string_view name) {
    const Route* const route = rules_->find(name);
    return route == nullptr ? nullptr : &state_of(*route);
  }
  [[nodiscard]] std::optional<Refusal> check_signature(RouteState& state, const Request& request);

  ~Impl() { kept_->clear(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void keep(const Work& work) {
    kept_->keep(work, watchdog_.keep(*state_of(*work.route).claims, work.key, work.epoch,
                                     work.route->lease));
  }
  void stop_keeping(const Work& work) { kept_->stop(work); }

  Engine& engine_;
  const std::unique_ptr<RequestRules> rules_;
  std::map<const Route*, RouteState> states_;  // as it is once open() has returned

  const std::shared_ptr<KeptLeases> kept_ = std::make_shared<KeptLeases>();

 private:
  Watchdog watchdog_;
};

Status Guards::Impl::add(const Route& route) {
  RouteState& state = states_[&route];
  state.route = &route;
  if (route.is_claimed() || route.guard == Guard::debounce) {
    SEMEL_TRY(claims, declare(engine_, route));
    state.claims = claims;
  }
  if (!route.signature.is_required) return Done{};
  const SignaturePolicy& policy = route.signature;
  SEMEL_TRY(guard, ReplayGuard::open(engine_, {.window = policy.window,
                                               .ahead = policy.ahead,
                                               .name = std::string{nonce_prefix} + route.name,
                                               .secrets_of = [this, &policy](Bytes id) {
                                                 return rules_->secrets_of(policy, id);
                                               }}));
  state.replay_guard.emplace(std::move(guard));
  return Done{};
}

std::optional<Refusal> Guards::Impl::check_signature(RouteState& state, const Request& request) {
  const Result<SignatureHeaders> headers = signature_headers(request.fields);
  SEMEL_ASSERT(headers.ok());  // check_headers() has looked
  const SignedParts parts{state.route->signature, request};
  const ReplayOutcome outcome =
      state.replay_guard->check({.caller = headers->key_id,
                                 .parameters = parts.fields(),
                                 .timestamp_unix_ms = headers->timestamp_unix_ms,
                                 .nonce = headers->nonce,
                                 .signature = headers->signature});
  return nonce_refusal(*state.route, outcome.answer, sentence_of(outcome.error));
}

Guards::Guards(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Guards::~Guards() = default;

Result<std::unique_ptr<Guards>> Guards::open(Engine& engine, const std::vector<Route>& routes,
                                             std::vector<SigningKey> keys,
                                             std::optional<Millis> watch_every) {
  SEMEL_TRY(rules, RequestRules::open(routes, std::move(keys)));
  auto impl = std::make_unique<Impl>(engine, std::move(rules), watch_every);
  for (const Route& route : routes) SEMEL_CHECK(impl->add(route));
  return std::unique_ptr<Guards>{new Guards{std::move(impl)}};
}

Engine& Guards::engine() const noexcept {
  return impl_->engine_;
}

const RequestRules& Guards::rules() const noexcept {
  return *impl_->rules_;
}

std::optional<Refusal> Guards::check_headers(const Route& route, const Request& request) const {
  return impl_->rules_->check_headers(route, request);
}

Prepared Guards::prepare(const Route& route, const Request& request) {
  if (const auto refusal = check_headers(route, request)) return {.refusal = refusal};
  if (route.signature.is_required) {
    const auto refusal = impl_->check_signature(impl_->state_of(route), request);
    if (refusal) return {.refusal = refusal};
  }
  return impl_->rules_->prepare(route, request);
}

Admission Guards::claim(Work& work) {
  return admission_of(work, impl_->state_of(*work.route).claims->claim(request_of(work)));
}

void Guards::wait(const Work& work, ClaimCallback done) {
  const Timestamp deadline = impl_->engine_.now() + work.route->wait;
  // No need to cancel it: it ends at the deadline, or with the engine.
  static_cast<void>(impl_->state_of(*work.route)
                        .claims->claim_or_wait(request_of(work), deadline, std::move(done)));
}

bool Guards::keep(const Work& work) {
  const OwnerOutcome renewed =
      impl_->state_of(*work.route).claims->renew({.key = work.key, .epoch = work.epoch});
  const bool has_lease = renewed.answer == OwnerAnswer::ok && renewed.error == ErrorCode::ok;
  if (has_lease) impl_->keep(work);
  return has_lease;
}

std::shared_ptr<KeptLeases> Guards::kept() const noexcept {
  return impl_->kept_;
}

Completion Guards::complete(const Work& work, const RecordedReply& reply) {
  impl_->stop_keeping(work);
  Claims& claims = *impl_->state_of(*work.route).claims;
  std::string room;
  const std::optional<std::string_view> bytes = record_of(*work.route, reply, room);
  if (!bytes) {
    return {.recorded = doubt(work, too_long_for_record) ? Recorded::yes : Recorded::no};
  }
  return completion_of(claims.complete({.key = work.key,
                                        .epoch = work.epoch,
                                        .payload = *bytes,
                                        .keeping = ResultKeeping::optional}));
}

void Guards::release(const Work& work) {
  impl_->stop_keeping(work);
  Claims& claims = *impl_->state_of(*work.route).claims;
  // Where keys are issued, a release is a failure, which makes the token valid again. If that is
  // refused, the claim ends by its lease: this errs on the side of the route's on_lease_end.
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

IssuedToken Guards::issue_token(const Route& issuing, const Request& request) {
  NewToken made = impl_->rules_->new_token(issuing, request);
  if (made.refusal) return {.refusal = std::move(made.refusal)};
  RouteState* const state = impl_->find(issuing.token_route);
  SEMEL_ASSERT(state != nullptr && state->claims);  // open() has looked
  const Result<bool> issued = state->claims->issue(made.key, state->route->token_ttl);
  if (!issued.ok()) {
    return {.refusal =
                Refusal{Outcome::store_unavailable, std::string{sentence_of(issued.error().code)}}};
  }
  return {.refusal = std::nullopt, .token = std::move(made.token)};
}

Status Guards::resolve(std::string_view route, std::string_view key, bool is_done) {
  RouteState* const state = impl_->find(route);
  if (state == nullptr || !state->claims) {
    return Error{ErrorCode::bad_option, "no route with claims has the name '" +
                                            std::string{route.substr(0, limits::route_name_max)} +
                                            "'"};
  }
  // Operators resolve no held claims: their reply may be on its way.
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
