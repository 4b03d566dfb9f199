// See semel/consume.hpp: from what a claim and a handler say to what the broker is told.
#include "semel/consume.hpp"

#include <memory>

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

struct Judgement {
  OnceAnswer answer;
  Verdict verdict;
};

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
  if (retry_of(claim.error) == Retry::never) return {OnceAnswer::refused, Verdict::dead_letter};
  return {OnceAnswer::busy, Verdict::retry_later};
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
    return;
  }
  claim_ = claims.claim(request_of(message, options));
  judge();
  if (open_ && options.watchdog != nullptr) {
    kept_ = options.watchdog->keep(claims, message.id, claim_.epoch, options.lease);
  }
}

Consumption::Consumption(Claims& claims, const Message& message, ClaimOutcome&& claim)
    : claims_(claims), message_(message), claim_(std::move(claim)) {
  judge();
}

void Consumption::judge() {
  consumed_.attempts = claim_.attempt;
  consumed_.epoch = claim_.epoch;
  consumed_.retry_after = claim_.retry_after;
  const bool granted =
      claim_.answer == ClaimAnswer::granted || claim_.answer == ClaimAnswer::regranted;
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
  // The handler threw. If this cannot be written down either, the end of the lease does the same.
  static_cast<void>(
      claims_.fail({.key = message_.id, .epoch = claim_.epoch, .payload = "exception"}));
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
  // Another has it, or has ended it: what becomes of the message is that one's to say.
  consumed_.answer = OnceAnswer::superseded;
  consumed_.verdict = Verdict::retry_later;
  consumed_.retry_after = policy.retry_after_max;
}

void Consumption::complete() {
  OwnerOutcome outcome;
  for (unsigned i = 0; i < complete_tries; ++i) {
    outcome = work_->steps().used() ? work_->steps().complete()
                                    : claims_.complete({.key = message_.id, .epoch = claim_.epoch});
    if (outcome.error == ErrorCode::ok || retry_of(outcome.error) == Retry::never) break;
  }
  completed(outcome);
}

void Consumption::completed(const OwnerOutcome& outcome) {
  open_ = false;
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

std::vector<Consumed> BatchConsumption::run(const RunOne& handler) {
  std::vector<ClaimRequest> requests;
  std::vector<std::size_t> guarded;  // request i is of message guarded[i]
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].id.empty()) continue;
    requests.push_back(request_of(messages_[i], options_));
    guarded.push_back(i);
  }
  std::vector<ClaimOutcome> answers(requests.size());
  claims_.claim(requests, answers);

  std::vector<std::unique_ptr<Consumption>> runs(messages_.size());
  std::vector<std::optional<std::size_t>> first(messages_.size());
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    const std::size_t at = guarded[i];
    if (answers[i].folded_onto) first[at] = guarded[*answers[i].folded_onto];
    runs[at] = std::make_unique<Consumption>(claims_, messages_[at], std::move(answers[i]));
  }
  std::vector<OwnerCall> calls;
  std::vector<std::size_t> called;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    if (!runs[i]) runs[i] = std::make_unique<Consumption>(claims_, messages_[i], options_);
    Consumption& run = *runs[i];
    if (!run.runs()) continue;
    if (!run.finish(handler(messages_[i], run.work()))) continue;
    if (run.work().steps().used()) {
      run.complete();
      continue;
    }
    calls.push_back({.key = messages_[i].id, .epoch = run.consumed().epoch});
    called.push_back(i);
  }
  std::vector<OwnerOutcome> outcomes(calls.size());
  claims_.complete(calls, outcomes);
  for (std::size_t i = 0; i < called.size(); ++i) {
    Consumption& run = *runs[called[i]];
    const bool again =
        outcomes[i].error != ErrorCode::ok && retry_of(outcomes[i].error) != Retry::never;
    again ? run.complete() : run.completed(outcomes[i]);
  }
  std::vector<Consumed> consumed;
  consumed.reserve(messages_.size());
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    consumed.push_back(std::move(runs[i]->consumed()));
    // Its twin in this batch has handled it; if that failed, this one is to come again, too.
    if (first[i] && consumed[*first[i]].verdict == Verdict::ack) {
      consumed[i].verdict = Verdict::ack_duplicate;
      consumed[i].answer = OnceAnswer::replayed;
    }
  }
  return consumed;
}

}  // namespace semel::detail
