// Patterns over a storage: what was done once stays done when the process ends and the next begins.
#include <memory>
#include <optional>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/patterns/consume.hpp"
#include "semel/patterns/guards.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/token_service.hpp"
#include "semel/storage.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

namespace {

/// An engine on a storage, as one process has it.
struct Process {
  Process(const Directory& directory, ManualClock& clock) {
    storage = Storage::open({.directory = directory.path()}, clock).value();
    engine = Engine::open({.clock = &clock,
                           .journal = storage.get(),
                           .durability = Durability::synced,
                           .first_version = storage->first_version()})
                 .value();
    REQUIRE(storage->recover(*engine));
  }
  Claims claims(Bytes name, const Policy& policy) { return engine->claims(name, policy).value(); }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;
};

}  // namespace

TEST_CASE("patterns: results are replayed by the next process, and failures are kept",
          "[storage][patterns]") {
  const Directory directory;
  ManualClock clock;
  {
    Process first{directory, clock};
    Claims calls = first.claims("calls", policies::call);
    CHECK(once(calls, "a", [] { return std::string{"receipt"}; }).answer == OnceAnswer::ran);
    Claims mq = first.claims("mq", policies::message);
    CHECK(consume_once(mq, {.id = "m"}, [] {}).verdict == Verdict::ack);
    CHECK(consume_once(mq, {.id = "bad"}, [] { return Rejected{"no such account"}; }).verdict ==
          Verdict::dead_letter);
  }
  Process second{directory, clock};
  Claims calls = second.claims("calls", policies::call);
  const auto again = once(calls, "a", [] { return std::string{"another"}; });
  CHECK(again.answer == OnceAnswer::replayed);
  CHECK(again.value == "receipt");
  Claims mq = second.claims("mq", policies::message);
  CHECK(consume_once(mq, {.id = "m"}, [] {}).verdict == Verdict::ack_duplicate);
  const Consumed bad = consume_once(mq, {.id = "bad"}, [] {});
  CHECK(bad.verdict == Verdict::dead_letter);
  CHECK(bad.failure == "no such account");
}

TEST_CASE("patterns: tokens, steps, locks and versions outlive their process",
          "[storage][patterns]") {
  const Directory directory;
  ManualClock clock;
  std::string unused;
  std::string given_back;
  Epoch token = 0;
  Version version = 0;
  {
    Process first{directory, clock};
    auto tokens = TokenService::open(first.claims("tokens", policies::token)).value();
    unused = tokens.issue().value();
    given_back = tokens.issue().value();
    const Epoch epoch = tokens.reserve(given_back).epoch;
    CHECK(tokens.give_back(given_back, epoch).answer == OwnerAnswer::ok);
    Claims orders = first.claims("orders", policies::call);
    const ClaimOutcome claim = orders.claim({.key = "o"});
    Steps steps{orders, "o", claim.epoch};
    CHECK(steps.run("charge", [] { return 42; }).value() == 42);
    Lock lock{first.claims("locks", policies::lock), "l"};
    REQUIRE(lock.try_lock());
    token = lock.fencing_token();
    version = first.engine->store().compare_and_set("v", 0, "1").value().current->version;
    CHECK(SeenBefore{first.engine->store(), "rows", Millis{60'000}}.is_first({"r"}).value());
  }
  Process second{directory, clock};
  auto tokens = TokenService::open(second.claims("tokens", policies::token)).value();
  CHECK(tokens.reserve("never-issued").answer == TokenAnswer::unknown);
  CHECK(tokens.reserve(unused).attempt == 1);
  CHECK(tokens.reserve(given_back).attempt == 2);
  Claims orders = second.claims("orders", policies::call);
  const auto resumed = once(orders, "o", [&](Work& work) {
    CHECK(work.takeover());
    return work.steps().run("charge", [] { return 7; });
  });
  CHECK(resumed.value == 42);
  Lock lock{second.claims("locks", policies::lock), "l"};
  REQUIRE(lock.try_lock());
  CHECK(lock.fencing_token() > token);
  Store store = second.engine->store();
  CHECK(store.get_versioned("v").value()->version == version);
  CHECK_FALSE(SeenBefore{store, "rows", Millis{60'000}}.is_first({"r"}).value());
  CHECK(store.compare_and_set("v", version, "2").value().stored);
}

}  // namespace semel::tests
