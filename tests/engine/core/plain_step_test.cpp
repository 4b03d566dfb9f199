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
  Twins(std::uint64_t seed, std::size_t decision_log_bytes) : random_{seed} {
    Options options;
    options.decision_log_bytes = decision_log_bytes;
    options.memory_bytes = std::size_t{32} << 20;
    options.clock = &clock_;
    options.hash_seed = 7;
    options.background = std::nullopt;
    Options with_journal = options;
    with_journal.journal = &journal_;
    std::vector<Policy> policies(space_count);
    for (Policy& policy : policies) {
      policy.lease = 20ms;
      policy.result_ttl = 60ms;
      policy.attempts_ttl = 40ms;
    }
    policies[1].unique_ttl = 90ms;
    policies[2].strict = true;
    policies[3].on_lease_end = Policy::OnLeaseEnd::in_doubt;
    policies[4].issued = true;
    policies[5].fair = true;
    policies[6].attempts_max = 2;
    policies[7].db = 3;
    for (const Options& each : {options, with_journal}) {
      engines_.push_back(open_engine(each));
      auto& spaces = claims_.emplace_back();
      for (std::size_t i = 0; i < space_count; ++i) {
        spaces.push_back(*engines_.back()->claims("ns" + std::to_string(i), policies[i]));
      }
    }
  }

  void step() {
    const std::string key = std::to_string(below(12));
    space_ = below(2) == 0 ? 0 : below(space_count);
    switch (below(14)) {
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
      case 11:
        return both([&](Store, Claims& ns) {
          const auto issued = ns.issue(key);
          return issued.ok() ? std::to_string(*issued) : std::string{"refused"};
        });
      default:
        return complete(key);
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
  static constexpr std::size_t space_count = 8;

  static std::string text(const OwnerOutcome& outcome) {
    return std::to_string(static_cast<int>(outcome.answer)) + (outcome.late ? " late " : " ") +
           std::to_string(static_cast<int>(outcome.error)) + " " + outcome.result + " " +
           std::to_string(outcome.version);
  }
  /// All that the decision log has of a key.
  static std::string told(Claims& ns, const std::string& key) {
    const auto decisions = ns.explain(key);
    if (!decisions.ok()) return "no log";
    std::string all;
    for (const ClaimDecision& each : *decisions) {
      all.append(each.outcome).append(" ").append(each.owner).append(" ");
      all.append(each.client).append(" ").append(each.seen_owner).append(" ");
      all.append(each.why).append("; ");
      for (const auto number :
           {static_cast<std::uint64_t>(each.call), each.epoch, std::uint64_t{each.attempt},
            static_cast<std::uint64_t>(each.seen), each.seen_epoch, each.times,
            static_cast<std::uint64_t>(each.first_unix_ms),
            static_cast<std::uint64_t>(each.last_unix_ms)}) {
        all.append(std::to_string(number)).append(" ");
      }
    }
    return all;
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
    ClaimRequest request{.key = key};
    switch (below(12)) {
      case 0:
        request.owner = "worker";
        break;
      case 1:
        request.fingerprint = {.algorithm = 1, .digest = {static_cast<std::uint8_t>(below(2))}};
        break;
      case 2:
        request.claim_id = ClaimId{static_cast<std::uint8_t>(below(2))};
        break;
      case 3:
        request.lease = Millis{below(60)};  // of 0 ms: refused
        break;
      case 4:
        request.session = 0;
        break;
      case 5:
        request.first_sent_unix_ms = 1;
        break;
      default:
        break;
    }
    both([&](Store, Claims& ns) {
      const ClaimOutcome made = ns.claim(request);
      if (made.answer == ClaimAnswer::granted) epoch_ = made.epoch;
      return std::to_string(static_cast<int>(made.answer)) + made.result + " " + made.owner + " " +
             std::to_string(static_cast<int>(made.error)) + " " + std::to_string(made.attempt) +
             " " + std::to_string(made.remaining.count()) + " " + std::to_string(made.epoch) + " " +
             std::to_string(made.version) + " " + told(ns, key);
    });
  }
  void complete(const std::string& key) {
    constexpr ResultKeeping keepings[]{ResultKeeping::required, ResultKeeping::required,
                                       ResultKeeping::optional, ResultKeeping::none};
    const OwnerCall call{.key = key,
                         .epoch = below(8) == 0 ? epoch_ - 1 : epoch_,
                         .payload = below(4) == 0 ? Bytes{} : Bytes{value_},
                         .keeping = keepings[below(4)]};
    both([&](Store, Claims& ns) { return text(ns.complete(call)) + " " + told(ns, key); });
  }
  template <class Call>
  void both(Call&& call) {
    const auto alone = call(engines_[0]->store(0), claims_[0][space_]);
    const auto twin = call(engines_[1]->store(0), claims_[1][space_]);
    REQUIRE(alone == twin);
  }

  ManualClock clock_;
  MemoryJournal journal_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::vector<Claims>> claims_;  // of each engine
  std::size_t space_ = 0;                    // that a step is about
  std::string value_ = "v";
  Epoch epoch_ = 1;  // of the last grant
};

}  // namespace

TEST_CASE("plain step: an engine that stands alone does what one with a journal does",
          "[engine][core][model]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  const std::size_t decision_log_bytes = GENERATE(0U, 262'144U);
  Twins twins{seed, decision_log_bytes};
  for (int round = 0; round < 1'500; ++round) {
    for (std::uint64_t steps = twins.below(12); steps != 0; --steps) twins.step();
    twins.pass(Millis{twins.below(10)});
    twins.check();
  }
  twins.pass(1'200ms);  // delete markers too
  twins.check();
}

}  // namespace semel::tests
