// The short way of strings and claims in an engine that stands alone, beside the way of all others.
// Words: alone = without journal, cold store and group; twin = the same engine with a journal.
#include <random>
#include <string>
#include <vector>

#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// An engine that stands alone and its twin, on one clock: what is done to one is done to both.
class Twins {
 public:
  explicit Twins(std::uint64_t seed) : random_{seed} {
    Options options;
    options.memory_bytes = std::size_t{32} << 20;
    options.clock = &clock_;
    options.hash_seed = 7;
    options.background = std::nullopt;
    Options with_journal = options;
    with_journal.journal = &journal_;
    Policy policy;
    policy.lease = 20ms;
    policy.result_ttl = 60ms;
    policy.attempts_ttl = 40ms;
    for (const Options& each : {options, with_journal}) {
      engines_.push_back(open_engine(each));
      claims_.push_back(*engines_.back()->claims("ns", policy));
    }
  }

  void step() {
    const std::string key = std::to_string(below(12));
    switch (below(12)) {
      case 0:
        return both([&](Store store, Claims&) { return std::to_string(*store.del(key)); });
      case 1:
        return both([&](Store store, Claims&) { return std::to_string(*store.persist(key)); });
      case 2: {
        const Expiry end = Expiry::in(Millis{1 + below(80)});
        return both([&](Store store, Claims&) { return std::to_string(*store.expire(key, end)); });
      }
      case 3:
        return both([&](Store store, Claims&) { return *store.getdel(key); });
      case 4:
      case 5:
      case 6:
        return set(key);
      case 7:
      case 8:
        return claim(key);
      case 9:
        return both(
            [&](Store, Claims& ns) { return text(ns.renew({.key = key, .epoch = epoch_})); });
      case 10:
        return both(
            [&](Store, Claims& ns) { return text(ns.release({.key = key, .epoch = epoch_})); });
      default:
        return both([&](Store, Claims& ns) {
          return text(ns.complete({.key = key, .epoch = epoch_, .payload = value_}));
        });
    }
  }
  void pass(Millis time) {
    clock_.advance(time);
    for (const auto& engine : engines_) {
      while (engine->advance() == 0) {
      }
    }
  }
  void check() {
    const Stats alone = engines_[0]->stats(), twin = engines_[1]->stats();
    REQUIRE(contents_of(*engines_[0]) == contents_of(*engines_[1]));
    REQUIRE(alone.records == twin.records);
    REQUIRE(alone.records_with_ttl == twin.records_with_ttl);
    REQUIRE(alone.bytes_records == twin.bytes_records);
    REQUIRE(alone.changes == twin.changes);
    REQUIRE(alone.expired == twin.expired);
    REQUIRE(alone.wheel_items == twin.wheel_items);
    for (const auto& engine : engines_) REQUIRE(broken_rules(*engine) == "");
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

 private:
  static std::string text(const OwnerOutcome& outcome) {
    return std::to_string(static_cast<int>(outcome.answer)) + (outcome.late ? " late " : " ") +
           std::to_string(outcome.version);
  }
  void set(const std::string& key) {
    constexpr Condition conditions[]{Condition::always, Condition::if_absent,
                                     Condition::if_present};
    const SetOptions options{
        .condition = conditions[below(3)],
        .expiry = below(3) == 0 ? Expiry::clear() : Expiry::in(Millis{1 + below(80)}),
        .get = below(2) == 0};
    value_.assign(below(8) == 0 ? below(400) : below(20), 'v');  // short and long forms
    both([&](Store store, Claims&) {
      const SetResult done = store.set(key, value_, options).value();
      return std::to_string(done.stored) + done.previous.value_or("<none>");
    });
  }
  void claim(const std::string& key) {
    const bool has_owner = below(4) == 0;
    both([&](Store, Claims& ns) {
      const ClaimOutcome made = ns.claim({.key = key, .owner = has_owner ? "worker" : ""});
      if (made.answer == ClaimAnswer::granted) epoch_ = made.epoch;
      return std::to_string(static_cast<int>(made.answer)) + made.result + " " +
             std::to_string(made.epoch) + " " + std::to_string(made.version);
    });
  }
  template <class Call>
  void both(Call&& call) {
    const auto alone = call(engines_[0]->store(0), claims_[0]);
    const auto twin = call(engines_[1]->store(0), claims_[1]);
    REQUIRE(alone == twin);
  }

  ManualClock clock_;
  MemoryJournal journal_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<Claims> claims_;
  std::string value_ = "v";
  Epoch epoch_ = 1;  // of the last grant
};

}  // namespace

TEST_CASE("plain step: an engine that stands alone does what one with a journal does",
          "[engine][core][model]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  Twins twins{seed};
  for (int round = 0; round < 1'500; ++round) {
    for (std::uint64_t steps = twins.below(12); steps != 0; --steps) twins.step();
    twins.pass(Millis{twins.below(10)});
    twins.check();
  }
  twins.pass(1'200ms);  // delete markers too
  twins.check();
}

}  // namespace semel::tests
