#include "gateway/core/guard.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace semel::gateway {
namespace {

void retry_after(Reply& reply, Millis time) {
  const std::int64_t seconds = std::max<std::int64_t>((time.count() + 999) / 1'000, 1);
  reply.headers.emplace_back("Retry-After", std::to_string(seconds));
}

Decision answer(Decision::Why why, Reply reply) {
  Decision decision;
  decision.why = why;
  decision.reply = std::move(reply);
  return decision;
}

Decision replay(const ClaimOutcome& outcome) {
  if (!outcome.result_expired) {
    if (auto kept = decode(outcome.result)) {
      kept->headers.emplace_back("Idempotency-Replayed", "true");
      return answer(Decision::Why::replayed, *std::move(kept));
    }
  }
  return answer(Decision::Why::not_kept,
                problem(409, "reply-not-kept", "This request was carried out",
                        "Its reply was too long to be kept, or is not kept any more."));
}

}  // namespace

Decision decision_of(const RoutePolicy& route, ClaimOutcome&& outcome, bool may_wait) {
  using Why = Decision::Why;
  switch (outcome.answer) {
    case ClaimAnswer::granted:
    case ClaimAnswer::regranted:
      return {.what = Decision::What::run,
              .why = Why::granted,
              .epoch = outcome.epoch,
              .attempt = outcome.attempt};
    case ClaimAnswer::in_flight: {
      if (may_wait && route.wait > Millis{0}) {
        return {.what = Decision::What::wait, .why = Why::in_flight};
      }
      Reply reply = problem(409, "in-flight", "A request with this key is being carried out");
      retry_after(reply, outcome.retry_after);
      return answer(Why::in_flight, std::move(reply));
    }
    case ClaimAnswer::replay:
      return replay(outcome);
    case ClaimAnswer::mismatch:
      return answer(Why::mismatch,
                    problem(422, "key-reused", "This key was used for another request",
                            "A key belongs to one request: method, path and content."));
    case ClaimAnswer::in_doubt:
      return answer(Why::in_doubt,
                    problem(409, "in-doubt", "It is not known whether this was carried out",
                            "The upstream did not answer, or the gateway ended meanwhile. It is "
                            "not sent again by itself."));
    case ClaimAnswer::busy: {
      Reply reply = problem(503, "busy", "No new requests are taken at the moment");
      retry_after(reply, Millis{1'000});
      return answer(Why::busy, std::move(reply));
    }
    default:
      return answer(Why::refused, problem(503, "refused", "The request cannot be guarded",
                                          sentence_of(outcome.error)));
  }
}

bool end_claim(Claims& claims, const RoutePolicy& route, const std::string& key, Epoch epoch,
               Upstream upstream, unsigned status, const Reply* reply) {
  const OwnerCall call{.key = key, .epoch = epoch};
  const auto in_doubt = [&](std::string known) {
    OwnerCall doubt = call;
    doubt.on_failure = Policy::OnFailure::in_doubt;
    doubt.payload = known;
    return claims.fail(doubt).answer == OwnerAnswer::ok;
  };
  if (upstream == Upstream::not_sent) return claims.release(call).answer == OwnerAnswer::ok;
  if (upstream == Upstream::unknown) {
    return route.on_unknown == RoutePolicy::Unknown::release
               ? claims.release(call).answer == OwnerAnswer::ok
               : in_doubt("the upstream did not answer");
  }
  if (status >= 500) {
    switch (route.on_server_error) {
      case RoutePolicy::ServerError::release:
        return claims.release(call).answer == OwnerAnswer::ok;
      case RoutePolicy::ServerError::in_doubt:
        return in_doubt("status " + std::to_string(status));
      case RoutePolicy::ServerError::record:
        break;
    }
  }
  OwnerCall done = call;
  std::string bytes;
  done.keeping = reply == nullptr ? ResultKeeping::none : ResultKeeping::optional;
  try {
    if (reply != nullptr) bytes = encode(*reply);
  } catch (const std::bad_alloc&) {  // it is done all the same, and must not be done again
    done.keeping = ResultKeeping::none;
  }
  done.payload = bytes;
  return claims.complete(done).answer == OwnerAnswer::ok;
}

Reply reply_without_upstream(const RoutePolicy* route, Upstream upstream, std::string_view why) {
  if (upstream == Upstream::not_sent || route == nullptr) {
    Reply reply = problem(502, "bad-gateway", "The upstream cannot be reached", why);
    if (route != nullptr) retry_after(reply, Millis{1'000});  // nothing was done
    return reply;
  }
  const bool is_free = route->on_unknown == RoutePolicy::Unknown::release;
  return problem(504, "no-reply", "The upstream did not answer",
                 is_free ? std::string{why} + ". The request may be sent again with its key."
                         : std::string{why} + ". It may have been carried out.");
}

}  // namespace semel::gateway
