// See semel/patterns/consume.hpp: the outcomes of a claim and a handler, as answers to the broker.
#include "semel/patterns/consume.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "base/assert.hpp"
#include "semel/engine.hpp"
#include "semel/limits.hpp"

namespace semel::detail {
namespace {

[[nodiscard]] OnceCall call_of(const Message& message, const ConsumeOptions& options) {
  return {.key = message.id,
          .fingerprint = message.fingerprint,
          .claim_id = {},
          .first_sent_unix_ms = message.first_sent_unix_ms,
          .owner = message.owner,
          .lease = options.lease,
          .session = options.session,
          .watchdog = options.watchdog,
          .without_key = !options.refuse_without_id};
}

/// Checks the consumer's options, which do not depend on the message.
[[nodiscard]] Status check_options(const Claims& claims, const ConsumeOptions& options) {
  if (options.lease && (*options.lease < Millis{1} || *options.lease > limits::ttl_max)) {
    return Error{ErrorCode::bad_option, "lease = " + std::to_string(options.lease->count()) +
                                            " ms, allowed 1.." +
                                            std::to_string(limits::ttl_max.count())};
  }
  return Watchdog::check(options.watchdog, claims, options.lease);
}

/// Whether every consumer would refuse this message.
[[nodiscard]] bool is_of_message(ErrorCode error) noexcept {
  switch (error) {
    case ErrorCode::forked:
    case ErrorCode::bad_namespace:
    case ErrorCode::session_closed:
    case ErrorCode::namespace_differs:
    case ErrorCode::namespace_dropped:
    case ErrorCode::storage_damaged:
    case ErrorCode::versions_exhausted:
      return false;
    default:
      return retry_of(error) == Retry::never;
  }
}

/// The verdict on a message whose handler does not run. Only a message that is known to be handled
/// is acknowledged.
[[nodiscard]] Verdict verdict_of(OnceAnswer answer) noexcept {
  switch (answer) {
    case OnceAnswer::replayed:
    case OnceAnswer::expired:
      return Verdict::ack_duplicate;
    case OnceAnswer::in_doubt:
    case OnceAnswer::in_flight:
    case OnceAnswer::busy:
    case OnceAnswer::too_new:  // its time is still to come, or a clock is behind
      return Verdict::retry_later;
    default:
      return Verdict::dead_letter;
  }
}

[[nodiscard]] std::string text_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& known) {
    return std::string{"exception: "} + known.what();
  } catch (...) {
    return "exception";
  }
}

}  // namespace

Consumption::Consumption(Claims& claims, const Message& message, const ConsumeOptions& options)
    : claims_(claims),
      call_(call_of(message, options)),
      granted_for_(call_.lease.value_or(claims.policy().lease)) {
  if (Status possible = check_options(claims, options); !possible && !call_.key.empty()) {
    refuse(possible.error());
  } else if (!call_.key.empty()) {
    guard(claims.claim(request_of(call_)));
  } else if (call_.without_key) {
    guard({});
  } else {
    consumed_.verdict = Verdict::dead_letter;
    consumed_.answer = OnceAnswer::refused;
    consumed_.error = {ErrorCode::key_empty, "the message has no id"};
  }
  started_ = runs();
}

Consumption::Consumption(Claims& claims, const Message& message, const ConsumeOptions& options,
                         ClaimOutcome&& claim)
    : claims_(claims),
      call_(call_of(message, options)),
      granted_for_(call_.lease.value_or(claims.policy().lease)) {
  guard(std::move(claim));
}

/// Not the message's fault, so that it is to be delivered again, to a consumer that can take it.
void Consumption::refuse(Error error) {
  consumed_.verdict = Verdict::retry_later;
  consumed_.answer = OnceAnswer::refused;
  consumed_.retry_after = claims_.policy().retry_after_max;
  consumed_.error = std::move(error);
}

Consumption::~Consumption() {
  if (run_ && !started_) run_->give_back();
}

void Consumption::guard(ClaimOutcome&& claim) {
  run_.emplace(claims_, call_, std::move(claim));  // start() looks at a batch's
  const OnceReport& report = run_->report();
  consumed_.attempts = report.attempt;
  consumed_.epoch = report.epoch;
  consumed_.retry_after = report.retry_after;
  if (run_->runs()) {
    consumed_.unguarded = !run_->is_open();
    consumed_.answer = OnceAnswer::unguarded;
    return;
  }
  const ErrorCode error = run_->claim().error;
  consumed_.answer = report.answer;
  if (run_->claim().answer == ClaimAnswer::busy) {  // refused: by this consumer, or by every one
    consumed_.answer = is_of_message(error) ? OnceAnswer::refused : OnceAnswer::busy;
  }
  consumed_.verdict = verdict_of(consumed_.answer);
  consumed_.failure = std::move(run_->report().failure);
  if (error != ErrorCode::ok) consumed_.error = {error, {}};
  if (consumed_.answer == OnceAnswer::too_new) consumed_.retry_after = until_in_window();
  if (consumed_.verdict == Verdict::retry_later && consumed_.retry_after == Millis{0}) {
    consumed_.retry_after = claims_.policy().retry_after_max;
  }
}

Millis Consumption::until_in_window() const noexcept {
  const std::int64_t end = run_->claim().window_end_unix_ms.value_or(0);
  const std::int64_t sent = call_.first_sent_unix_ms.value_or(end);
  std::int64_t early = 0;
  if (__builtin_sub_overflow(sent, end, &early)) return limits::ttl_max;
  return std::clamp(Millis{early}, Millis{1}, limits::ttl_max);
}

void Consumption::start() {
  if (!runs()) return;
  if (run_->is_open() && !keep_for_handler()) {
    // Nothing has run under this grant, so a lease that is over is not a takeover and no doubt: it
    // is given back, and claimed as if it came now.
    run_->give_back();
    consumed_ = {};
    guard(claims_.claim(request_of(call_)));
  }
  started_ = runs();
}

/// The handlers before this one took their time, and may have done anything. False: it is lost.
bool Consumption::keep_for_handler() {
  if (run_->is_lost()) return false;
  const Result<ClaimView> view = claims_.get(call_.key);
  if (!view || view->state != ClaimState::held || view->epoch != run_->claim().epoch) return false;
  // By the lease of the grant: the namespace's may be another one by now.
  if (view->lease_remaining > granted_for_ / 3 * 2) return true;
  return view->lease_remaining > Millis{0} && work().renew(call_.lease);
}

bool Consumption::finish(Handling&& handling) {
  SEMEL_ASSERT(runs() && started_);
  if (handling.how != Handled::ok) {
    fail(std::move(handling));
    return false;
  }
  consumed_.verdict = Verdict::ack;
  return run_->is_open();
}

void Consumption::fail(Handling&& handling) {
  if (handling.how == Handled::unknown) return unknown(std::move(handling.reason));
  const Policy& policy = claims_.policy();
  const bool last = policy.attempts_max != 0 && consumed_.attempts >= policy.attempts_max;
  const bool keeps =
      handling.how == Handled::rejected || last || policy.on_failure == Policy::OnFailure::keep;
  consumed_.answer = OnceAnswer::failed;
  consumed_.verdict = keeps ? Verdict::dead_letter : Verdict::retry_later;
  consumed_.failure = std::move(handling.reason);
  if (!keeps) consumed_.retry_after = policy.retry_after_max;
  end(keeps ? Policy::OnFailure::keep : Policy::OnFailure::release, 1);
}

void Consumption::unknown(std::string&& what) {
  const Policy& policy = claims_.policy();
  consumed_.failure = std::move(what);
  consumed_.retry_after = policy.retry_after_max;
  consumed_.verdict = Verdict::retry_later;
  consumed_.answer = OnceAnswer::failed;
  if (!run_->is_open()) return;  // unguarded: the broker delivers it again
  if (policy.on_exception == Policy::OnFailure::keep) {
    consumed_.verdict = Verdict::dead_letter;
    consumed_.retry_after = Millis{0};
  } else if (policy.on_exception == Policy::OnFailure::in_doubt) {
    consumed_.answer = OnceAnswer::in_doubt;
  }
  end(policy.on_exception, call_.complete_tries);
}

void Consumption::end(Policy::OnFailure then, unsigned tries) {
  if (!run_->is_open()) return;
  const OwnerOutcome outcome = run_->give_up(consumed_.failure, then, tries);
  if (outcome.error != ErrorCode::ok) consumed_.error = {outcome.error, {}};
  if (outcome.error != ErrorCode::ok || outcome.answer == OwnerAnswer::ok) return;
  superseded();
}

/// Another owner has the message, or has ended it, and answers for it.
void Consumption::superseded() {
  consumed_.answer = OnceAnswer::superseded;
  consumed_.verdict = Verdict::retry_later;
  consumed_.retry_after = claims_.policy().retry_after_max;
}

void Consumption::threw(std::exception_ptr exception) {
  // From complete(), not from the handler: the message is handled, and its handler did not fail.
  if (completing_) std::rethrow_exception(exception);
  unknown(text_of(exception));
  consumed_.exception = std::move(exception);
}

void Consumption::complete() {
  completing_ = true;
  run_->complete({}, ResultKeeping::required);
  const OnceReport& report = run_->report();
  // If it was not written down (unrecorded) it was handled all the same: another delivery would be
  // another effect. The lease keeps copies of the message away for its length.
  consumed_.verdict = Verdict::ack;
  consumed_.answer = report.answer;
  consumed_.error = report.error;
  if (report.answer != OnceAnswer::superseded) return;
  // Handled twice, as the lease was too short; the newer owner answers for the message.
  superseded();
  if (!run_->stored()) return;
  consumed_.verdict = Verdict::ack_duplicate;
  consumed_.retry_after = Millis{0};
}

namespace {

/// How many messages are claimed at once. The leases of the last ones run while the first ones are
/// handled, so it is bounded.
constexpr std::size_t claimed_at_once = 256;

}  // namespace

/// Claims the next messages. For a message that is there twice, remembers the index of the first.
void BatchConsumption::claim(std::size_t begin, std::size_t end) {
  std::vector<ClaimRequest> requests;
  std::vector<std::size_t> guarded;  // request i is of message guarded[i]
  for (std::size_t i = begin; i < end; ++i) {
    const Bytes id = messages_[i].id;
    if (id.empty() || !can_claim_) continue;  // refused one by one, without a claim
    requests.push_back(request_of(call_of(messages_[i], options_)));
    guarded.push_back(i);
  }
  std::vector<ClaimOutcome> answers(requests.size());
  std::size_t taken = 0;  // if one throws, the grants from here on are given back below
  try {
    claims_.claim(requests, answers);
    for (; taken < guarded.size(); ++taken) {
      const std::size_t at = guarded[taken];
      if (answers[taken].folded_onto) {
        SEMEL_ASSERT(*answers[taken].folded_onto < taken);
        first_of_[at] = guarded[*answers[taken].folded_onto];
      }
      runs_[at - begin] = std::make_unique<Consumption>(claims_, messages_[at], options_,
                                                        std::move(answers[taken]));
    }
  } catch (...) {
    for (; taken < guarded.size(); ++taken) {
      if (is_granted(answers[taken]))
        give_back(claims_, messages_[guarded[taken]].id, answers[taken]);
    }
    throw;
  }
}

/// Runs the handler of one message and ends its claim. No other message is affected.
void BatchConsumption::handle(std::size_t at, Consumption& run, const RunOne& handler) {
  run.start();
  try {
    run.handle([&](Work& work) { return handler(messages_[at], work); });
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled, and that cannot be caught
#endif
  } catch (...) {
    run.threw(std::current_exception());
  }
}

std::vector<Consumed> BatchConsumption::run(const RunOne& handler) {
  std::vector<Consumed> consumed(messages_.size());
  can_claim_ = check_options(claims_, options_).ok();
  first_of_.resize(messages_.size());
  for (std::size_t begin = 0; begin < messages_.size(); begin += claimed_at_once) {
    const std::size_t end = std::min(messages_.size(), begin + claimed_at_once);
    runs_.clear();
    runs_.resize(end - begin);
    claim(begin, end);
    for (std::size_t i = begin; i < end; ++i) {
      std::unique_ptr<Consumption>& run = runs_[i - begin];
      if (run == nullptr) run = std::make_unique<Consumption>(claims_, messages_[i], options_);
      handle(i, *run, handler);
      consumed[i] = std::move(run->consumed());
      run.reset();  // before the next handler, so that the watchdog does not keep an ended lease
    }
  }
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    // The first one was handled in this batch. If it failed, this one has to be redelivered as
    // well.
    if (!first_of_[i] || consumed[i].answer != OnceAnswer::in_flight) continue;
    if (consumed[*first_of_[i]].verdict != Verdict::ack) continue;
    consumed[i].verdict = Verdict::ack_duplicate;
    consumed[i].answer = OnceAnswer::replayed;
    consumed[i].retry_after = Millis{0};
  }
  return consumed;
}

}  // namespace semel::detail
