// Functions that run once, and messages that are handled once, on the same classes as once() and
// consume_once(). This file only translates the result of a function in C.
#include "bindings/c/runs.hpp"

using namespace semel;

#define SEMEL_SAME(number, value) static_assert((number) == static_cast<int>(value))
SEMEL_SAME(SEMEL_UNANSWERED, OnceAnswer::unanswered);
SEMEL_SAME(SEMEL_UNANSWERED, Verdict::unanswered);
SEMEL_SAME(SEMEL_ONCE_RAN, OnceAnswer::ran);
SEMEL_SAME(SEMEL_ONCE_REPLAYED, OnceAnswer::replayed);
SEMEL_SAME(SEMEL_ONCE_EXPIRED, OnceAnswer::expired);
SEMEL_SAME(SEMEL_ONCE_IN_FLIGHT, OnceAnswer::in_flight);
SEMEL_SAME(SEMEL_ONCE_FAILED, OnceAnswer::failed);
SEMEL_SAME(SEMEL_ONCE_KEPT_FAILURE, OnceAnswer::kept_failure);
SEMEL_SAME(SEMEL_ONCE_MISMATCH, OnceAnswer::mismatch);
SEMEL_SAME(SEMEL_ONCE_IN_DOUBT, OnceAnswer::in_doubt);
SEMEL_SAME(SEMEL_ONCE_TOO_OLD, OnceAnswer::too_old);
SEMEL_SAME(SEMEL_ONCE_TOO_NEW, OnceAnswer::too_new);
SEMEL_SAME(SEMEL_ONCE_UNKNOWN, OnceAnswer::unknown);
SEMEL_SAME(SEMEL_ONCE_BUSY, OnceAnswer::busy);
SEMEL_SAME(SEMEL_ONCE_REFUSED, OnceAnswer::refused);
SEMEL_SAME(SEMEL_ONCE_SUPERSEDED, OnceAnswer::superseded);
SEMEL_SAME(SEMEL_ONCE_UNRECORDED, OnceAnswer::unrecorded);
SEMEL_SAME(SEMEL_ONCE_UNGUARDED, OnceAnswer::unguarded);
SEMEL_SAME(SEMEL_ACK, Verdict::ack);
SEMEL_SAME(SEMEL_RETRY_LATER, Verdict::retry_later);
SEMEL_SAME(SEMEL_ACK_DUPLICATE, Verdict::ack_duplicate);
SEMEL_SAME(SEMEL_DEAD_LETTER, Verdict::dead_letter);

namespace semel::c {

semel_work c_work_of(const Work& work) noexcept {
  const Bytes key = work.key();
  return {.size = sizeof(semel_work),
          .key = key.data(),
          .key_length = key.size(),
          .epoch = work.epoch(),
          .attempt = work.attempt(),
          .takeover = work.takeover() ? 1 : 0};
}

OnceCall call_of(const semel_request& given, semel_engine& engine) {
  const ClaimRequest request = request_of(given);
  return {.key = request.key,
          .fingerprint = request.fingerprint,
          .claim_id = request.claim_id,
          .first_sent_unix_ms = request.first_sent_unix_ms,
          .owner = request.owner,
          .lease = request.lease,
          .session = request.session,
          .wait = Millis{given.wait_ms},
          .watchdog = given.keep_lease != 0 ? &engine.keeper() : nullptr,
          .without_key = given.without_key != 0};
}

Message message_of(const ClaimRequest& asked) noexcept {
  return {.id = asked.key,
          .fingerprint = asked.fingerprint,
          .first_sent_unix_ms = asked.first_sent_unix_ms,
          .owner = asked.owner};
}

ConsumeOptions options_of(const semel_request& given, const ClaimRequest& asked,
                          semel_engine& engine) {
  return {.lease = asked.lease,
          .session = asked.session,
          .watchdog = given.keep_lease != 0 ? &engine.keeper() : nullptr,
          .refuse_without_id = given.without_key == 0};
}

int check_message(const semel_request& given) noexcept {
  if (given.wait_ms == 0 && given.claim_id == nullptr) return SEMEL_OK;
  return guarded(
      [&] { return say(ErrorCode::bad_option, "wait_ms and claim_id are not for messages"); });
}

void fill(Answer<semel_once_outcome>& to, const OnceReport& from) noexcept {
  to->answer = static_cast<int>(from.answer);
  to->takeover = from.takeover ? 1 : 0;
  to->late = from.late ? 1 : 0;
  to->attempt = from.attempt;
  to->epoch = from.epoch;
  to->retry_after_ms = from.retry_after.count();
  const bool failed = from.answer == OnceAnswer::failed ||
                      from.answer == OnceAnswer::kept_failure || !from.failure.empty();
  if (failed) to.set(to->failure, from.failure);
}

void fill(Answer<semel_consumed>& to, const Consumed& from) noexcept {
  to->verdict = static_cast<int>(from.verdict);
  to->answer = static_cast<int>(from.answer);
  to->unguarded = from.unguarded ? 1 : 0;
  to->attempts = from.attempts;
  to->epoch = from.epoch;
  to->retry_after_ms = from.retry_after.count();
  const bool failed = from.answer == OnceAnswer::failed || from.answer == OnceAnswer::kept_failure;
  if (failed) to.set(to->failure, from.failure);
}

OnceReport forked_report() {
  OnceReport report;
  report.answer = OnceAnswer::refused;
  report.error = {ErrorCode::forked, {}};
  return report;
}

Consumed forked_message() {
  Consumed consumed;
  consumed.verdict = Verdict::retry_later;
  consumed.answer = OnceAnswer::refused;
  consumed.error = {ErrorCode::forked, {}};
  return consumed;
}

namespace {

/// Ends a run whose function failed with a text of its own. GuardedRun::fail() would put the
/// sentence of an error code before the text, so the claim is failed here.
void fail(const Policy& policy, detail::GuardedRun& run, int how, std::string&& why) {
  OnceReport& report = run.report();
  report.answer = OnceAnswer::failed;
  report.failure = std::move(why);
  if (!run.is_open()) return;
  if (is_unknown(how)) {
    std::string known = report.failure.empty() ? "abandoned" : std::move(report.failure);
    return run.doubt(std::move(known));
  }
  const bool is_rejected = how == SEMEL_WORK_REJECTED;
  const OwnerOutcome outcome =
      run.give_up(report.failure, is_rejected ? Policy::OnFailure::keep : policy.on_failure, 1);
  if (outcome.error == ErrorCode::ok && outcome.answer != OwnerAnswer::ok) {
    report.answer = OnceAnswer::superseded;
  }
}

[[nodiscard]] detail::Handling handling_of(int how, std::string&& why) {
  if (is_unknown(how)) return {detail::Handled::unknown, std::move(why)};
  if (how == SEMEL_WORK_REJECTED) return {detail::Handled::rejected, std::move(why)};
  const bool done = how == SEMEL_WORK_DONE || how == SEMEL_WORK_DONE_WITHOUT;
  return {done ? detail::Handled::ok : detail::Handled::failed, std::move(why)};
}

}  // namespace

bool finish(const Policy& policy, detail::GuardedRun& run, int how, std::string& bytes) {
  if (how == SEMEL_WORK_DONE) {
    run.complete(bytes);
    return run.report().answer != OnceAnswer::superseded;
  }
  if (how == SEMEL_WORK_DONE_WITHOUT) {
    run.complete_without(std::move(bytes));
  } else {
    fail(policy, run, how, std::move(bytes));
  }
  return false;
}

void finish(detail::Consumption& run, int how, std::string&& bytes) {
  if (run.finish(handling_of(how, std::move(bytes)))) run.complete();
}

}  // namespace semel::c

namespace {

/// Calls the function of C. Of a number that is none of SEMEL_WORK_.. nothing follows, least of all
/// that the work is done.
[[nodiscard]] int call(semel_function function, void* context, const Work& work, semel_out& out) {
  const semel_work c_work = c::c_work_of(work);
  const int how = function(context, &c_work, &out);
  if (c::is_work(how)) return how;
  const std::string says = "the function returned " + std::to_string(how) + ", no SEMEL_WORK_..";
  out.bytes = out.bytes.empty() ? says : says + ": " + out.bytes;
  return SEMEL_WORK_UNKNOWN;
}

}  // namespace

int semel_once(semel_claims* claims, const semel_request* request, semel_function function,
               void* context, semel_once_outcome* outcome) {
  if (claims == nullptr || function == nullptr) return c::say_null("claims or function");
  semel_request given;
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  if (const int error = c::check(given); error != SEMEL_OK) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    if (c::check_process(*claims->engine) != SEMEL_OK) {
      c::fill(answer, c::forked_report());
      return answer.deliver(c::say(ErrorCode::forked));
    }
    Claims& space = claims->claims;
    const OnceCall asked = c::call_of(given, *claims->engine);
    OnceReport report;
    {
      detail::GuardedRun run{space, asked, detail::ask(space, asked)};
      semel_out out;
      bool has_value = false;
      if (run.runs()) {
        const int how = call(function, context, run.work(), out);
        has_value = c::finish(space.policy(), run, how, out.bytes);
      }
      if (has_value) answer.set(answer->value, out.bytes);
      if (run.stored()) answer.set(answer->value, *run.stored());
      report = std::move(run.report());
    }
    c::fill(answer, report);
    return answer.deliver(c::say_report(report.error, *claims->engine, given.key_length));
  });
}

int semel_consume_once(semel_claims* claims, const semel_request* request, semel_function handler,
                       void* context, semel_consumed* consumed) {
  if (claims == nullptr || handler == nullptr || consumed == nullptr) {
    return c::say_null("claims, handler or consumed");
  }
  semel_request given;
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  if (const int error = c::check(given); error != SEMEL_OK) return error;
  if (const int error = c::check_message(given)) return error;
  c::Answer answer{consumed};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    if (c::check_process(*claims->engine) != SEMEL_OK) {
      c::fill(answer, c::forked_message());
      return answer.deliver(c::say(ErrorCode::forked));
    }
    Claims& space = claims->claims;
    const ClaimRequest asked = c::request_of(given);
    const Message message = c::message_of(asked);
    const ConsumeOptions options = c::options_of(given, asked, *claims->engine);
    Consumed ended;
    {
      detail::Consumption run{space, message, options};
      if (run.runs()) {
        semel_out out;
        const int how = call(handler, context, run.work(), out);
        c::finish(run, how, std::move(out.bytes));
      }
      ended = std::move(run.consumed());
    }
    c::fill(answer, ended);
    return answer.deliver(c::say_report(ended.error, *claims->engine, given.key_length));
  });
}
