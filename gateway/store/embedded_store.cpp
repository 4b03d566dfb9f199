#include "gateway/store/embedded_store.hpp"

#include <functional>

namespace semel::gateway {

/// Not a coroutine: callers await the result directly.
asio::awaitable<Status> EmbeddedStore::confirmed() {
  Engine& engine = guards_.engine();
  const Durability level = level_;
  return await_callback<Status>(bridge_, [&engine, level](std::function<void(Status)> done) {
    engine.confirm_async(level, std::move(done));
  });
}

asio::awaitable<std::optional<Refusal>> EmbeddedStore::take_nonce(const Route& /*route*/,
                                                                  const Request& /*request*/) {
  // prepare() has used it up.
  if (is_kept_at_once()) co_return std::nullopt;
  auto confirming = confirmed();
  const Status kept = co_await std::move(confirming);
  if (kept) co_return std::nullopt;
  co_return Refusal{Outcome::store_unavailable, "the nonce could not be written down"};
}

asio::awaitable<Admission> EmbeddedStore::claim(Work& work) {
  Admission admission = guards_.claim(work);
  if (admission.outcome == Outcome::in_flight && work.route->wait > Millis{0}) {
    Guards& guards = guards_;
    auto answered = await_callback<ClaimOutcome>(bridge_, [&guards, &work](auto done) {
      // All waiters are answered at once: each reads its reply in turn.
      guards.wait(work, ClaimCallback{[done = std::move(done)](ClaimOutcome outcome) {
                    std::string{}.swap(outcome.result);
                    done(std::move(outcome));
                  }});
    });
    ClaimOutcome outcome = co_await std::move(answered);
    const bool has_reply = outcome.answer == ClaimAnswer::replay && !outcome.result_expired;
    admission = has_reply ? guards_.claim(work) : admission_of(work, std::move(outcome));
  }
  held_.share(work, admission);
  // A power cut must not undo a result that the upstream or the client has seen.
  if (is_kept_at_once()) co_return admission;
  auto confirming = confirmed();
  const Status kept = co_await std::move(confirming);
  if (kept) co_return admission;
  if (admission.outcome == Outcome::granted) guards_.release(work);
  Admission unkept{.outcome = Outcome::store_unavailable};
  unkept.refusal = Refusal{Outcome::store_unavailable, "the claim could not be written down"};
  co_return unkept;
}

asio::awaitable<bool> EmbeddedStore::renew(Work& work) {
  co_return guards_.keep(work);
}

asio::awaitable<Completion> EmbeddedStore::complete(const Work& work, const RecordedReply& reply) {
  Completion completion = guards_.complete(work, reply);
  if (completion.newer && !held_.share(work, *completion.newer)) completion.newer.reset();
  if (is_kept_at_once()) co_return completion;
  auto confirming = confirmed();
  const Status kept = co_await std::move(confirming);
  if (!kept && completion.recorded == Recorded::yes) completion.recorded = Recorded::no;
  co_return completion;
}

asio::awaitable<bool> EmbeddedStore::release(const Work& work) {
  guards_.release(work);
  if (is_kept_at_once()) co_return true;
  auto confirming = confirmed();
  const Status kept = co_await std::move(confirming);
  co_return kept.ok();
}

asio::awaitable<bool> EmbeddedStore::doubt(const Work& work, std::string_view why) {
  const bool is_noted = guards_.doubt(work, why);
  if (is_kept_at_once()) co_return is_noted;
  auto confirming = confirmed();
  const Status kept = co_await std::move(confirming);
  co_return is_noted&& kept.ok();
}

asio::awaitable<IssuedToken> EmbeddedStore::issue_token(const Route& issuing,
                                                        const Request& request) {
  IssuedToken issued = guards_.issue_token(issuing, request);
  if (issued.refusal || is_kept_at_once()) co_return issued;
  auto confirming = confirmed();
  const Status kept = co_await std::move(confirming);
  if (!kept) {
    issued.refusal = Refusal{Outcome::store_unavailable, "the token could not be written down"};
  }
  co_return issued;
}

}  // namespace semel::gateway
