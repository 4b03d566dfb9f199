// The claims' operations in the model proof.
#include <algorithm>
#include <set>

#include "tests/proofs/model/model_run.hpp"

namespace semel::proofs {

ClaimCall ModelRun::some_claim_call(std::size_t names) {
  ClaimCall call;
  const std::size_t range =
      random_.chance(2, 3) ? std::min<std::size_t>(keys_.size(), 3) : keys_.size();
  call.key = keys_[random_.below(range)];
  ClaimRequest& request = call.request;
  if (random_.chance(2, 3)) request.lease = Millis{random_.duration(limits::ttl_max.count())};
  if (random_.chance(1, 2)) {
    request.fingerprint.algorithm = static_cast<std::uint8_t>(random_.below(3));
    request.fingerprint.digest[0] = static_cast<std::uint8_t>(random_.chance(3, 4) ? 1 : 2);
    if (request.fingerprint.algorithm == 0) request.fingerprint = {};
  }
  if (random_.chance(1, 3)) {
    request.claim_id.emplace();
    request.claim_id->fill(static_cast<std::uint8_t>(random_.between(1, 3)));
  }
  if (random_.chance(1, 3)) {
    const Ms window = names_[names].policy.window.count();
    const Ms ahead = names_[names].policy.ahead.count();
    const Ms age = static_cast<Ms>(random_.below(static_cast<std::uint64_t>(window * 2 + 2)));
    request.first_sent_unix_ms = clock_.unix_ms() - (random_.chance(1, 4) ? window : age);
    if (random_.chance(1, 4)) {
      request.first_sent_unix_ms = clock_.unix_ms() + ahead + static_cast<Ms>(random_.below(3)) - 1;
    }
  }
  if (random_.chance(1, 2)) call.owner = "owner " + std::to_string(random_.below(5));
  call.session = 1;
  const std::uint64_t whose = random_.below(4);
  if (whose == 0) {
    request.session = 0;
    call.session = 0;
  } else if (whose == 1 && !session_numbers_.empty()) {
    auto at = session_numbers_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.below(session_numbers_.size())));
    request.session = at->first;
    call.session = at->second;
  }
  return call;
}

OwnedOwnerCall ModelRun::some_owner_call(std::size_t names) {
  constexpr std::array verbs{OwnerVerb::complete, OwnerVerb::complete, OwnerVerb::fail,
                             OwnerVerb::renew, OwnerVerb::release};
  OwnedOwnerCall call;
  call.verb = random_.pick(verbs);
  const std::size_t range =
      random_.chance(2, 3) ? std::min<std::size_t>(keys_.size(), 3) : keys_.size();
  call.key = keys_[random_.below(range)];
  const std::deque<Epoch>& known = epochs_[table_key(names, call.key)];
  if (!known.empty() && random_.chance(9, 10)) {
    const std::size_t back = random_.chance(3, 4) ? 0 : random_.below(known.size());
    call.call.epoch = known[known.size() - 1 - back];
  } else {
    call.call.epoch = random_.chance(1, 2) ? 0 : (known.empty() ? 1 : known.back() + 1);
  }
  if (random_.chance(2, 3)) call.payload = random_.chance(3, 4) ? "result" : some_value();
  if (call.payload.size() > profile_.value_bytes_max) call.payload.clear();
  if (random_.chance(1, 2)) call.call.lease = Millis{random_.duration(limits::ttl_max.count())};
  if (random_.chance(1, 2)) {
    call.call.on_failure =
        random_.chance(1, 2) ? Policy::OnFailure::keep : Policy::OnFailure::release;
  }
  return call;
}

void ModelRun::judge_claim(std::size_t names, const ClaimCall& call, const ClaimOutcome& seen) {
  note(Step{static_cast<std::uint32_t>(names), ClaimStep{call, seen}});
  const std::string key = table_key(names, call.key);
  const Policy& policy = names_[names].policy;
  judge("claim", step(state(policy.db, key), policy, call.view(), call.session, seen, moment()));
  if (seen.answer == ClaimAnswer::granted) {
    std::deque<Epoch>& known = epochs_[key];
    known.push_back(seen.epoch);
    if (known.size() > 4) known.pop_front();
  }
}

void ModelRun::do_claim() {
  const std::size_t names = random_.below(namespace_count);
  const ClaimCall call = some_claim_call(names);
  judge_claim(names, call, names_[names].claims->claim(call.view()));
}

void ModelRun::do_owner_call() {
  const std::size_t names = random_.below(namespace_count);
  const OwnedOwnerCall call = some_owner_call(names);
  Claims& claims = *names_[names].claims;
  OwnerOutcome seen;
  switch (call.verb) {
    case OwnerVerb::complete:
      seen = claims.complete(call.view());
      break;
    case OwnerVerb::fail:
      seen = claims.fail(call.view());
      break;
    case OwnerVerb::renew:
      seen = claims.renew(call.view());
      break;
    case OwnerVerb::release:
      seen = claims.release(call.view());
      break;
  }
  note(Step{static_cast<std::uint32_t>(names), OwnerStep{call, seen}});
  const Policy& policy = names_[names].policy;
  KeyState& key = state(policy.db, table_key(names, call.key));
  judge("owner call", step(key, policy, call.verb, call.view(), seen, moment()));
}

void ModelRun::do_claim_batch() {
  const std::size_t names = random_.below(namespace_count);
  std::vector<ClaimCall> calls(random_.between(1, 20));
  for (ClaimCall& call : calls) call = some_claim_call(names);
  std::vector<ClaimRequest> requests;
  for (const ClaimCall& call : calls) requests.push_back(call.view());
  std::vector<ClaimOutcome> outcomes(calls.size());
  names_[names].claims->claim(requests, outcomes);
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < calls.size() && !failed_; ++i) {
    // One of a session that is closed is refused, and is nobody's first.
    const bool valid = ((dead_sessions_ >> calls[i].session) & 1U) == 0;
    const auto known = first.find(calls[i].key);
    const bool folds = valid && known != first.end();
    expect(outcomes[i].folded_onto.has_value() == folds, "a fold is reported where there is one");
    if (folds && !failed_)
      expect(*outcomes[i].folded_onto == known->second, "folds onto the first");
    if (valid) first.emplace(calls[i].key, i);
    judge_claim(names, calls[i], outcomes[i]);
  }
  operations_ += calls.size() - 1;
}

void ModelRun::do_complete_batch() {
  const std::size_t names = random_.below(namespace_count);
  std::vector<OwnedOwnerCall> calls(random_.between(1, 20));
  for (OwnedOwnerCall& call : calls) {
    call = some_owner_call(names);
    call.verb = OwnerVerb::complete;
  }
  std::vector<OwnerCall> views;
  for (const OwnedOwnerCall& call : calls) views.push_back(call.view());
  std::vector<OwnerOutcome> outcomes(calls.size());
  names_[names].claims->complete(views, outcomes);
  const Policy& policy = names_[names].policy;
  for (std::size_t i = 0; i < calls.size() && !failed_; ++i) {
    note(Step{static_cast<std::uint32_t>(names), OwnerStep{calls[i], outcomes[i]}});
    KeyState& key = state(policy.db, table_key(names, calls[i].key));
    judge("complete in a batch",
          step(key, policy, calls[i].verb, calls[i].view(), outcomes[i], moment()));
  }
  operations_ += calls.size() - 1;
}

void ModelRun::do_claim_all() {
  const std::size_t names = random_.below(namespace_count);
  const Policy& policy = names_[names].policy;
  std::vector<ClaimCall> calls;
  std::set<std::string> taken;
  const std::size_t wanted = random_.between(1, 5);
  for (std::size_t i = 0; i < wanted; ++i) {
    ClaimCall call = some_claim_call(names);
    if (taken.insert(call.key).second) calls.push_back(std::move(call));
  }
  std::vector<ClaimRequest> requests;
  for (const ClaimCall& call : calls) requests.push_back(call.view());
  std::vector<ClaimOutcome> outcomes(calls.size());
  const bool all = names_[names].claims->claim_all(requests, outcomes);
  const bool expected = std::all_of(calls.begin(), calls.end(), [&](const ClaimCall& call) {
    return is_grantable(state(policy.db, table_key(names, call.key)), policy, call.view(),
                        call.session, moment());
  });
  note("claim_all of " + std::to_string(calls.size()) + (all ? ": all" : ": none"));
  expect(all == expected, "claim_all decides wrongly");
  for (std::size_t i = 0; i < calls.size() && !failed_; ++i) {
    const bool is_replay = outcomes[i].answer == ClaimAnswer::replay;
    if (all || is_replay) judge_claim(names, calls[i], outcomes[i]);
  }
  for (const ClaimOutcome& outcome : outcomes) {
    const bool free = outcome.answer == ClaimAnswer::granted;
    if (!all && free) expect(outcome.epoch == 0, "claim_all tells an epoch it did not grant");
  }
}

void ModelRun::do_claim_view() {
  const std::size_t names = random_.below(namespace_count);
  const std::string key = keys_[random_.below(keys_.size())];
  const Policy& policy = names_[names].policy;
  const KeyState& here = state(policy.db, table_key(names, key));
  const Result<ClaimView> view = names_[names].claims->get(key);
  note("view of " + table_key(names, key));
  const bool is_string = alive(here, now()) && here.kind == Kind::string;
  if (is_string) {
    return expect(!view && view.error().code == ErrorCode::wrong_kind, "view of a string");
  }
  expect(view.has_value(), "view is refused");
  if (!failed_) judge("view", step_view(here, policy, *view, moment()));
}

void ModelRun::do_issue() {
  const std::size_t names = random_.below(namespace_count);
  const std::string key = keys_[random_.below(std::min<std::size_t>(keys_.size(), 3))];
  const Policy& policy = names_[names].policy;
  KeyState& here = state(policy.db, table_key(names, key));
  const Millis ttl{random_.duration(2'000)};
  note("issue " + table_key(names, key));
  const Result<bool> seen = names_[names].claims->issue(key, ttl);
  if (!policy.issued) {
    return expect(!seen.ok() && seen.error().code == ErrorCode::bad_option, "issue where none are");
  }
  if (alive(here, now()) && here.kind == Kind::string) {
    return expect(!seen.ok() && seen.error().code == ErrorCode::wrong_kind, "issue of a string");
  }
  expect(seen.has_value(), "issue is refused");
  if (!failed_) judge("issue", step_issue(here, policy, ttl, *seen, moment()));
}

void ModelRun::do_operator_call() {
  const std::size_t names = random_.below(namespace_count);
  const std::string key = keys_[random_.below(keys_.size())];
  const Policy& policy = names_[names].policy;
  KeyState& here = state(policy.db, table_key(names, key));
  Claims& claims = *names_[names].claims;
  const bool forgets = random_.chance(1, 2);
  const Resolution resolution = random_.chance(1, 2) ? Resolution::done : Resolution::released;
  note((forgets ? "forget " : "resolve ") + table_key(names, key));
  const Result<bool> seen = forgets ? claims.forget(key) : claims.resolve(key, resolution, "told");
  if (alive(here, now()) && here.kind == Kind::string) {
    return expect(!seen.ok() && seen.error().code == ErrorCode::wrong_kind,
                  "operator call on a string");
  }
  expect(seen.has_value(), "an operator call is refused");
  if (failed_) return;
  judge("operator call", forgets ? step_forget(here, *seen, moment())
                                 : step_resolve(here, policy, resolution, "told", *seen, moment()));
}

// --- waiting -----------------------------------------------------------------------------------

void ModelRun::do_wait() {
  // A key that is held, if one is found soon, and several waiters: they must be served in order.
  std::size_t names = random_.below(namespace_count);
  ClaimCall call = some_claim_call(names);
  for (int attempt = 0; attempt < 12 && !is_held(names, call.key); ++attempt) {
    names = random_.below(namespace_count);
    call = some_claim_call(names);
  }
  const std::uint64_t count = random_.between(1, 4);
  for (std::uint64_t i = 0; i < count && !failed_ && waiting_ < waiters_at_once_max; ++i) {
    ClaimCall one = some_claim_call(names);
    one.key = call.key;
    wait_for(names, one);
    take_answers();
  }
}

bool ModelRun::is_held(std::size_t names, const std::string& key) {
  const KeyState& here = state(names_[names].policy.db, table_key(names, key));
  return alive(here, now()) && here.kind == Kind::claim && here.claim.state == ClaimState::held &&
         now() < here.claim.lease_until && ((dead_sessions_ >> here.claim.session) & 1U) == 0;
}

void ModelRun::wait_for(std::size_t names, const ClaimCall& call) {
  const std::string key = table_key(names, call.key);
  const Timestamp deadline = clock_.now() + Millis{random_.duration(2'000)};
  const std::uint64_t id = ++waiter_ids_;
  waiters_[key].push_back({id, names, call, deadline});
  ++waiting_;
  note("wait " + std::to_string(id) + " for " + key);
  names_[names].claims->claim_or_wait(call.view(), deadline, [this, id](ClaimOutcome&& outcome) {
    answered_.push_back({id, std::move(outcome)});
  });
}

void ModelRun::take_answers() {
  // An answer may come during any operation; it is judged as the claim it is, after it.
  for (std::size_t i = 0; i < answered_.size() && !failed_; ++i) take_answer(answered_[i]);
  answered_.clear();
}

void ModelRun::take_answer(const Answered& answered) {
  for (auto& [key, queue] : waiters_) {
    const auto at = std::find_if(queue.begin(), queue.end(),
                                 [&](const Waiter& waiter) { return waiter.id == answered.id; });
    if (at == queue.end()) continue;
    const Waiter waiter = *at;
    const bool was_first = at == queue.begin();
    queue.erase(at);
    --waiting_;
    const ClaimOutcome& outcome = answered.outcome;
    if (outcome.answer == ClaimAnswer::in_flight) {
      note("wait " + std::to_string(waiter.id) + " timed out");
      expect(outcome.error == ErrorCode::timed_out, "a wait ends in flight but not timed out");
      return expect(waiter.deadline <= clock_.now(), "a wait ends before its deadline");
    }
    note("wait " + std::to_string(waiter.id) + " ended by:");
    // A newcomer whose answer is not in_flight need not wait for those who came before it.
    const bool newcomer = waiter.id == waiter_ids_;
    expect(was_first || newcomer, "a later waiter is served first");
    return judge_claim(waiter.names, waiter.call, outcome);
  }
  fail("a wait is answered twice");
}

/// After a full advance: no wait is past its deadline, or for a key that is not held.
void ModelRun::check_waiters() {
  for (const auto& [key, queue] : waiters_) {
    if (queue.empty()) continue;
    for (const Waiter& waiter : queue) {
      expect(waiter.deadline > clock_.now(), "a wait goes on after its deadline: " + key);
    }
    const Waiter& head = queue.front();
    expect(is_held(head.names, head.call.key),
           "a caller waits for a claim that is not held: " + key);
  }
}

void ModelRun::do_session() {
  constexpr std::uint32_t last_number = 63;
  if (random_.chance(1, 2) && session_numbers_.size() + 2 <= last_number) {
    const SessionId session = engine_->open_session();
    const auto number = static_cast<std::uint32_t>(session_numbers_.size() + 2);
    session_numbers_[session] = number;
    open_sessions_.push_back(session);
    return note("open session " + std::to_string(number));
  }
  if (open_sessions_.empty() || !random_.chance(1, 4)) return;
  const std::size_t victim = random_.below(open_sessions_.size());
  const SessionId session = open_sessions_[victim];
  open_sessions_.erase(open_sessions_.begin() + static_cast<std::ptrdiff_t>(victim));
  dead_sessions_ |= std::uint64_t{1} << session_numbers_[session];
  note("close session " + std::to_string(session_numbers_[session]));
  engine_->close_session(session);
}

}  // namespace semel::proofs
