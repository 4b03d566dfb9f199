// Namespaces and claims.
#include <vector>

#include "bindings/c/requests.hpp"
#include "semel/engine_host.hpp"
#include "semel/patterns/once.hpp"
#include "semel/policies.hpp"

using namespace semel;

// The numbers of semel.h are those of the C++ headers.
#define SEMEL_SAME(number, value) static_assert((number) == static_cast<int>(value))
SEMEL_SAME(SEMEL_UNANSWERED, ClaimAnswer::unanswered);
SEMEL_SAME(SEMEL_GRANTED, ClaimAnswer::granted);
SEMEL_SAME(SEMEL_REGRANTED, ClaimAnswer::regranted);
SEMEL_SAME(SEMEL_IN_FLIGHT, ClaimAnswer::in_flight);
SEMEL_SAME(SEMEL_REPLAY, ClaimAnswer::replay);
SEMEL_SAME(SEMEL_KEPT_FAILURE, ClaimAnswer::kept_failure);
SEMEL_SAME(SEMEL_MISMATCH, ClaimAnswer::mismatch);
SEMEL_SAME(SEMEL_IN_DOUBT, ClaimAnswer::in_doubt);
SEMEL_SAME(SEMEL_TOO_OLD, ClaimAnswer::too_old);
SEMEL_SAME(SEMEL_BUSY, ClaimAnswer::busy);
SEMEL_SAME(SEMEL_UNPROTECTED, ClaimAnswer::unprotected);
SEMEL_SAME(SEMEL_TOO_NEW, ClaimAnswer::too_new);
SEMEL_SAME(SEMEL_UNKNOWN, ClaimAnswer::unknown);
SEMEL_SAME(SEMEL_STATE_ABSENT, ClaimState::absent);
SEMEL_SAME(SEMEL_STATE_HELD, ClaimState::held);
SEMEL_SAME(SEMEL_STATE_DONE, ClaimState::done);
SEMEL_SAME(SEMEL_STATE_FAILED, ClaimState::failed);
SEMEL_SAME(SEMEL_STATE_IN_DOUBT, ClaimState::in_doubt);
SEMEL_SAME(SEMEL_STATE_VACANT, ClaimState::vacant);
SEMEL_SAME(SEMEL_ON_LEASE_END_RETRY, Policy::OnLeaseEnd::retry);
SEMEL_SAME(SEMEL_ON_LEASE_END_IN_DOUBT, Policy::OnLeaseEnd::in_doubt);
SEMEL_SAME(SEMEL_ON_FAILURE_RELEASE, Policy::OnFailure::release);
SEMEL_SAME(SEMEL_ON_FAILURE_KEEP, Policy::OnFailure::keep);
SEMEL_SAME(SEMEL_ON_FAILURE_IN_DOUBT, Policy::OnFailure::in_doubt);

namespace semel::c {

int check_given(unsigned given, unsigned known) noexcept {
  if ((given & ~known) == 0) return SEMEL_OK;
  return guarded([&] {
    return say(ErrorCode::bad_option, "given = " + std::to_string(given) +
                                          ", allowed are bits of " + std::to_string(known));
  });
}

int check(const semel_request& given) noexcept {
  constexpr unsigned known = SEMEL_GIVEN_LEASE | SEMEL_GIVEN_FIRST_SENT;
  if (const int error = check_given(given.given, known)) return error;
  if (!is_sound(given.key, given.key_length)) return say_null("key");
  if (!is_sound(given.owner, given.owner_length)) return say_null("owner");
  if (given.wait_ms < 0 || given.wait_ms > limits::ttl_max.count()) {
    return guarded([&] {
      return say(ErrorCode::bad_option, "wait_ms = " + std::to_string(given.wait_ms) +
                                            ", allowed 0.." +
                                            std::to_string(limits::ttl_max.count()));
    });
  }
  return SEMEL_OK;
}

int check_claim(const semel_request& given, bool may_wait) noexcept {
  if (const int error = check(given); error != SEMEL_OK) return error;
  if (given.keep_lease == 0 && given.without_key == 0 && (may_wait || given.wait_ms == 0)) {
    return SEMEL_OK;
  }
  return guarded([&] {
    return say(ErrorCode::bad_option, may_wait ? "keep_lease and without_key are for functions"
                                               : "a batch neither waits nor runs functions");
  });
}

ClaimRequest request_of(const semel_request& given) noexcept {
  return {.key = bounded_key(given.key, given.key_length),
          .lease = lease_of(given),
          .fingerprint = fingerprint_from(given.fingerprint),
          .claim_id = claim_id_of(given),
          .first_sent_unix_ms = first_sent_of_request(given),
          .owner = bounded(given.owner, given.owner_length, limits::owner_label_max),
          .session = session_of(given.remote_owner)};
}

void fill_claim(Answer<semel_claim_outcome>& to, const ClaimOutcome& from) noexcept {
  to->answer = static_cast<int>(from.answer);
  to->error = number_of(from.error);
  to->takeover = from.takeover ? 1 : 0;
  to->result_expired = from.result_expired ? 1 : 0;
  to->poison = from.poison ? 1 : 0;
  to->attempt = from.attempt;
  to->epoch = from.epoch;
  to->remaining_ms = from.remaining.count();
  to->retry_after_ms = from.retry_after.count();
  to->window_start_unix_ms = from.window_start_unix_ms.value_or(0);
  to->window_end_unix_ms = from.window_end_unix_ms.value_or(0);
  to->folded_onto = from.folded_onto ? static_cast<semel_int64>(*from.folded_onto) : -1;
  to->version = from.version;
  const bool replays = from.answer == ClaimAnswer::replay && !from.result_expired;
  if (replays || from.answer == ClaimAnswer::kept_failure) to.set(to->result, from.result);
  if (!from.owner.empty()) to.set(to->owner, from.owner);
}

void take_back(Claims& space, Bytes key, ClaimOutcome& claim) noexcept {
  detail::give_back(space, key, claim);
  claim = {};
  claim.answer = ClaimAnswer::busy;
  claim.error = ErrorCode::memory_full;
}

}  // namespace semel::c

namespace {

[[nodiscard]] Millis time_or(semel_int64 ms, Millis usual) noexcept {
  return ms == 0 ? usual : Millis{ms};
}

[[nodiscard]] Result<Policy> policy_of(const semel_policy& given) {
  const auto out_of_range = [](const char* name, int value, int most) {
    return Error{ErrorCode::bad_option, std::string{"semel_policy::"} + name + " = " +
                                            std::to_string(value) + ", allowed 0.." +
                                            std::to_string(most)};
  };
  if (given.on_lease_end < 0 || given.on_lease_end > 1) {
    return out_of_range("on_lease_end", given.on_lease_end, 1);
  }
  if (given.on_failure < 0 || given.on_failure > 1) {
    return out_of_range("on_failure", given.on_failure, 1);
  }
  if (given.on_exception < 0 || given.on_exception > 2) {
    return out_of_range("on_exception", given.on_exception, 2);
  }
  constexpr int db_last = int{limits::db_count} - 1;
  if (given.db < 0 || given.db > db_last) return out_of_range("db", given.db, db_last);
  Policy policy;
  policy.lease = time_or(given.lease_ms, policy.lease);
  policy.result_ttl = time_or(given.result_ttl_ms, policy.result_ttl);
  policy.unique_ttl = Millis{given.unique_ttl_ms};
  policy.sliding_max = Millis{given.sliding_max_ms};
  policy.failure_ttl = time_or(given.failure_ttl_ms, policy.failure_ttl);
  policy.attempts_ttl = time_or(given.attempts_ttl_ms, policy.attempts_ttl);
  policy.window = Millis{given.window_ms};
  policy.ahead = Millis{given.ahead_ms};
  policy.retry_after_max = time_or(given.retry_after_max_ms, policy.retry_after_max);
  policy.attempts_max = given.attempts_max;
  policy.on_lease_end = static_cast<Policy::OnLeaseEnd>(given.on_lease_end);
  policy.on_failure = static_cast<Policy::OnFailure>(given.on_failure);
  policy.on_exception = static_cast<Policy::OnFailure>(given.on_exception);
  policy.strict = given.strict != 0;
  policy.fail_open = given.fail_open != 0;
  policy.issued = given.issued != 0;
  policy.fair = given.fair != 0;
  policy.db = static_cast<std::uint8_t>(given.db);
  return policy;
}

void fill(c::Answer<semel_policy>& to, const Policy& policy) noexcept {
  to->lease_ms = policy.lease.count();
  to->result_ttl_ms = policy.result_ttl.count();
  to->unique_ttl_ms = policy.unique_ttl.count();
  to->sliding_max_ms = policy.sliding_max.count();
  to->failure_ttl_ms = policy.failure_ttl.count();
  to->attempts_ttl_ms = policy.attempts_ttl.count();
  to->window_ms = policy.window.count();
  to->ahead_ms = policy.ahead.count();
  to->retry_after_max_ms = policy.retry_after_max.count();
  to->attempts_max = policy.attempts_max;
  to->on_lease_end = static_cast<int>(policy.on_lease_end);
  to->on_failure = static_cast<int>(policy.on_failure);
  to->on_exception = static_cast<int>(policy.on_exception);
  to->strict = policy.strict ? 1 : 0;
  to->fail_open = policy.fail_open ? 1 : 0;
  to->issued = policy.issued ? 1 : 0;
  to->fair = policy.fair ? 1 : 0;
  to->db = policy.db;
}

}  // namespace

int semel_policy_named(const char* name, semel_policy* policy) {
  if (name == nullptr || policy == nullptr) return c::say_null("name or policy");
  c::Answer answer{policy};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    const auto known = policies::named(name);
    if (!known) {
      constexpr std::size_t shown_max = 60;
      std::string text = "no policy is named '" + std::string{name}.substr(0, shown_max);
      text += "'; there are";
      for (const NamedPolicy& each : policies::all) {
        text.append(&each == policies::all.begin() ? " " : ", ").append(each.name);
      }
      return c::say(ErrorCode::bad_option, text);
    }
    fill(answer, *known);
    return answer.deliver(SEMEL_OK);
  });
}

int semel_claims_open(semel_engine* engine, const char* name, const semel_policy* policy,
                      semel_claims** claims) {
  if (engine == nullptr || name == nullptr || claims == nullptr) {
    return c::say_null("engine, name or claims");
  }
  *claims = nullptr;
  if (const int error = c::check_process(*engine)) return error;
  semel_policy given;
  if (const int error = c::read_sized(policy, given); error != SEMEL_OK) return error;
  return c::guarded([&] {
    const auto wanted = policy_of(given);
    if (!wanted) return c::say(wanted.error());
    const auto made = policy == nullptr ? engine->engine->claims(Bytes{name})
                                        : engine->engine->claims(name, *wanted);
    if (!made.ok()) return c::say(made.error());
    const base::MutexLock lock{engine->mutex};
    auto& kept = engine->claims[name];
    // A handle that was given out stays valid until the engine is closed.
    if (kept != nullptr && kept->claims.is_dropped()) engine->dropped.push_back(std::move(kept));
    if (kept == nullptr) kept.reset(new semel_claims{*made, engine});
    *claims = kept.get();
    return int{SEMEL_OK};
  });
}

int semel_claims_change(semel_engine* engine, const char* name, const semel_policy* policy,
                        semel_buffer* changed) {
  if (engine == nullptr || name == nullptr || policy == nullptr) {
    return c::say_null("engine, name or policy");
  }
  if (const int error = c::check_process(*engine)) return error;
  semel_policy given;
  if (const int error = c::read_sized(policy, given); error != SEMEL_OK) return error;
  return c::guarded([&] {
    const auto wanted = policy_of(given);
    if (!wanted) return c::say(wanted.error());
    const Result<std::string> done = engine->engine->change_namespace(name, *wanted);
    if (!done) return c::say(done.error());
    if (changed != nullptr && !c::put(*changed, *done)) return c::say_unknown_outcome("no memory");
    return int{SEMEL_OK};
  });
}

SEMEL_SAME(SEMEL_DROP_UNUSED, DropRule::unused);
SEMEL_SAME(SEMEL_DROP_FINISHED, DropRule::finished);
SEMEL_SAME(SEMEL_DROP_ALL, DropRule::all);

int semel_claims_drop(semel_engine* engine, const char* name, int rule, semel_uint64* gone) {
  if (engine == nullptr || name == nullptr) return c::say_null("engine or name");
  if (const int error = c::check_process(*engine)) return error;
  return c::guarded([&] {
    if (rule < SEMEL_DROP_UNUSED || rule > SEMEL_DROP_ALL) {
      return c::say(ErrorCode::bad_option, "rule = " + std::to_string(rule) + ", allowed 0..2");
    }
    const auto dropped = engine->engine->drop_namespace(name, static_cast<DropRule>(rule));
    if (!dropped) return c::say(dropped.error());
    if (gone != nullptr) *gone = dropped->finished + dropped->held;
    return int{SEMEL_OK};
  });
}

int semel_claims_list(semel_engine* engine, semel_uint64* cursor, size_t count,
                      semel_buffer* names) {
  if (engine == nullptr || cursor == nullptr || names == nullptr) {
    return c::say_null("engine, cursor or names");
  }
  if (const int error = c::check_process(*engine)) return error;
  return c::guarded([&] {
    std::string all;
    const auto next = engine->engine->host().list_namespaces(
        *cursor, count, [&](Bytes name, const Policy&) { all.append(name).push_back('\n'); });
    if (!next.ok()) return c::say(next.error());
    if (!c::put(*names, all)) return c::say(ErrorCode::memory_full, "for the names");
    *cursor = *next;
    return int{SEMEL_OK};
  });
}

int semel_claim(semel_claims* claims, const semel_request* request, semel_claim_outcome* outcome) {
  if (claims == nullptr) return c::say_null("claims");
  semel_request given;
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  if (const int error = c::check_claim(given, true); error != SEMEL_OK) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    Claims& space = claims->claims;
    const ClaimRequest asked = c::request_of(given);
    const ClaimOutcome result =
        given.wait_ms == 0 ? space.claim(asked)
                           : space.claim_or_wait(asked, deadline_after(space.engine().now(),
                                                                       Millis{given.wait_ms}));
    c::fill_claim(answer, result);
    return answer.deliver(c::say_outcome(result.error, *claims->engine, given.key_length));
  });
}

namespace {

/// Reads the requests, has `ask` answer them, and delivers the answers.
template <class Ask>
int claim_many(const semel_request* requests, semel_claim_outcome* outcomes, std::size_t count,
               const Ask& ask) {
  if (requests == nullptr || outcomes == nullptr) return c::say_null("requests or outcomes");
  return c::guarded([&] {
    const std::size_t size = outcomes->size;
    if (const int error = c::check_batch<semel_claim_outcome>(count, requests->size, size)) {
      return error;
    }
    std::vector<semel_request> given(count);
    std::vector<ClaimRequest> asked(count);
    for (std::size_t i = 0; i < count; ++i) {
      const semel_request* const one = c::item(requests, requests->size, i);
      if (one->size != requests->size) return c::say_size(one->size, requests->size);
      if (const int error = c::read_sized(one, given[i]); error != SEMEL_OK) return error;
      if (const int error = c::check_claim(given[i], false); error != SEMEL_OK) return error;
      asked[i] = c::request_of(given[i]);
      if (c::item(outcomes, size, i)->size != size) return c::say_size(0, size);
    }
    std::vector<ClaimOutcome> result(count);
    ask(asked, result);
    int error = SEMEL_OK;
    for (std::size_t i = 0; i < count; ++i) {
      c::Answer answer{c::item(outcomes, size, i)};
      c::fill_claim(answer, result[i]);
      if (const int undelivered = answer.deliver(SEMEL_OK); undelivered != SEMEL_OK)
        error = undelivered;
    }
    return error;
  });
}

}  // namespace

int semel_claim_batch(semel_claims* claims, const semel_request* requests,
                      semel_claim_outcome* outcomes, size_t count) {
  if (claims == nullptr) return c::say_null("claims");
  if (count == 0) return SEMEL_OK;
  return claim_many(requests, outcomes, count,
                    [&](const auto& asked, auto& result) { claims->claims.claim(asked, result); });
}

int semel_claim_all(semel_claims* claims, const semel_request* requests,
                    semel_claim_outcome* outcomes, size_t count, int* granted) {
  if (claims == nullptr) return c::say_null("claims");
  if (granted == nullptr) return c::say_null("granted");
  *granted = count == 0 ? 1 : 0;
  if (count == 0) return SEMEL_OK;
  return claim_many(requests, outcomes, count, [&](const auto& asked, auto& result) {
    *granted = claims->claims.claim_all(asked, result) ? 1 : 0;
  });
}

int semel_issue(semel_claims* claims, const void* key, size_t key_length, semel_int64 ttl_ms,
                int* issued) {
  if (claims == nullptr) return c::say_null("claims");
  if (const int error = c::check_process(*claims->engine)) return error;
  if (const int error = c::check_key(*claims->engine, key, key_length)) return error;
  return c::guarded([&] {
    Claims& space = claims->claims;
    const Result<bool> made = space.issue(c::bytes_of(key, key_length), c::claim_time_of(ttl_ms));
    if (!made.ok()) return c::say(made.error());
    if (issued != nullptr) *issued = *made ? 1 : 0;
    return int{SEMEL_OK};
  });
}

int semel_claim_get(semel_claims* claims, const void* key, size_t key_length,
                    semel_claim_view* view) {
  if (claims == nullptr || view == nullptr) return c::say_null("claims or view");
  if (const int error = c::check_process(*claims->engine)) return error;
  if (const int error = c::check_key(*claims->engine, key, key_length)) return error;
  c::Answer answer{view};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    Claims& space = claims->claims;
    const Result<ClaimView> seen = space.get(c::bytes_of(key, key_length));
    if (!seen) return c::say(seen.error());
    answer->state = static_cast<int>(seen->state);
    answer->result_expired = seen->result_expired ? 1 : 0;
    answer->poison = seen->poison ? 1 : 0;
    answer->attempts = seen->attempts;
    answer->epoch = seen->epoch;
    answer->lease_remaining_ms = seen->lease_remaining.count();
    answer->result_remaining_ms = seen->result_remaining.count();
    answer->unique_remaining_ms = seen->unique_remaining.count();
    answer->fingerprint.algorithm = seen->fingerprint.algorithm;
    std::memcpy(answer->fingerprint.digest, seen->fingerprint.digest.data(),
                seen->fingerprint.digest.size());
    const bool finished = seen->state == ClaimState::done || seen->state == ClaimState::failed;
    if (finished && !seen->result_expired) answer.set(answer->result, seen->result);
    if (!seen->owner.empty()) answer.set(answer->owner, seen->owner);
    return answer.deliver(SEMEL_OK);
  });
}

int semel_resolve(semel_claims* claims, const void* key, size_t key_length, int how,
                  const void* result, size_t result_length, int* changed) {
  if (claims == nullptr) return c::say_null("claims");
  if (const int error = c::check_process(*claims->engine)) return error;
  if (const int error = c::check_key(*claims->engine, key, key_length)) return error;
  if (const int error = c::check_value(*claims->engine, result, result_length, "result")) {
    return error;
  }
  return c::guarded([&] {
    if (how < SEMEL_RESOLVE_DONE || how > SEMEL_RESOLVE_FORGOTTEN) {
      return c::say(ErrorCode::bad_option, "how = " + std::to_string(how) + ", allowed 0..2");
    }
    Claims& space = claims->claims;
    const Bytes name = c::bytes_of(key, key_length);
    const Resolution resolution =
        how == SEMEL_RESOLVE_DONE ? Resolution::done : Resolution::released;
    const Result<bool> done =
        how == SEMEL_RESOLVE_FORGOTTEN
            ? space.forget(name)
            : space.resolve(name, resolution, c::bytes_of(result, result_length));
    if (!done.ok()) return c::say(done.error());
    if (changed != nullptr) *changed = *done ? 1 : 0;
    return int{SEMEL_OK};
  });
}
