// What the recording threads of the linearizability proof do.
#include <array>
#include <cstdio>
#include <thread>

#include "semel/engine_host.hpp"
#include "tests/proofs/linearizability/linear_run.hpp"

namespace semel::proofs {
namespace {

constexpr std::array verbs{Verb::get,   Verb::get,    Verb::get,     Verb::exists,     Verb::set,
                           Verb::set,   Verb::set,    Verb::set,     Verb::set,        Verb::getdel,
                           Verb::getex, Verb::append, Verb::incr_by, Verb::incr_by,    Verb::del,
                           Verb::delex, Verb::expire, Verb::persist, Verb::expire_time};

}  // namespace

void Worker::run(std::uint64_t operations) {
  while (recorded_.size() < operations) {
    one_operation();
    // Lets the clock, the growth and the snapshot have their turns on a machine with few cores.
    if (random_.chance(1, 4)) std::this_thread::yield();
  }
}

void Worker::one_operation() {
  const std::uint64_t choice = random_.below(100);
  if (choice < 40) return do_store();
  if (choice < 45) return do_batch();
  if (choice < 55) return do_section();
  if (choice < 73) return do_claim();
  if (choice < 91) return do_owner_call();
  if (choice < 94) return do_claim_batch();
  if (choice < 96) return do_claim_all();
  if (choice < 98) return do_wait();
  do_session();
}

Call Worker::begin() {
  Call call;
  call.thread = thread_;
  call.invoked = round_.moment();
  call.clock_before = round_.now();
  return call;
}

void Worker::end(Call& call) {
  call.clock_after = round_.now();
  call.returned = round_.moment();
}

void Worker::keep(std::size_t object, Call call, bool follows_previous) {
  recorded_.push_back({object, std::move(call), follows_previous});
}

std::size_t Worker::some_object(bool claims) {
  for (;;) {
    const std::size_t object = random_.below(round_.objects_.size());
    if (round_.objects_[object].is_claims == claims) return object;
  }
}

/// Every value is one eight-digit word repeated, unlike any other: mixed bytes of two values are
/// no value.
std::string Worker::some_value(bool is_wide) {
  if (!is_wide && random_.chance(1, 3)) return std::to_string(random_.below(10));
  char word[16];
  std::snprintf(word, sizeof word, "%02x%06x", thread_, ++values_);
  std::string value;
  std::uint64_t words = random_.between(1, 6);
  if (random_.chance(1, 10)) words = random_.between(30, 70);
  if (is_wide) words = 1'000;
  for (std::uint64_t i = 0; i < words; ++i) value += word;
  return value;
}

StoreCall Worker::some_store_call(const Object& object, std::uint32_t key) {
  StoreCall call;
  StoreOp& op = call.op;
  op.verb = random_.pick(verbs);
  if (object.is_wide) op.verb = random_.chance(1, 2) ? Verb::get : Verb::set;
  call.key = object.keys[key];
  switch (op.verb) {
    case Verb::set: {
      constexpr std::array conditions{Condition::always,    Condition::if_absent,
                                      Condition::if_absent, Condition::if_present,
                                      Condition::if_equal,  Condition::if_not_equal};
      op.condition = random_.pick(conditions);
      op.get = random_.chance(1, 3);
      call.value = some_value(object.is_wide);
      call.operand = std::to_string(random_.below(10));
      if (random_.chance(1, 2)) op.expiry = Expiry::in(Millis{random_.between(1, 6)});
      if (random_.chance(1, 6)) op.expiry = Expiry::keep();
      break;
    }
    case Verb::delex:
      op.condition = Condition::if_equal;
      call.operand = std::to_string(random_.below(10));
      break;
    case Verb::getex:
    case Verb::expire:
      op.expiry = Expiry::in(Millis{random_.between(1, 6)});
      break;
    case Verb::append:
      call.value = std::to_string(random_.below(10));
      break;
    case Verb::incr_by:
      op.amount = 1;
      break;
    default:
      break;
  }
  return call;
}

void Worker::do_store() {
  const std::size_t at = some_object(false);
  const Object& object = round_.objects_[at];
  const auto key = static_cast<std::uint32_t>(random_.below(object.keys.size()));
  StoreStep step;
  step.call = some_store_call(object, key);
  Call call = begin();
  round_.engine_->host().apply(step.call.view(), step.seen);
  end(call);
  call.steps.push_back({key, std::move(step)});
  keep(at, std::move(call));
}

void Worker::do_batch() {
  const std::size_t at = some_object(false);
  const Object& object = round_.objects_[at];
  std::vector<StoreStep> steps(random_.between(2, 5));
  std::vector<std::uint32_t> keys;
  std::vector<StoreOp> ops;
  for (StoreStep& step : steps) {
    keys.push_back(static_cast<std::uint32_t>(random_.below(object.keys.size())));
    step.call = some_store_call(object, keys.back());
  }
  for (const StoreStep& step : steps) ops.push_back(step.call.view());
  std::vector<StoreOutcome> outcomes(steps.size());
  const Call whole = begin();
  Call last;
  round_.engine_->host().apply(ops, outcomes);
  end(last);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // A moment of return of its own for each, drawn late: that only widens the span.
    Call call = whole;
    call.clock_after = last.clock_after;
    call.returned = round_.moment();
    steps[i].seen = std::move(outcomes[i]);
    call.steps.push_back({keys[i], std::move(steps[i])});
    keep(at, std::move(call), i != 0);
  }
}

void Worker::do_section() {
  const std::size_t at = some_object(false);
  const Object& object = round_.objects_[at];
  std::vector<Step> steps(random_.between(1, 4));
  std::vector<KeyRef> refs;
  for (Step& step : steps) {
    step.key = static_cast<std::uint32_t>(random_.below(object.keys.size()));
    step.what = StoreStep{some_store_call(object, step.key), {}};
  }
  for (const std::string& key : object.keys) refs.push_back({0, key});
  if (random_.chance(1, 10)) refs.clear();
  Call call = begin();
  {
    Result<Section> section = round_.engine_->section(refs);
    if (!section) return round_.complain("a section is refused");
    for (Step& step : steps) {
      auto& store = std::get<StoreStep>(step.what);
      section->apply(store.call.view(), store.seen);
    }
  }
  end(call);
  call.steps = std::move(steps);
  keep(at, std::move(call));
}

ClaimCall Worker::some_claim_call(const Object& object, std::uint32_t key) {
  ClaimCall call;
  call.key = object.keys[key];
  call.request.lease = Millis{random_.between(1, 5)};
  if (random_.chance(1, 4)) {
    call.request.claim_id.emplace();
    call.request.claim_id->fill(static_cast<std::uint8_t>(random_.between(1, 3)));
  }
  if (random_.chance(1, 8)) {
    call.request.fingerprint.algorithm = 1;
    call.request.fingerprint.digest[0] = static_cast<std::uint8_t>(random_.between(1, 2));
  }
  call.owner = "thread " + std::to_string(thread_);
  if (!sessions_.empty() && random_.chance(1, 2)) {
    const auto& [session, number] = sessions_[random_.below(sessions_.size())];
    call.request.session = session;
    call.session = number;
  } else {
    call.request.session = 0;
  }
  return call;
}

void Worker::do_claim() {
  const std::size_t at = some_object(true);
  Object& object = round_.objects_[at];
  const auto key = static_cast<std::uint32_t>(random_.below(object.keys.size()));
  ClaimStep step;
  step.call = some_claim_call(object, key);
  Call call = begin();
  step.seen = object.claims->claim(step.call.view());
  end(call);
  if (step.seen.answer == ClaimAnswer::granted) {
    object.epoch->store(step.seen.epoch, std::memory_order_relaxed);  // mo: relaxed [linear.epoch]
  }
  call.steps.push_back({key, std::move(step)});
  keep(at, std::move(call));
}

void Worker::do_claim_batch() {
  const std::size_t at = some_object(true);
  Object& object = round_.objects_[at];
  std::vector<ClaimStep> steps(random_.between(2, 3));
  std::vector<std::uint32_t> keys;
  for (ClaimStep& step : steps) {
    keys.push_back(static_cast<std::uint32_t>(random_.below(object.keys.size())));
    step.call = some_claim_call(object, keys.back());
  }
  std::vector<ClaimRequest> requests;
  for (const ClaimStep& step : steps) requests.push_back(step.call.view());
  std::vector<ClaimOutcome> outcomes(steps.size());
  const Call whole = begin();
  Call last;
  object.claims->claim(requests, outcomes);
  end(last);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Call call = whole;
    call.clock_after = last.clock_after;
    call.returned = round_.moment();
    steps[i].seen = std::move(outcomes[i]);
    call.steps.push_back({keys[i], std::move(steps[i])});
    keep(at, std::move(call), i != 0);
  }
}

void Worker::do_claim_all() {
  const std::size_t at = some_object(true);
  Object& object = round_.objects_[at];
  std::vector<ClaimStep> steps(object.keys.size());
  std::vector<ClaimRequest> requests;
  for (std::uint32_t i = 0; i < steps.size(); ++i) steps[i].call = some_claim_call(object, i);
  for (const ClaimStep& step : steps) requests.push_back(step.call.view());
  std::vector<ClaimOutcome> outcomes(steps.size());
  Call call = begin();
  const bool all = object.claims->claim_all(requests, outcomes);
  end(call);
  if (!all) return;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    steps[i].seen = std::move(outcomes[i]);
    call.steps.push_back({i, std::move(steps[i])});
  }
  keep(at, std::move(call));
}

void Worker::do_owner_call() {
  constexpr std::array owner_verbs{OwnerVerb::complete, OwnerVerb::complete, OwnerVerb::fail,
                                   OwnerVerb::fail,     OwnerVerb::renew,    OwnerVerb::release,
                                   OwnerVerb::release};
  const std::size_t at = some_object(true);
  Object& object = round_.objects_[at];
  const auto key = static_cast<std::uint32_t>(random_.below(object.keys.size()));
  OwnerStep step;
  step.call.verb = random_.pick(owner_verbs);
  step.call.key = object.keys[key];
  step.call.call.epoch = object.epoch->load(std::memory_order_relaxed);  // mo: [linear.epoch]
  step.call.payload = some_value(false);
  step.call.call.lease = Millis{random_.between(1, 5)};
  Claims& claims = *object.claims;
  Call call = begin();
  switch (step.call.verb) {
    case OwnerVerb::complete:
      step.seen = claims.complete(step.call.view());
      break;
    case OwnerVerb::fail:
      step.seen = claims.fail(step.call.view());
      break;
    case OwnerVerb::renew:
      step.seen = claims.renew(step.call.view());
      break;
    case OwnerVerb::release:
      step.seen = claims.release(step.call.view());
      break;
  }
  end(call);
  call.steps.push_back({key, std::move(step)});
  keep(at, std::move(call));
}

void Worker::do_wait() {
  // mo: relaxed [linear.count]: a bound that may be passed by a few.
  if (round_.waits_.fetch_add(1, std::memory_order_relaxed) >= LinearRound::waits_at_once_max) {
    round_.waits_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed [linear.count]
    return;
  }
  const std::size_t at = some_object(true);
  Object& object = round_.objects_[at];
  const auto key = static_cast<std::uint32_t>(random_.below(object.keys.size()));
  const ClaimCall claim = some_claim_call(object, key);
  const Timestamp deadline = round_.clock_.now() + Millis{random_.between(1, 6)};
  const Call begun = begin();
  LinearRound& round = round_;
  object.claims->claim_or_wait(
      claim.view(), deadline, [&round, at, key, claim, begun, deadline](ClaimOutcome&& outcome) {
        Call call = begun;
        call.clock_after = round.now();
        call.returned = round.moment();
        round.waits_.fetch_sub(1, std::memory_order_relaxed);  // mo: relaxed [linear.count]
        if (outcome.answer == ClaimAnswer::in_flight) {
          if (call.clock_after < to_ms(deadline))
            round.complain("a wait ended before its deadline");
          return;
        }
        call.steps.push_back({key, ClaimStep{claim, std::move(outcome)}});
        const std::lock_guard lock{round.mutex_};
        round.waited_.push_back({at, std::move(call), false});
      });
}

void Worker::do_session() {
  if (sessions_.size() < 2 || random_.chance(1, 3)) {
    // mo: relaxed [linear.count]: only uniqueness is asked of it.
    const std::uint32_t number = round_.sessions_.fetch_add(1, std::memory_order_relaxed);
    if (number > LinearRound::sessions_max) return;
    sessions_.push_back({round_.engine_->open_session(), number});
    return;
  }
  const auto [session, number] = sessions_.front();
  sessions_.erase(sessions_.begin());
  const Call begun = begin();
  round_.engine_->close_session(session);
  for (std::size_t at = 0; at < round_.objects_.size(); ++at) {
    if (!round_.objects_[at].is_claims) continue;
    Call call = begun;
    end(call);
    call.steps.push_back({0, CloseSession{number}});
    keep(at, std::move(call));
  }
}

}  // namespace semel::proofs
