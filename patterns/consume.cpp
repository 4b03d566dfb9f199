// See semel/patterns/consume.hpp: the outcomes of a claim and a handler, as answers to the broker.
#include "semel/patterns/consume.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "semel/engine.hpp"

namespace semel::detail {
namespace {

constexpr unsigned complete_tries = 3;

[[nodiscard]] ClaimRequest request_of(const Message& message, const ConsumeOptions& options) {
  return {.key = message.id,
          .lease = options.lease,
          .fingerprint = message.fingerprint,
          .claim_id = {},
          .first_sent_unix_ms = message.first_sent_unix_ms,
          .owner = message.owner,
          .session = options.session};
}

[[nodiscard]] bool is_granted(const ClaimOutcome& claim) noexcept {
  return claim.answer == ClaimAnswer::granted || claim.answer == ClaimAnswer::regranted;
}

struct Judgement {
  OnceAnswer answer;
  Verdict verdict;
};

/// Whether it lies in the message and not in this consumer: then every consumer would refuse it.
[[nodiscard]] bool is_of_message(ErrorCode error) noexcept {
  switch (error) {
    case ErrorCode::forked:
    case ErrorCode::bad_namespace:
    case ErrorCode::namespace_differs:
    case ErrorCode::namespace_dropped:
    case ErrorCode::storage_damaged:
      return false;
    default:
      return retry_of(error) == Retry::never;
  }
}

/// What a claim that does not let the handler run means for the broker. Whatever is not known to be
/// handled is never acknowledged.
[[nodiscard]] Judgement judgement_of(const ClaimOutcome& claim) noexcept {
  switch (claim.answer) {
    case ClaimAnswer::replay:
      return {claim.result_expired ? OnceAnswer::expired : OnceAnswer::replayed,
              Verdict::ack_duplicate};
    case ClaimAnswer::kept_failure:
      return {OnceAnswer::kept_failure, Verdict::dead_letter};
    case ClaimAnswer::mismatch:
      return {OnceAnswer::mismatch, Verdict::dead_letter};
    case ClaimAnswer::too_old:
      return {OnceAnswer::too_old, Verdict::dead_letter};
    case ClaimAnswer::too_new:
      return {OnceAnswer::too_new, Verdict::dead_letter};
    case ClaimAnswer::unknown:
      return {OnceAnswer::unknown, Verdict::dead_letter};
    case ClaimAnswer::in_doubt:
      return {OnceAnswer::in_doubt, Verdict::retry_later};
    case ClaimAnswer::in_flight:
      return {OnceAnswer::in_flight, Verdict::retry_later};
    default:
      break;
  }
  if (is_of_message(claim.error)) return {OnceAnswer::refused, Verdict::dead_letter};
  return {OnceAnswer::busy, Verdict::retry_later};
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
    : claims_(claims), message_(message) {
  if (message.id.empty()) {
    runs_ = !options.refuse_without_id;
    consumed_.unguarded = runs_;
    consumed_.answer = runs_ ? OnceAnswer::unguarded : OnceAnswer::refused;
    consumed_.verdict = runs_ ? Verdict::retry_later : Verdict::dead_letter;
    if (!runs_) consumed_.error = {ErrorCode::key_empty, "the message has no id"};
    if (runs_) work_.emplace(claims_, message_.id, claim_);
    started_ = runs_;
    return;
  }
  claim_ = claims.claim(request_of(message, options));
  begin(options);
  started_ = runs_;
}

Consumption::Consumption(Claims& claims, const Message& message, const ConsumeOptions& options,
                         ClaimOutcome&& claim, Timestamp asked)
    : claims_(claims), message_(message), claim_(std::move(claim)), asked_(asked) {
  begin(options);
}

void Consumption::begin(const ConsumeOptions& options) {
  try {
    judge();
    keep(options);
  } catch (...) {  // nothing has run, and no destructor will say so
    if (is_granted(claim_)) give_back(claims_, message_.id, claim_);
    throw;
  }
}

void Consumption::keep(const ConsumeOptions& options) {
  if (!open_ || options.watchdog == nullptr) return;
  kept_ = options.watchdog->keep(claims_, message_.id, claim_.epoch, options.lease);
}

void Consumption::start(const ConsumeOptions& options) {
  if (!runs_) return;
  const Millis lease = options.lease.value_or(claims_.policy().lease);
  const Timestamp now = claims_.engine().now();
  if (open_ && (kept_.lost() || now - asked_ >= lease / 3)) {
    // Those before it took their time. Nothing has run under this grant, so a lease that is over is
    // no takeover and no doubt: it is given back, and asked for as if it came now.
    const bool renewed = !kept_.lost() && work_->renew(options.lease);
    if (!renewed) {
      kept_ = {};
      open_ = false;
      give_back(claims_, message_.id, claim_);
      runs_ = false;
      claim_ = claims_.claim(request_of(message_, options));
      consumed_ = {};
      judge();
      keep(options);
    }
  }
  started_ = runs_;
}

/// Of one whose handler has not begun: as if it had not been claimed. A release forgets the
/// attempts before this one as well, so where there were some this one is counted with them.
void Consumption::judge() {
  consumed_.attempts = claim_.attempt;
  consumed_.epoch = claim_.epoch;
  consumed_.retry_after = claim_.retry_after;
  const bool granted = is_granted(claim_);
  if (granted || claim_.answer == ClaimAnswer::unprotected) {
    runs_ = true;
    open_ = granted;
    consumed_.unguarded = !granted;
    consumed_.answer = OnceAnswer::unguarded;
    work_.emplace(claims_, message_.id, claim_);
    return;
  }
  const Judgement judgement = judgement_of(claim_);
  consumed_.answer = judgement.answer;
  consumed_.verdict = judgement.verdict;
  if (claim_.error != ErrorCode::ok) consumed_.error = {claim_.error, {}};
  if (claim_.answer == ClaimAnswer::kept_failure) consumed_.failure = std::move(claim_.result);
  if (judgement.verdict == Verdict::retry_later && consumed_.retry_after == Millis{0}) {
    consumed_.retry_after = claims_.policy().retry_after_max;
  }
}

Consumption::~Consumption() {
  if (!open_) return;
  if (!started_) {
    open_ = false;
    give_back(claims_, message_.id, claim_);
    return;
  }
  try {
    unknown("exception");
  } catch (const std::bad_alloc&) {  // the end of the lease says it, later
  }
}

bool Consumption::finish(Handling&& handling) {
  if (handling.how != Handled::ok) {
    fail(std::move(handling));
    return false;
  }
  consumed_.verdict = Verdict::ack;
  return open_;
}

void Consumption::fail(Handling&& handling) {
  if (handling.how == Handled::unknown) return unknown(std::move(handling.reason));
  const Policy& policy = claims_.policy();
  const bool last = policy.attempts_max != 0 && claim_.attempt >= policy.attempts_max;
  const bool keeps =
      handling.how == Handled::rejected || last || policy.on_failure == Policy::OnFailure::keep;
  consumed_.answer = OnceAnswer::failed;
  consumed_.verdict = keeps ? Verdict::dead_letter : Verdict::retry_later;
  consumed_.failure = std::move(handling.reason);
  if (!keeps) consumed_.retry_after = policy.retry_after_max;
  if (!open_) return;
  open_ = false;
  const OwnerOutcome outcome =
      claims_.fail({.key = message_.id,
                    .epoch = claim_.epoch,
                    .payload = consumed_.failure,
                    .on_failure = keeps ? Policy::OnFailure::keep : Policy::OnFailure::release});
  if (outcome.error != ErrorCode::ok) consumed_.error = {outcome.error, {}};
  if (outcome.error != ErrorCode::ok || outcome.answer == OwnerAnswer::ok) return;
  superseded();
}

void Consumption::unknown(std::string&& what) {
  const Policy& policy = claims_.policy();
  kept_ = {};
  consumed_.failure = std::move(what);
  consumed_.retry_after = policy.retry_after_max;
  consumed_.verdict = Verdict::retry_later;
  consumed_.answer = OnceAnswer::failed;
  if (!open_) return;  // unguarded: the broker delivers it again
  open_ = false;
  if (policy.on_exception == Policy::OnFailure::keep) {
    consumed_.verdict = Verdict::dead_letter;
    consumed_.retry_after = Millis{0};
  } else if (policy.on_exception == Policy::OnFailure::in_doubt) {
    consumed_.answer = OnceAnswer::in_doubt;
  }
  OwnerOutcome outcome;
  for (unsigned i = 0; i < complete_tries; ++i) {
    outcome = claims_.fail({.key = message_.id,
                            .epoch = claim_.epoch,
                            .payload = consumed_.failure,
                            .on_failure = policy.on_exception});
    if (outcome.error == ErrorCode::ok || retry_of(outcome.error) == Retry::never) break;
  }
  if (outcome.error == ErrorCode::value_too_long) {  // the text matters less than what it is about
    outcome = claims_.fail(
        {.key = message_.id, .epoch = claim_.epoch, .on_failure = policy.on_exception});
  }
  if (outcome.error != ErrorCode::ok) consumed_.error = {outcome.error, {}};
  if (outcome.error != ErrorCode::ok || outcome.answer == OwnerAnswer::ok) return;
  superseded();
}

/// Another has it, or has ended it: what becomes of the message is that one's to say.
void Consumption::superseded() {
  consumed_.answer = OnceAnswer::superseded;
  consumed_.verdict = Verdict::retry_later;
  consumed_.retry_after = claims_.policy().retry_after_max;
}

void Consumption::threw(std::exception_ptr exception) {
  unknown(text_of(exception));
  consumed_.exception = std::move(exception);
}

void Consumption::complete() {
  open_ = false;  // it is done: whatever goes wrong from here, it is not given back
  OwnerOutcome outcome;
  for (unsigned i = 0; i < complete_tries; ++i) {
    outcome = work_->steps().used() ? work_->steps().complete()
                                    : claims_.complete({.key = message_.id, .epoch = claim_.epoch});
    if (outcome.error == ErrorCode::ok || retry_of(outcome.error) == Retry::never) break;
  }
  completed(outcome);
}

void Consumption::completed(const OwnerOutcome& outcome) {
  consumed_.verdict = Verdict::ack;
  consumed_.answer = OnceAnswer::ran;
  if (outcome.error != ErrorCode::ok) {
    // It was handled, so the broker is told so: another delivery would be another effect. What was
    // not written down is said, and the lease keeps copies of the message away for its length.
    consumed_.answer = OnceAnswer::unrecorded;
    consumed_.error = {outcome.error, {}};
    return;
  }
  if (outcome.answer == OwnerAnswer::ok) return;
  if (outcome.answer == OwnerAnswer::stale_owner || outcome.answer == OwnerAnswer::conflict) {
    // Handled twice, as the lease was too short; the newer owner speaks for the message.
    consumed_.answer = OnceAnswer::superseded;
    consumed_.verdict = outcome.has_result ? Verdict::ack_duplicate : Verdict::retry_later;
    if (!outcome.has_result) consumed_.retry_after = claims_.policy().retry_after_max;
    return;
  }
  consumed_.answer = OnceAnswer::unrecorded;
}

namespace {

/// How many claims are asked for at once. Their leases run while those before them are handled, so
/// not too many.
constexpr std::size_t claimed_at_once = 256;

}  // namespace

/// Claims the next messages and remembers, of each that comes twice, which is its first.
void BatchConsumption::claim(std::size_t begin, std::size_t end) {
  std::vector<ClaimRequest> requests;
  std::vector<std::size_t> guarded;  // request i is of message guarded[i]
  for (std::size_t i = begin; i < end; ++i) {
    const Bytes id = messages_[i].id;
    if (id.empty()) continue;
    requests.push_back(request_of(messages_[i], options_));
    guarded.push_back(i);
  }
  std::vector<ClaimOutcome> answers(requests.size());
  const Timestamp asked = claims_.engine().now();
  claims_.claim(requests, answers);
  std::size_t taken = 0;  // from here on nobody would give the grants back
  try {
    for (; taken < guarded.size(); ++taken) {
      const std::size_t at = guarded[taken];
      if (answers[taken].folded_onto) first_of_[at] = guarded[*answers[taken].folded_onto];
      runs_[at - begin] = std::make_unique<Consumption>(claims_, messages_[at], options_,
                                                        std::move(answers[taken]), asked);
    }
  } catch (...) {
    for (; taken < guarded.size(); ++taken) {
      if (is_granted(answers[taken]))
        give_back(claims_, messages_[guarded[taken]].id, answers[taken]);
    }
    throw;
  }
}

/// One message, from its handler to its end: nothing of that is another's.
void BatchConsumption::handle(std::size_t at, Consumption& run, const RunOne& handler) {
  run.start(options_);
  if (!run.runs()) return;
  bool handled = false;
  try {
    handled = run.finish(handler(messages_[at], run.work()));
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled, and that cannot be caught
#endif
  } catch (...) {
    run.threw(std::current_exception());
  }
  if (handled) run.complete();
}

std::vector<Consumed> BatchConsumption::run(const RunOne& handler) {
  std::vector<Consumed> consumed(messages_.size());
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
      run.reset();  // the watchdog keeps nothing that has ended
    }
  }
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    // Its first in this batch has handled it; if that failed, this one is to come again, too.
    if (!first_of_[i] || consumed[i].answer != OnceAnswer::in_flight) continue;
    if (consumed[*first_of_[i]].verdict != Verdict::ack) continue;
    consumed[i].verdict = Verdict::ack_duplicate;
    consumed[i].answer = OnceAnswer::replayed;
    consumed[i].retry_after = Millis{0};
  }
  return consumed;
}

}  // namespace semel::detail
