// The work of the once proof, the calls that run it, and what their answers may say.
#include "tests/proofs/once/once_program.hpp"

#include <array>
#include <charconv>
#include <set>
#include <stdexcept>

namespace semel::proofs {
namespace {

using tests::Process;

constexpr Millis lease{60'000};

constexpr Policy policy_of(Policy::OnLeaseEnd lease_end, Policy::OnFailure failure,
                           Policy::OnFailure exception, std::uint32_t attempts_max) {
  Policy policy = policies::message;
  policy.on_lease_end = lease_end;
  policy.on_failure = failure;
  policy.on_exception = exception;
  policy.attempts_max = attempts_max;
  return policy;
}

using Lease = Policy::OnLeaseEnd;
using Means = Policy::OnFailure;
constexpr std::array contracts{
    policy_of(Lease::retry, Means::release, Means::release, 0),
    policy_of(Lease::retry, Means::release, Means::release, 3),
    policy_of(Lease::retry, Means::keep, Means::release, 0),
    policy_of(Lease::retry, Means::release, Means::keep, 0),
    policy_of(Lease::retry, Means::release, Means::in_doubt, 4),
    policy_of(Lease::in_doubt, Means::release, Means::in_doubt, 0),
    policy_of(Lease::in_doubt, Means::keep, Means::in_doubt, 0),
    policy_of(Lease::in_doubt, Means::release, Means::release, 3),
};

Status status(const Result<Receipt>& result) {
  return result.ok() ? Status{Done{}} : Status{result.error()};
}

}  // namespace

std::string Receipt::encode() const {
  if (throws) throw std::runtime_error{"no form"};
  return std::to_string(run);
}

std::optional<Receipt> Receipt::decode(Bytes bytes) {
  Receipt receipt;
  const auto read = std::from_chars(bytes.data(), bytes.data() + bytes.size(), receipt.run);
  if (bytes.empty() || read.ptr != bytes.data() + bytes.size()) return std::nullopt;
  return receipt;
}

void OnceFigures::add(const OnceFigures& more) noexcept {
  runs += more.runs;
  locks += more.locks;
  permits += more.permits;
  readers += more.readers;
  allowed += more.allowed;
  refusals += more.refusals;
  closes += more.closes;
  twins += more.twins;
  formless += more.formless;
  effects += more.effects;
  recalled += more.recalled;
  stale += more.stale;
  changed += more.changed;
}

OnceProgram::OnceProgram(std::uint64_t seed)
    : random_(seed),
      policy_(contracts[random_.below(contracts.size())]),
      is_small_(random_.chance(1, 6)),
      only_steps_(random_.chance(1, 4)),
      oracle_(policy_),
      process_(steps(), is_small_ ? limits::memory_bytes_min : limits::memory_bytes_default),
      locks_(random_, process_),
      semaphores_(random_, process_),
      reader_story_(random_, process_),
      limit_story_(random_, process_),
      step_story_(random_, process_, only_steps_) {
  declare();
}

std::string OnceProgram::run() {
  const std::uint64_t calls = random_.between(3, 12);
  for (std::uint64_t i = 0; i < calls && oracle_.complaint().empty() && complaint_.empty(); ++i) {
    depth_ = 0;
    was_filled_ = process_.is_filled();
    call();
    if (process_.alive()) {
      oracle_.settle();
    } else {
      oracle_.crash();
      next_process(random_.chance(1, 3) ? random_.below(60) : Process::never);
    }
  }
  if (oracle_.complaint().empty() && complaint_.empty()) last_calls();
  return oracle_.complaint().empty() ? complaint_ : oracle_.complaint();
}

/// All namespaces, while there is memory for them.
void OnceProgram::declare() {
  static_cast<void>(process_.claims("n", policy_));
  static_cast<void>(process_.claims("t", policies::token));
  static_cast<void>(process_.claims("d", policies::debounce));
  locks_.declare();
  semaphores_.declare();
  reader_story_.declare();
  step_story_.declare();
}

void OnceProgram::next_process(std::uint64_t steps) {
  if (process_.alive()) ++figures_.closes;
  locks_.next_process();
  semaphores_.next_process();
  reader_story_.next_process();
  step_story_.next_process(!process_.alive());
  process_.restart(steps);
  declare();
}

void OnceProgram::call() {
  switch (only_steps_ ? random_.between(13, 16) : random_.below(17)) {
    case 0:
    case 1:
      static_cast<void>(call_once(key()));
      return;
    case 2:
    case 3:
      return consume(key());
    case 4:
    case 5:
    case 6:
      return batch();
    case 7:
      return process_.clock().advance(Millis{static_cast<std::int64_t>(random_.below(90'000))});
    case 8:
      return resolve();
    case 9:
      return random_.chance(1, 2) ? token() : debounce();
    case 10:
    case 11: {
      const std::uint64_t which = random_.below(8);
      const std::string wrong = which < 2   ? semaphores_.play()
                                : which < 4 ? reader_story_.play()
                                : which < 5 ? limit_story_.play()
                                            : locks_.play();
      if (complaint_.empty()) complaint_ = wrong;
      return;
    }
    case 12:
      return fill_or_empty();
    case 13:
    case 14:
    case 15: {
      const std::string wrong = step_story_.play();
      if (complaint_.empty()) complaint_ = wrong;
      return;
    }
    default:
      return close_between();
  }
}

/// When all leases are over and there is memory, what is free is run.
void OnceProgram::last_calls() {
  if (!process_.alive()) return;
  process_.clock().advance(lease + Millis{1});
  depth_ = 2;
  for (const std::string key : {"a", "b", "c"}) {
    process_.empty();  // work before may have filled it
    was_filled_ = false;
    const bool must = oracle_.must_run(key);
    const Run run = call_once(key);
    if (!process_.alive()) return;
    if (must && run.number == 0) oracle_.complain(key, "was free and did not run");
  }
}

/// The work of a key: an effect, then perhaps time or another caller, then an end.
Result<Receipt> OnceProgram::work(const std::string& key, Work& given, Watchdog* watchdog,
                                  Millis held, Run& run, bool may_doubt) {
  process_.effect(key);
  if (process_.alive()) run.number = oracle_.begin(key, now(), now() + held);
  if (is_small_ && random_.chance(1, 6)) {
    process_.fill();
    was_filled_ = true;
  }
  try_step(given);
  if (random_.chance(1, 4)) be_slow(key, run.number, watchdog);
  if (depth_ < 2 && random_.chance(1, 4)) {
    ++depth_;
    const std::string other = random_.chance(1, 2) ? key : this->key();
    random_.chance(1, 2) ? consume(other) : static_cast<void>(call_once(key));
  }
  const Ending how = std::array{Ending::ok, Ending::ok, Ending::error, Ending::thrown,
                                Ending::unsure}[random_.below(may_doubt ? 5 : 4)];
  run.how = how;
  if (process_.alive()) oracle_.end(key, run.number, how, !was_filled_);
  if (how == Ending::thrown) throw std::runtime_error{"gone"};
  if (how == Ending::error) return Error{ErrorCode::timed_out, "no"};
  if (how == Ending::unsure) return Error{ErrorCode::outcome_unknown, "perhaps"};
  return Receipt{run.number, random_.chance(1, 4)};
}

/// A step whose memo may have no form; that is its affair, and the work goes on.
void OnceProgram::try_step(Work& given) {
  const bool throws = random_.chance(1, 6);
  try {
    const auto memo = given.steps().run("step", [&] { return Receipt{++step_runs_, throws}; });
    static_cast<void>(memo);  // refused where the claim is lost; the work goes on all the same
  } catch (const std::runtime_error&) {
  }
}

void OnceProgram::be_slow(const std::string& key, std::uint64_t run, Watchdog* watchdog) {
  for (int i = 0; i < 8; ++i) {
    process_.clock().advance(Millis{10'000});
    if (watchdog == nullptr) continue;
    static_cast<void>(watchdog->poll());
    if (was_filled_) continue;  // there may be no memory to renew it
    // Renewed when a third of it had passed: two thirds are left at least, if it was not lost.
    oracle_.renewed(key, run, now() + lease / 2);
  }
}

OnceProgram::Run OnceProgram::call_once(const std::string& key) {
  Claims claims = process_.claims("n", policy_);
  Watchdog watchdog{process_.engine()};
  Watchdog* const keeps = random_.chance(1, 2) ? &watchdog : nullptr;
  Run run;
  try {
    judge_once(key, run, once(claims, {.key = key, .watchdog = keeps}, [&](Work& given) {
                 return work(key, given, keeps, lease, run);
               }));
  } catch (const std::runtime_error&) {
    if (run.how != Ending::thrown) oracle_.complain(key, "threw what its work did not throw");
  }
  return run;
}

void OnceProgram::consume(const std::string& key) {
  Claims claims = process_.claims("n", policy_);
  Watchdog watchdog{process_.engine()};
  Watchdog* const keeps = random_.chance(1, 2) ? &watchdog : nullptr;
  Run run;
  try {
    const Consumed consumed =
        consume_once(claims, {.id = key},
                     [&](Work& given) { return status(work(key, given, keeps, lease, run)); },
                     {.watchdog = keeps});
    judge_consumed(key, run, consumed);
  } catch (const std::runtime_error&) {
  }
}

void OnceProgram::batch() {
  Claims claims = process_.claims("n", policy_);
  Watchdog watchdog{process_.engine()};
  Watchdog* const keeps = random_.chance(1, 2) ? &watchdog : nullptr;
  std::vector<std::string> ids;
  for (std::uint64_t i = random_.between(1, 5); i > 0; --i) ids.push_back(key());
  std::vector<Message> messages;
  for (const std::string& id : ids) messages.push_back({.id = id});
  std::vector<Run> runs(ids.size());
  const auto consumed =
      consume_batch(claims, messages,
                    [&](const Message& one, Work& given) {
                      Run& run = runs[static_cast<std::size_t>(&one - messages.data())];
                      if (run.how) complain("a message of a batch was handled twice");
                      return status(work(std::string{one.id}, given, keeps, lease / 3 * 2, run));
                    },
                    {.watchdog = keeps});
  if (consumed.size() != ids.size()) return complain("a batch without an answer for each");
  figures_.twins += ids.size() - std::set<std::string>{ids.begin(), ids.end()}.size();
  for (std::size_t i = 0; i < ids.size(); ++i) judge_consumed(ids[i], runs[i], consumed[i]);
}

void OnceProgram::judge_refusal(const std::string& key, OnceAnswer answer) {
  if (answer == OnceAnswer::busy) ++figures_.refusals;
  if (answer == OnceAnswer::busy && !was_filled_) {
    oracle_.complain(key, "was refused for memory that was there");
  }
  if (answer == OnceAnswer::refused || answer == OnceAnswer::unguarded) {
    oracle_.complain(key, "was refused, or run unguarded");
  }
}

/// No caller, earlier or later, may get another result than its own.
void OnceProgram::judge_once(const std::string& key, const Run& run,
                             const OnceOutcome<Receipt>& outcome) {
  if (!process_.alive()) return;
  judge_refusal(key, outcome.answer);
  const bool ran = run.how.has_value();
  const bool replays =
      outcome.answer == OnceAnswer::replayed || outcome.answer == OnceAnswer::expired;
  if (replays && (ran || !oracle_.was_done(key))) {
    oracle_.complain(key, "was said to be done, and was not");
  }
  if (outcome.answer == OnceAnswer::ran && run.how != Ending::ok) {
    oracle_.complain(key, "was said to have run, and has not");
  }
  if (outcome.answer == OnceAnswer::ran && outcome.value && outcome.value->throws) {
    ++figures_.formless;
    if (outcome.error.code != ErrorCode::result_not_kept) {
      oracle_.complain(key, "was said to be kept, and has no form");
    }
  }
  if (outcome.answer == OnceAnswer::replayed && outcome.value &&
      oracle_.receipt(key) != outcome.value->run) {
    oracle_.complain(key, "was answered with another result");
  }
  if (outcome.answer == OnceAnswer::unrecorded) oracle_.unrecorded(key, run.number, was_filled_);
}

/// A message that is acknowledged to the broker has been handled.
void OnceProgram::judge_consumed(const std::string& key, const Run& run, const Consumed& consumed) {
  if (!process_.alive()) return;
  judge_refusal(key, consumed.answer);
  const bool ran = run.how.has_value();
  if (consumed.verdict == Verdict::ack && run.how != Ending::ok) {
    oracle_.complain(key, "was acknowledged, and not handled");
  }
  if (consumed.verdict == Verdict::ack_duplicate) {
    if (!oracle_.was_done(key)) oracle_.complain(key, "was a duplicate of nothing");
    if (ran && consumed.answer != OnceAnswer::superseded) {
      oracle_.complain(key, "was handled as a duplicate");
    }
  }
  if (consumed.verdict == Verdict::dead_letter && run.how == Ending::ok) {
    oracle_.complain(key, "was handled, and is a dead letter");
  }
  if (consumed.answer == OnceAnswer::unrecorded) oracle_.unrecorded(key, run.number, was_filled_);
}

void OnceProgram::resolve() {
  const std::string which = key();
  const bool done = random_.chance(1, 2);
  const auto found =
      process_.claims("n", policy_).resolve(which, done ? Resolution::done : Resolution::released);
  if (process_.alive() && found.ok() && *found) oracle_.resolved(which, done);
}

}  // namespace semel::proofs
