#include "engine/claims/claim_attempt.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "semel/claim_fields.hpp"

namespace semel::engine {
namespace {

[[nodiscard]] ClaimOutcome refuse(ClaimAnswer answer, ErrorCode why) noexcept {
  ClaimOutcome outcome;
  outcome.answer = answer;
  outcome.error = why;
  return outcome;
}

/// A caller that cannot enter: busy when there is no room, in_flight when the engine ends.
[[nodiscard]] ClaimOutcome not_entered(ClaimOutcome&& last, ErrorCode why) noexcept {
  if (why != ErrorCode::closing) return refuse(ClaimAnswer::busy, why);
  last.error = why;
  return std::move(last);
}

class ClaimReceiver final : public Receiver {
 public:
  explicit ClaimReceiver(ClaimAttempt& attempt) noexcept : attempt_(attempt) {}

  ClaimCallback done;

  void answered() override { done(std::move(attempt_.outcome)); }

 private:
  ClaimAttempt& attempt_;
};

}  // namespace

ClaimAttempt::ClaimAttempt(const ClaimAttempt& other, std::string&& bytes)
    : engine_(other.engine_),
      names_(other.names_),
      request_(other.request_),
      bytes_(std::move(bytes)) {
  const Bytes all = bytes_;
  table_key_ = all.substr(0, other.table_key_.size());
  request_.key = table_key_.substr(table_key_.size() - other.request_.key.size());
  point_labels(request_, all.substr(table_key_.size()));
}

std::string ClaimAttempt::bytes_of(const ClaimAttempt& other) {
  const std::string labels = joined_labels(other.request_);
  std::string bytes;
  bytes.reserve(other.table_key_.size() + labels.size());
  return bytes.append(other.table_key_).append(labels);
}

void ClaimAttempt::give_up(ErrorCode why, Timestamp now, const Seen& seen) noexcept {
  outcome = refuse(ClaimAnswer::in_flight, why);
  try {
    outcome.owner = seen.owner;
  } catch (const std::bad_alloc&) {  // it is for people
  }
  outcome.attempt = seen.attempt;
  // By a time before it was seen, a lease would have more left than it got.
  outcome.remaining = std::max(Millis{0}, seen.held_until - std::max(now, seen.now));
  outcome.retry_after = std::min(outcome.remaining, names_->policy().retry_after_max);
}

bool ClaimAttempt::answers_now(Timestamp deadline) {
  Seen seen;
  const Verdict verdict = try_for(0, seen);
  if (verdict != Verdict::waits) return true;
  if (deadline > seen.now) return false;
  outcome.error = ErrorCode::timed_out;
  return true;
}

bool wait_for_claim(WaitQueue& queue, ClaimAttempt& first, Timestamp deadline, ClaimCallback& done,
                    WaitTicket& ticket, ClaimOutcome& outcome) {
  ticket = 0;
  if (first.answers_now(deadline)) {
    outcome = std::move(first.outcome);
    return false;
  }
  std::unique_ptr<ClaimAttempt> kept = first.keep();
  auto receiver = std::make_unique<ClaimReceiver>(*kept);
  ClaimReceiver& mine = *receiver;
  const KeyRef key = kept->key();
  std::unique_ptr<Attempt> attempt = std::move(kept);
  std::unique_ptr<Receiver> taker = std::move(receiver);
  mine.done = std::move(done);
  const ErrorCode why = queue.wait(attempt, taker, {&key, 1}, deadline, ticket);
  if (why == ErrorCode::ok) return true;
  done = std::move(mine.done);
  outcome = not_entered(std::move(first.outcome), why);
  return false;
}

ClaimOutcome wait_for_claim(WaitQueue& queue, ClaimAttempt& attempt, Timestamp deadline,
                            const Clock& clock) {
  if (attempt.answers_now(deadline)) return std::move(attempt.outcome);
  const KeyRef key = attempt.key();
  const ErrorCode why = queue.wait(attempt, {&key, 1}, deadline, clock);
  if (why != ErrorCode::ok) return not_entered(std::move(attempt.outcome), why);
  return std::move(attempt.outcome);
}

}  // namespace semel::engine
