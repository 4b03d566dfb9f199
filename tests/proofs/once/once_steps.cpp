#include "tests/proofs/once/once_steps.hpp"

#include <array>
#include <stdexcept>

namespace semel::proofs {
namespace {

constexpr Millis minute{60'000};
constexpr Millis hour = 60 * minute;

Policy steps_policy(Random& random, bool takes_days) {
  Policy policy = policies::message;
  policy.lease = minute;
  policy.result_ttl = takes_days ? hour : minute;
  policy.failure_ttl = policy.result_ttl;
  policy.attempts_ttl = 2 * policy.result_ttl;
  policy.attempts_max = random.chance(1, 4) ? 3 : 0;
  using Failure = Policy::OnFailure;
  policy.on_failure = random.chance(1, 4) ? Failure::keep : Failure::release;
  policy.on_exception = std::array{Failure::release, Failure::keep, Failure::in_doubt,
                                   Failure::in_doubt}[random.below(4)];
  if (random.chance(1, 3)) policy.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  return policy;
}

}  // namespace

StepStory::StepStory(Random& random, tests::Process& process, bool takes_days)
    : random_(random),
      process_(process),
      takes_days_(takes_days),
      policy_(steps_policy(random, takes_days)),
      has_payloads_(random.chance(2, 3)) {}

Fingerprint StepStory::print_of(unsigned payload) const {
  Fingerprint made;
  if (!has_payloads_) return made;
  made.algorithm = 1;
  made.digest[0] = static_cast<std::uint8_t>(payload);
  return made;
}

std::string StepStory::play() {
  const std::string key(1, static_cast<char>('x' + random_.below(2)));
  switch (random_.below(10)) {
    case 0: {
      const Millis pause = std::array{minute, policy_.result_ttl + minute, 4 * minute,
                                      72 * hour}[random_.below(takes_days_ ? 4 : 3)];
      process_.clock().advance(pause + Millis{1});
      static_cast<void>(process_.engine().advance());
      break;
    }
    case 1:
      resolve(key);
      break;
    case 2:
      random_.chance(1, 3) && !process_.is_filled() ? drop() : unguarded();
      break;
    case 3: {
      const auto found = process_.claims("s", policy_).forget(key);
      if (process_.alive() && found.ok()) begin_anew(keys_[key]);
      if (!process_.alive()) keys_[key].perhaps_over = true;
      break;
    }
    default:
      attempt(key, 0);
  }
  return complaint_;
}

void StepStory::next_process(bool crashed) {
  frames_.clear();
  if (!crashed) return;
  complaint_.clear();  // what a dead process says does not count
}

void StepStory::declare() {
  if (process_.engine().claims("s", policy_).ok()) return;
  const auto there = process_.engine().claims("s");  // of a change that a crash came into
  if (there.ok()) policy_ = there->policy();
}

void StepStory::begin_anew(Key& key) {
  key = {.run = key.run, .since = effects_};
}

/// Also from within the work of another attempt, or of its own key when the lease is over.
void StepStory::attempt(const std::string& key, int depth) {
  const unsigned payload = static_cast<unsigned>(random_.below(2));
  Claims claims = process_.claims("s", policy_);
  std::uint64_t run = 0;
  std::optional<Ending> how;
  OnceAnswer answer = OnceAnswer::failed;  // of what throws
  try {
    answer = once(claims, {.key = key, .fingerprint = print_of(payload)}, [&](Work& given) {
               run = runs_ + 1;
               return work(key, payload, given, depth, how);
             }).answer;
  } catch (const std::runtime_error&) {
  }
  if (process_.alive()) return judge_end(key, run, answer, how);
  // The end of what was begun may be written down or not.
  if (how) keys_[key].perhaps_over = true;
}

Result<std::string> StepStory::work(const std::string& key, unsigned payload, Work& given,
                                    int depth, std::optional<Ending>& how) {
  Frame frame{.key = key, .payload = payload, .run = ++runs_, .work = &given};
  Key& mine = keys_[key];
  if (process_.alive()) {
    if (now() >= mine.lives_until) mine.perhaps_over = true;
    for (const Frame* const each : frames_) {
      if (each->key == key && each->in_doubt && each->run == mine.run) {
        complain(key, "ran again although its owner went silent");
      }
    }
    frame.in_doubt = policy_.on_lease_end == Policy::OnLeaseEnd::in_doubt;
    mine.run = frame.run;
    mine.lives_until = now() + policy_.lease + policy_.attempts_ttl;
    if (policy_.on_lease_end == Policy::OnLeaseEnd::in_doubt) mine.lives_until = no_end;
  }
  charge_stale();
  frames_.push_back(&frame);
  if (random_.chance(3, 4)) charge(frame);
  if (random_.chance(1, 6)) change_terms();
  if (random_.chance(1, 3)) {
    // With the record, where its end has not been put off.
    const Millis behind = random_.chance(1, 2) ? policy_.attempts_ttl : Millis{0};
    process_.clock().advance(policy_.lease + behind + Millis{1});
    for (Frame* each : frames_) each->is_over = true;
  }
  if (depth < 2 && random_.chance(1, 2)) attempt(key, depth + 1);
  if (random_.chance(1, 2)) charge(frame);
  if (!frames_.empty()) frames_.pop_back();
  how = std::array{Ending::ok, Ending::ok, Ending::error, Ending::unsure,
                   Ending::thrown}[random_.below(5)];
  if (how == Ending::thrown) throw std::runtime_error{"gone"};
  if (how == Ending::error) return Error{ErrorCode::timed_out, "no"};
  if (how == Ending::unsure) return Error{ErrorCode::outcome_unknown, "perhaps"};
  return std::string{"done"};
}

/// The owners that this run has replaced try their step, while the present one holds the claim.
void StepStory::charge_stale() {
  for (Frame* const each : std::vector<Frame*>{frames_}) {
    if (each->is_over && random_.chance(1, 2)) charge(*each);
  }
}

void StepStory::charge(Frame& frame) {
  Key& mine = keys_[frame.key];
  bool is_new = false;
  std::uint64_t id = 0;
  if (frame.is_over) ++stale_;
  const auto result = frame.work->steps().run("charge", [&] {
    process_.effect("charge");
    id = ++effects_;
    payload_of_[id] = frame.payload;
    is_new = true;
    if (frame.is_over) complain(frame.key, "ran after the lease of its owner");
    if (mine.run != frame.run) complain(frame.key, "ran for an owner that was replaced");
    const Charge& known = mine.charges[has_payloads_ ? frame.payload : 0];
    if (known.kept && !mine.perhaps_over) complain(frame.key, "had its effect twice");
    return std::to_string(id);
  });
  if (!process_.alive()) return;
  if (!result.ok()) {
    if (is_new) mine.charges[has_payloads_ ? frame.payload : 0] = {.id = id, .kept = false};
    return;
  }
  judge_memo(frame, std::stoull(*result), is_new);
}

void StepStory::judge_memo(Frame& frame, std::uint64_t id, bool is_new) {
  Key& mine = keys_[frame.key];
  if (id <= mine.since) complain(frame.key, "was answered with a memo of earlier work");
  if (has_payloads_ && payload_of_[id] != frame.payload) {
    complain(frame.key, "was answered with a memo of another payload");
  }
  if (!is_new) ++recalled_;
  if (is_new && mine.perhaps_over) {  // then nothing is known of the others
    for (auto& [payload, charge] : mine.charges) charge.kept = false;
  }
  mine.perhaps_over = false;  // this one is there, and if it was recalled, then all are
  mine.charges[has_payloads_ ? frame.payload : 0] = {.id = id, .kept = true};
}

/// What the answer says about the record.
void StepStory::judge_end(const std::string& key, std::uint64_t run, OnceAnswer answer,
                          std::optional<Ending> how) {
  Key& mine = keys_[key];
  if (run != 0 && mine.run != run) return;  // of a run that was replaced
  if (run != 0 && now() >= mine.lives_until) mine.perhaps_over = true;  // nothing was given back
  if (answer == OnceAnswer::ran) return begin_anew(mine);
  if (answer == OnceAnswer::kept_failure) return begin_anew(mine);
  if (answer == OnceAnswer::unrecorded) mine.perhaps_over = true;
  if (!how || *how == Ending::ok || answer == OnceAnswer::superseded) return;
  // Where memory was full the failure may not have been written down.
  if (process_.is_filled()) mine.perhaps_over = true;
  switch (*how == Ending::error ? policy_.on_failure : policy_.on_exception) {
    case Policy::OnFailure::keep:
      if (!process_.is_filled()) begin_anew(mine);
      return;
    case Policy::OnFailure::in_doubt:
      mine.lives_until = no_end;
      return;
    case Policy::OnFailure::release:
      mine.lives_until = now() + policy_.attempts_ttl;
  }
}

/// Its memos are its own.
void StepStory::unguarded() {
  Claims claims = process_.claims("s", policy_);
  int ran = 0;
  const auto outcome = once(claims, {.without_key = true}, [&](Work& given) -> Result<int> {
    for (int i = 0; i < 2; ++i) {
      SEMEL_TRY(made, given.steps().run("charge", [&] { return ++ran; }));
      if (made != 1) complain("unguarded work", "was answered with another memo");
    }
    return ran;
  });
  if (ran != 1) complain("unguarded work", "did not run once");
  if (outcome.answer != OnceAnswer::unguarded) complain("unguarded work", "was refused");
}

void StepStory::resolve(const std::string& key) {
  const bool done = random_.chance(1, 2);
  const auto found =
      process_.claims("s", policy_).resolve(key, done ? Resolution::done : Resolution::released);
  Key& mine = keys_[key];
  if (!process_.alive()) {
    mine.perhaps_over = mine.perhaps_over || done;
    mine.lives_until = now();
    return;
  }
  if (!found.ok() || !*found) return;
  if (done) return begin_anew(mine);
  mine.lives_until = now() + policy_.attempts_ttl;
}

/// Of what happens when a lease is over. In doubt holds for what is held as well, what ends earlier
/// for new claims alone.
void StepStory::change_terms() {
  Policy other = policy_;
  const bool to_doubt = policy_.on_lease_end != Policy::OnLeaseEnd::in_doubt;
  other.on_lease_end = to_doubt ? Policy::OnLeaseEnd::in_doubt : Policy::OnLeaseEnd::retry;
  const auto found = process_.engine().change_namespace("s", other);
  if (found.ok()) policy_ = other;
  if (!process_.alive()) {
    for (auto& [name, key] : keys_) key.perhaps_over = true;
    return;
  }
  if (!found.ok()) {
    // Claims may be in doubt: nobody is to take them.
    const bool would_free = !to_doubt && found.error().code == ErrorCode::namespace_differs;
    if (!would_free && !process_.is_filled()) complain("a namespace", "could not be changed");
    return;
  }
  ++changed_;
  if (!to_doubt) return;
  for (Frame* const each : frames_) {
    Key& mine = keys_[each->key];
    if (each->is_over || each->run != mine.run) continue;
    each->in_doubt = true;
    mine.lives_until = no_end;
  }
}

void StepStory::drop() {
  const auto dropped = process_.engine().drop_namespace("s", DropRule::all);
  for (const char* key : {"x", "y"}) {
    if (!process_.alive() || !dropped.ok()) {
      keys_[key].perhaps_over = true;
    } else {
      begin_anew(keys_[key]);
    }
  }
  if (process_.alive()) declare();
}

}  // namespace semel::proofs
