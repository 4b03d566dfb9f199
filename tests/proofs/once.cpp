// The once proof: random programs over the pattern library, counted against what the documented
// contract allows. A program is one policy and up to 12 calls on three keys: once(),
// consume_once(), batches with duplicates, steps, tokens, debounce; functions that fail, throw, do
// not know, outlast their lease with and without a watchdog, or meet another caller on the way;
// time that passes, doubts that are resolved, and a process that ends at a random step.
//
// proof_once [--long] [--seed N]
// Program i has seed N + i. The last line is the figure, the exit code the verdict.
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "semel/consume.hpp"
#include "semel/debounce.hpp"
#include "semel/token_service.hpp"
#include "tests/patterns/world.hpp"
#include "tests/proofs/arguments.hpp"
#include "tests/proofs/once_oracle.hpp"
#include "tests/proofs/random.hpp"

namespace {

using namespace semel;
using namespace semel::proofs;
using semel::tests::World;

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

class Program {
 public:
  explicit Program(std::uint64_t seed)
      : random_(seed),
        policy_(contracts[random_.below(contracts.size())]),
        oracle_(policy_),
        world_(random_.chance(1, 2) ? random_.below(60) : World::never) {}

  /// Empty: nothing was outside of the contract.
  [[nodiscard]] std::string run() {
    const std::uint64_t calls = random_.between(3, 12);
    for (std::uint64_t i = 0; i < calls && oracle_.complaint().empty(); ++i) {
      depth_ = 0;
      call();
      if (world_.alive()) {
        oracle_.settle();
        continue;
      }
      oracle_.crash();
      world_.restart(random_.chance(1, 3) ? random_.below(60) : World::never);
    }
    return oracle_.complaint().empty() ? complaint_ : oracle_.complaint();
  }
  [[nodiscard]] std::uint64_t runs() const noexcept { return oracle_.runs(); }

 private:
  [[nodiscard]] std::string key() {
    return std::string(1, static_cast<char>('a' + random_.below(3)));
  }
  [[nodiscard]] Timestamp now() { return world_.clock().now(); }

  void call() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return call_once(key());
      case 2:
      case 3:
        return consume(key());
      case 4:
      case 5:
      case 6:
        return batch();
      case 7:
        return world_.clock().advance(Millis{static_cast<std::int64_t>(random_.below(90'000))});
      case 8:
        return resolve();
      default:
        return random_.chance(1, 2) ? token() : debounce();
    }
  }

  /// The work of a key: an effect, then perhaps time or another caller, then an end.
  Result<int> work(const std::string& key, Work& given, Watchdog* watchdog, Millis held,
                   bool may_doubt = true) {
    world_.effect(key);
    std::uint64_t run = 0;
    if (world_.alive()) run = oracle_.begin(key, now(), now() + held);
    const auto memo = given.steps().run("step", [&] { return static_cast<int>(++step_runs_); });
    static_cast<void>(memo);  // refused where the claim is lost; the work goes on all the same
    if (random_.chance(1, 4)) be_slow(key, run, watchdog);
    if (depth_ < 2 && random_.chance(1, 4)) {
      ++depth_;
      random_.chance(1, 2) ? consume(random_.chance(1, 2) ? key : this->key()) : call_once(key);
    }
    const Ending how = std::array{Ending::ok, Ending::ok, Ending::error, Ending::thrown,
                                  Ending::unsure}[random_.below(may_doubt ? 5 : 3)];
    if (world_.alive()) oracle_.end(key, run, how);
    if (how == Ending::thrown) throw std::runtime_error{"gone"};
    if (how == Ending::error) return Error{ErrorCode::timed_out, "no"};
    if (how == Ending::unsure) return Error{ErrorCode::outcome_unknown, "perhaps"};
    return 1;
  }
  void be_slow(const std::string& key, std::uint64_t run, Watchdog* watchdog) {
    for (int i = 0; i < 8; ++i) {
      world_.clock().advance(Millis{10'000});
      if (watchdog == nullptr) continue;
      static_cast<void>(watchdog->poll());
      // Renewed when a third of it had passed: two thirds are left at least, if it was not lost.
      oracle_.renewed(key, run, now() + lease / 2);
    }
  }

  void call_once(const std::string& key) {
    Claims claims = world_.claims("n", policy_);
    Watchdog watchdog{world_.engine()};
    Watchdog* const keeps = random_.chance(1, 2) ? &watchdog : nullptr;
    try {
      static_cast<void>(once(claims, {.key = key, .watchdog = keeps},
                             [&](Work& given) { return work(key, given, keeps, lease, false); }));
    } catch (const std::runtime_error&) {
    }
  }
  void consume(const std::string& key) {
    Claims claims = world_.claims("n", policy_);
    Watchdog watchdog{world_.engine()};
    Watchdog* const keeps = random_.chance(1, 2) ? &watchdog : nullptr;
    try {
      static_cast<void>(consume_once(
          claims, {.id = key}, [&](Work& given) { return status(work(key, given, keeps, lease)); },
          {.watchdog = keeps}));
    } catch (const std::runtime_error&) {
    }
  }
  void batch() {
    Claims claims = world_.claims("n", policy_);
    Watchdog watchdog{world_.engine()};
    Watchdog* const keeps = random_.chance(1, 2) ? &watchdog : nullptr;
    std::vector<std::string> ids;
    for (std::uint64_t i = random_.between(1, 5); i > 0; --i) ids.push_back(key());
    std::vector<Message> messages;
    for (const std::string& id : ids) messages.push_back({.id = id});
    const auto consumed =
        consume_batch(claims, messages,
                      [&](const Message& one, Work& given) {
                        return status(work(std::string{one.id}, given, keeps, lease / 3 * 2));
                      },
                      {.watchdog = keeps});
    if (consumed.size() != ids.size()) complaint_ = "a batch without an answer for each";
  }
  static Status status(const Result<int>& result) {
    return result.ok() ? Status{Done{}} : Status{result.error()};
  }

  void resolve() {
    const std::string which = key();
    const bool done = random_.chance(1, 2);
    const auto found =
        world_.claims("n", policy_).resolve(which, done ? Resolution::done : Resolution::released);
    if (world_.alive() && found.ok() && *found) oracle_.resolved(which, done);
  }

  /// A token: used once at most, and usable for all of its time whatever fails.
  void token() {
    TokenService tokens = TokenService::open(world_.claims("t", policies::token)).value();
    const Millis ttl{static_cast<std::int64_t>(random_.between(10'000, 1'000'000))};
    const Timestamp end = now() + ttl;
    const auto issued = tokens.issue(ttl);
    if (!issued.ok()) return;
    int uses = 0;
    for (unsigned i = 1; i <= 3 && now() < end; ++i) {
      const bool fails = random_.chance(1, 2);
      const auto used = tokens.redeem(*issued, [&]() -> Result<int> {
        if (fails) return Error{ErrorCode::timed_out, "no"};
        return ++uses;
      });
      if (!world_.alive()) return;
      if (uses == 0 && used.answer == OnceAnswer::unknown) complaint_ = "a token ended too early";
      world_.clock().advance(ttl / 5);
    }
    if (uses > 1) complaint_ = "a token was used twice";
  }

  /// Whoever is told that it will run again sees a run that begins after that.
  void debounce() {
    Debounce rebuilds{world_.engine(),
                      world_.claims("d", policies::debounce),
                      {.interval = Millis{1'000}, .run_once_more_after = true}};
    int begun = 0;
    int promised_at = 0;
    try {
      static_cast<void>(rebuilds.run("k", [&] {
        ++begun;
        if (begun < 4 && random_.chance(1, 2)) {
          if (rebuilds.run("k", [&] { ++begun; }) == DebounceAnswer::will_run_again) {
            promised_at = begun;
          }
        }
        if (random_.chance(1, 4)) world_.clock().advance(Millis{1'500});
        if (random_.chance(1, 3)) throw std::runtime_error{"gone"};
      }));
    } catch (const std::runtime_error&) {
    }
    if (world_.alive() && promised_at != 0 && begun <= promised_at) {
      complaint_ = "a run that was promised did not come";
    }
  }

  Random random_;
  Policy policy_;
  OnceOracle oracle_;
  World world_;
  std::string complaint_;
  std::uint64_t step_runs_ = 0;
  int depth_ = 0;
};

}  // namespace

int main(int argument_count, char** argument_texts) {
  const auto arguments = parse_arguments(argument_count, argument_texts);
  if (!arguments) return 2;
  const std::uint64_t first = arguments->seed.value_or(fresh_seed());
  const std::uint64_t programs = arguments->is_long ? 100'000 : 3'000;
  std::printf("once: first seed %llu\n", static_cast<unsigned long long>(first));
  std::uint64_t runs = 0;
  std::uint64_t outside = 0;
  for (std::uint64_t i = 0; i < programs && outside < 5; ++i) {
    Program program{first + i};
    const std::string complaint = program.run();
    runs += program.runs();
    if (complaint.empty()) continue;
    ++outside;
    std::printf("once: seed %llu: %s\n", static_cast<unsigned long long>(first + i),
                complaint.c_str());
  }
  std::printf("once: %llu programs, %llu runs, %llu outside of the contract\n",
              static_cast<unsigned long long>(programs), static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(outside));
  return outside == 0 ? 0 : 1;
}
