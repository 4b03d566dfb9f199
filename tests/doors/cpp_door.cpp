// The stories of tests/doors/stories.json as a C++ program meets them: a line a story, its name, a
// tab, its outcome.
#include <array>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include "semel/clock.hpp"
#include "semel/engine.hpp"
#include "semel/patterns/identity.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/once.hpp"
#include "semel/patterns/rate_limit.hpp"
#include "semel/patterns/read_write_lock.hpp"
#include "semel/patterns/semaphore.hpp"
#include "semel/policies.hpp"

namespace semel::doors {
namespace {

struct Here {
  ManualClock clock;
  std::unique_ptr<Engine> engine = Engine::open({.clock = &clock}).value();
  Claims calls = engine->claims("doors-cpp", policies::call).value();
};

void tell(const char* story, const std::string& outcome) {
  std::printf("%s\t%s\n", story, outcome.c_str());
}

std::string runs(const char* before, int count) {
  return std::string{before} + "; runs " + std::to_string(count);
}

Fingerprint print_of(Bytes operation, Bytes arguments) {
  return fingerprint_identity({.operation = operation, .arguments = arguments}).value();
}

void result_equal(Here& here) {
  int count = 0;
  const auto work = [&] { return "receipt " + std::to_string(++count); };
  const auto first = once(here.calls, "result-equal", work);
  const auto again = once(here.calls, "result-equal", work);
  tell("result-equal", runs(first.value == again.value ? "equal" : "other", count));
}

void lazy_work(Here& here) {
  // Such a function does not compile: tests/compile_fail has it.
  const bool is_refused = !Encodable<std::future<int>>;
  int count = 0;
  static_cast<void>(once(here.calls, "lazy-work", [&] { return ++count; }));
  tell("lazy-work", std::string{is_refused ? "refused" : "taken"} +
                        (count == 1 ? "; then ran" : "; then did not run"));
}

void throws(Here& here) {
  std::string outcome = "no exception";
  try {
    static_cast<void>(once(here.calls, "throws", []() -> int { throw std::runtime_error{"x"}; }));
  } catch (const std::runtime_error&) {
    outcome = "thrown";
  }
  int count = 0;
  static_cast<void>(once(here.calls, "throws", [&] { return ++count; }));
  tell("throws", outcome + (count == 1 ? "; then ran" : "; then did not run"));
}

void wrong_keys(Here& here) {
  int count = 0;
  const auto work = [&] { return ++count; };
  const auto empty = once(here.calls, "", work);
  const bool is_empty =
      empty.answer == OnceAnswer::refused && empty.error.code == ErrorCode::key_empty;
  tell("key-empty", runs(is_empty ? "key error" : "other", count));
  const auto huge = once(here.calls, std::string(limits::key_bytes_max + 1, 'k'), work);
  const bool is_huge =
      huge.answer == OnceAnswer::refused && huge.error.code == ErrorCode::key_too_long;
  tell("key-huge", runs(is_huge ? "key error" : "other", count));
}

void others(Here& here, const char* story, Fingerprint first, Fingerprint second) {
  int count = 0;
  const auto work = [&] { return ++count; };
  static_cast<void>(once(here.calls, OnceCall{.key = story, .fingerprint = first}, work));
  const auto other = once(here.calls, OnceCall{.key = story, .fingerprint = second}, work);
  tell(story, runs(other.answer == OnceAnswer::mismatch ? "mismatch" : "other", count));
}

void times(Here& here) {
  int count = 0;
  const auto work = [&] { return ++count; };
  const auto none = once(here.calls, OnceCall{.key = "lease-zero", .lease = Millis{0}}, work);
  tell("lease-zero", runs(none.answer == OnceAnswer::refused ? "refused" : "other", count));
  Policy policy = policies::message;
  policy.window = Millis{86'400'000};
  Claims messages = here.engine->claims("doors-cpp-window", policy).value();
  const auto old =
      once(messages, OnceCall{.key = "first-sent-1970", .first_sent_unix_ms = 0}, work);
  tell("first-sent-1970", runs(old.answer == OnceAnswer::too_old ? "too old" : "other", count));
}

void lease_lost(Here& here) {
  const auto late = once(here.calls, "lease-lost", [&] {
    here.clock.advance(policies::call.lease);
    static_cast<void>(once(here.calls, "lease-lost", [] { return std::string{"other"}; }));
    return std::string{"mine"};
  });
  const auto again = once(here.calls, "lease-lost", [] { return std::string{"third"}; });
  tell("lease-lost",
       std::string{late.answer == OnceAnswer::superseded ? "too late" : "not noticed"} +
           "; repeat " + again.value.value_or("none"));
}

void step_stale(Here& here) {
  int steps = 0;
  ErrorCode answer = ErrorCode::ok;
  const auto charge = [&] { return ++steps; };
  static_cast<void>(once(here.calls, "step-stale", [&](Work& mine) {
    here.clock.advance(policies::call.lease);
    static_cast<void>(once(here.calls, "step-stale",
                           [&](Work& other) { return other.steps().run("charge", charge); }));
    const auto step = mine.steps().run("charge", charge);
    answer = step.ok() ? ErrorCode::ok : step.error().code;
    return step;
  }));
  tell("step-stale", std::string{answer == ErrorCode::not_owner ? "not owner" : "other"} +
                         "; step runs " + std::to_string(steps));
}

void locks(Here& here) {
  Claims space = here.engine->claims("doors-cpp-locks", policies::lock).value();
  {
    Lock lock{space, "lock-shared"};
    Lock other{space, "lock-shared"};
    const bool one = lock.try_lock();
    tell("lock-shared", one && !other.try_lock() ? "one holder" : "two holders");
  }
  Lock lock{space, "lock-lost"};
  static_cast<void>(lock.try_lock());
  here.clock.advance(policies::lock.lease);
  {
    Lock other{space, "lock-lost"};
    static_cast<void>(other.try_lock());
  }
  tell("lock-lost", lock.unlock() ? "given back" : "lease lost");
}

void all_locks(Here& here) {
  Claims space = here.engine->claims("doors-cpp-locks", policies::lock).value();
  const std::array<ClaimRequest, 2> keys{{{.key = "locks-all"}, {.key = "locks-all:other"}}};
  std::array<ClaimOutcome, 2> outcomes;
  Lock held{space, "locks-all:other"};
  const bool refused = held.try_lock() && !space.claim_all(keys, outcomes) &&
                       outcomes[1].answer == ClaimAnswer::in_flight;
  Lock other{space, "locks-all"};
  const bool is_free = other.try_lock() && other.unlock() && held.unlock();
  const bool granted = space.claim_all(keys, outcomes);
  tell("locks-all", std::string{refused ? "held, " : "not held, "} +
                        (is_free ? "other free; " : "other held; ") +
                        (granted ? "then granted" : "then none"));
}

void permits(Here& here) {
  Claims space = here.engine->claims("doors-cpp-locks", policies::lock).value();
  Semaphore one{space, "permits-fewer", {.permits = 2}};
  Semaphore other{space, "permits-fewer", {.permits = 2}};
  Semaphore fewer{space, "permits-fewer", {.permits = 1}};
  const bool both = one.try_acquire() && other.try_acquire();
  const bool given = one.release();
  const bool held = both && given && !fewer.try_acquire();
  const bool granted = other.release() && fewer.try_acquire();
  tell("permits-fewer",
       std::string{held ? "held" : "too many"} + (granted ? "; then granted" : "; then none"));
}

void readers(Here& here) {
  Claims space = here.engine->claims("doors-cpp-locks", policies::lock).value();
  ReadWriteLock one{space, "readers-writer"};
  ReadWriteLock other{space, "readers-writer"};
  ReadWriteLock writer{space, "readers-writer"};
  Fence fence;
  const bool both = one.try_read() && other.try_read() && fence.admit_reader(one.fencing_token());
  const bool kept_out = one.release() && !writer.try_write() && other.release();
  const bool alone = writer.try_write() && !one.try_read() && fence.admit(writer.fencing_token());
  const bool after = writer.release() && one.try_read();
  tell("readers-writer", std::string{both ? "two readers" : "not two"} +
                             (kept_out ? ", no writer; " : ", a writer; ") +
                             (alone ? "then one writer; " : "then not alone; ") +
                             (after ? "then a reader" : "then none"));
}

std::string word(const Result<RateOutcome>& taken) {
  if (!taken.ok()) return "error";
  return taken->allowed ? "allowed" : "limited, " + std::to_string(taken->remaining) + " left";
}

void rates(Here& here) {
  RateLimiter limiter{*here.engine, {.limit = 3, .period = Millis{86'400'000}}};
  static_cast<void>(limiter.take("rate-limit", 2));
  const std::string first = word(limiter.take("rate-limit", 2));
  const std::string second = word(limiter.take("rate-limit"));
  tell("rate-limit", first + "; then " + second + "; then " + word(limiter.take("rate-limit")));
}

void play() {
  Here here;
  result_equal(here);
  lazy_work(here);
  throws(here);
  wrong_keys(here);
  others(here, "payload-other", print_of("pay", R"({"cents":1})"),
         print_of("pay", R"({"cents":2})"));
  others(here, "operation-other", print_of("pay", "{}"), print_of("refund", "{}"));
  times(here);
  lease_lost(here);
  step_stale(here);
  locks(here);
  all_locks(here);
  permits(here);
  readers(here);
  rates(here);
}

}  // namespace
}  // namespace semel::doors

int main() {
  semel::doors::play();
}
