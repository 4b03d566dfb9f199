#include "tests/proofs/linearizability/linear_run.hpp"
#include "semel/engine_host.hpp"

#include <array>
#include <latch>
#include <map>
#include <thread>

namespace semel::proofs {
namespace {

Object store_object(std::vector<std::string> keys) {
  Object object;
  object.keys = std::move(keys);
  return object;
}

Object claims_object(std::vector<std::string> keys, const Policy& policy) {
  Object object;
  object.keys = std::move(keys);
  object.is_claims = true;
  object.policy = policy;
  return object;
}

Policy quick_policy() {
  Policy policy;
  policy.lease = Millis{4};
  policy.result_ttl = Millis{4};
  policy.unique_ttl = Millis{8};
  policy.failure_ttl = Millis{5};
  policy.attempts_ttl = Millis{6};
  return policy;
}

}  // namespace

LinearRound::LinearRound(std::uint64_t seed) : seed_(seed), random_(seed) {}

LinearRound::~LinearRound() = default;

bool LinearRound::open() {
  Options options;
  options.clock = &clock_;
  options.memory_bytes = std::size_t{64} << 20;
  options.shard_count = 1U << random_.below(3);
  options.hash_seed = seed_;
  auto engine = Engine::open(options);
  if (!engine) return false;
  engine_ = *std::move(engine);

  Policy in_doubt = quick_policy();
  in_doubt.on_lease_end = Policy::OnLeaseEnd::in_doubt;
  Policy attempts = quick_policy();
  attempts.attempts_max = 3;
  attempts.on_failure = Policy::OnFailure::keep;
  attempts.strict = true;
  objects_.push_back(store_object({"one"}));
  objects_.push_back(store_object({"two"}));
  objects_.push_back(store_object({"left", "right"}));
  objects_.push_back(store_object({"wide"}));
  objects_.back().is_wide = true;
  objects_.push_back(claims_object({"task"}, quick_policy()));
  objects_.push_back(claims_object({"doubtful"}, in_doubt));
  objects_.push_back(claims_object({"tried"}, attempts));
  objects_.push_back(claims_object({"first", "second"}, quick_policy()));
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    Object& object = objects_[i];
    History& history = histories_.emplace_back();
    history.key_count = static_cast<std::uint32_t>(object.keys.size());
    history.policy = object.policy;
    if (!object.is_claims) continue;
    auto claims = engine_->claims("n" + std::to_string(i), object.policy);
    if (!claims) return false;
    object.claims = *claims;
  }
  clock_values_.push_back(now());
  return true;
}

RoundResult LinearRound::run() {
  RoundResult result;
  if (!open()) {
    result.right = false;
    result.report = "the engine does not open";
    return result;
  }
  const auto thread_count = static_cast<std::uint32_t>(random_.between(2, 8));
  const std::uint64_t operations = 24'000 / thread_count;
  for (std::uint32_t i = 0; i < thread_count; ++i) {
    workers_.push_back(std::make_unique<Worker>(*this, i, random_.bits()));
  }
  working_.store(thread_count, std::memory_order_release);  // mo: release [linear.working]
  std::latch start{thread_count + 3};
  std::vector<std::thread> threads;
  for (const auto& worker : workers_) {
    threads.emplace_back([this, &start, &worker, operations] {
      start.arrive_and_wait();
      worker->run(operations);
      working_.fetch_sub(1, std::memory_order_release);  // mo: release [linear.working]
    });
  }
  const auto beside = [&](void (LinearRound::*work)()) {
    threads.emplace_back([this, &start, work] {
      start.arrive_and_wait();
      (this->*work)();
    });
  };
  beside(&LinearRound::tick_while_working);
  beside(&LinearRound::grow_while_working);
  beside(&LinearRound::snapshot_while_working);
  for (std::thread& thread : threads) thread.join();
  if (!end_waits()) complain("a wait never ended");
  check_all(result);
  return result;
}

/// Moves the clock and sweeps. The only thread that moves the clock.
void LinearRound::tick_while_working() {
  Random random{seed_ ^ 0x71c};
  std::uint64_t next = 0;
  while (is_working()) {
    // mo: relaxed [linear.moment]: paces the clock only.
    if (moments_.load(std::memory_order_relaxed) < next) {
      std::this_thread::yield();
      continue;
    }
    next = moments_.load(std::memory_order_relaxed) + calls_per_tick;  // mo: [linear.moment]
    clock_.advance(Millis{random.chance(1, 8) ? random.between(2, 5) : 1});
    clock_values_.push_back(now());
    if (random.chance(2, 3)) static_cast<void>(engine_->advance(random.between(1, 2'000)));
    // Records move under their readers and writers, as far as no snapshot runs.
    if (random.chance(1, 2)) static_cast<void>(engine_->host().compact());
  }
}

/// Other keys come and go, so that segments split and are rebuilt under the recorded ones.
void LinearRound::grow_while_working() {
  constexpr std::uint64_t others_max = 60'000;  // far below the memory limit
  Random random{seed_ ^ 0x96};
  StoreOutcome outcome;
  for (std::uint64_t i = 0; is_working(); ++i) {
    const std::string key = "other " + std::to_string(i % others_max);
    const bool ends = random.chance(1, 3);
    engine_->host().apply(
        {.verb = Verb::set,
         .expiry = ends ? Expiry::in(Millis{random.between(1, 30)}) : Expiry::clear(),
         .key = key,
         .value = "filler"},
        outcome);
    if (random.chance(1, 3)) {
      const std::string old = "other " + std::to_string(random.below(others_max));
      engine_->host().apply({.verb = Verb::del, .key = old}, outcome);
    }
  }
}

void LinearRound::snapshot_while_working() {
  std::vector<Recorded> recorded;
  while (is_working()) {
    read_snapshot(recorded);
    // A snapshot stops everybody for a moment: let them work in between.
    const std::uint64_t next = moment() + 400;
    // mo: relaxed [linear.moment]: paces the snapshots only.
    while (is_working() && moments_.load(std::memory_order_relaxed) < next) {
      std::this_thread::yield();
    }
  }
  const std::lock_guard lock{mutex_};
  for (Recorded& one : recorded) waited_.push_back(std::move(one));
}

void LinearRound::read_snapshot(std::vector<Recorded>& recorded) {
  std::map<std::string, Shown> shown;
  Call begun;
  begun.thread = 99;
  begun.invoked = moment();
  begun.clock_before = now();
  bool twice_differs = false;
  const Status status = engine_->host().snapshot([&](const Mutation& mutation) {
    if (mutation.type != Mutation::Type::put || mutation.key.substr(0, 6) == "other ") return;
    const Shown one{true, mutation.kind, to_ms(mutation.due), mutation.version,
                    std::string{mutation.value}};
    const auto [at, fresh] = shown.emplace(std::string{mutation.key}, one);
    if (!fresh && at->second.version != one.version) twice_differs = true;
  });
  const Ms clock_after = now();
  if (!status) return complain("a snapshot is refused");
  if (twice_differs) complain("a snapshot shows two versions of one key");
  for (std::size_t at = 0; at < objects_.size(); ++at) {
    Call call = begun;
    call.clock_after = clock_after;
    for (std::uint32_t key = 0; key < objects_[at].keys.size(); ++key) {
      const std::string prefix = objects_[at].is_claims ? "n" + std::to_string(at) + ":" : "";
      const auto found = shown.find(prefix + objects_[at].keys[key]);
      call.steps.push_back({key, found == shown.end() ? Shown{} : found->second});
    }
    call.returned = moment();
    recorded.push_back({at, std::move(call), false});
  }
}

/// After the threads: the clock passes every deadline.
bool LinearRound::end_waits() {
  constexpr int rounds_max = 1'000;
  // mo: relaxed [linear.count]: the threads have been joined.
  for (int i = 0; i < rounds_max && waits_.load(std::memory_order_relaxed) != 0; ++i) {
    clock_.advance(Millis{2});
    clock_values_.push_back(now());
    static_cast<void>(engine_->advance());
  }
  return waits_.load(std::memory_order_relaxed) == 0;  // mo: relaxed [linear.count]
}

void LinearRound::complain(const std::string& what) {
  const std::lock_guard lock{mutex_};
  complaint_ = what;
}

void LinearRound::add(std::vector<Recorded>& recorded, std::uint32_t thread) {
  std::vector<std::size_t> last(objects_.size(), no_call);
  for (Recorded& one : recorded) {
    std::vector<Call>& calls = histories_[one.object].calls;
    if (one.follows_previous) one.call.after = last[one.object];
    last[one.object] = calls.size();
    if (one.call.thread == 0) one.call.thread = thread;
    calls.push_back(std::move(one.call));
  }
}

void LinearRound::check_all(RoundResult& result) {
  for (std::uint32_t i = 0; i < workers_.size(); ++i) add(workers_[i]->recorded(), i);
  add(waited_, 0);
  if (!complaint_.empty()) {
    result.right = false;
    result.report = complaint_;
  }
  for (std::size_t i = 0; i < histories_.size() && result.right; ++i) {
    History& history = histories_[i];
    history.clock_values = clock_values_;
    history.unix_zero = clock_.unix_ms() - now();
    const Verdict verdict = check(history);
    result.operations += history.calls.size();
    ++result.histories;
    result.configurations_most = std::max(result.configurations_most, verdict.configurations_most);
    if (verdict.linearizable) continue;
    result.right = false;
    result.gave_up = verdict.gave_up;
    result.report =
        "object " + std::to_string(i) + " (" + objects_[i].keys[0] + "): " + verdict.report;
  }
  if (!result.right) return;
  const std::vector<std::string> broken = engine_->host().check_invariants();
  if (broken.empty()) return;
  result.right = false;
  result.report = "invariant: " + broken.front();
}

}  // namespace semel::proofs
