// Joined commits beside each other feature that changes who decides a claim, where its change goes,
// or on which thread: the two compose, or the call is refused and nothing was changed.
// Words: refused = an error of the call; parted = done without its effect, or the effect alone.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/steps.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/joint/join_process.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Calls what it is given, once, when its thread asks for the time: inside of a call of the engine.
class CallingClock final : public Clock {
 public:
  [[nodiscard]] Timestamp now() const noexcept override {
    if (std::this_thread::get_id() == thread_ && call) std::exchange(call, nullptr)();
    return clock.now();
  }
  [[nodiscard]] std::int64_t unix_ms() const noexcept override { return clock.unix_ms(); }

  ManualClock clock;
  mutable std::function<void()> call;  // of that thread

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
};

/// Pays "a", of which `epoch` is the claim, beside a feature.
struct Beside {
  JoinProcess& process;
  CallingClock& clock;
  Epoch epoch;
  /// Another storage with an engine of its own.
  JoinProcess& other;
};

struct Feature {
  const char* what;
  const char* refused;  ///< a part of the error; null: it composes, and the claim is done
  std::function<Result<JoinedOutcome>(const Beside&)> pay;
};

Result<JoinedOutcome> pay_in_section(const Beside& at, const std::vector<KeyRef>& keys) {
  Section section = at.process.engine->section(keys).value();
  Result<JoinedOutcome> paid = at.process.pay("a", at.epoch);
  CHECK(section.commit());
  return paid;
}

Result<JoinedOutcome> pay_as(const Beside& at, Claims claims, Epoch epoch) {
  rocksdb::WriteBatch effects;
  REQUIRE(effects.Put(at.process.payments(), "a", "paid").ok());
  return complete_joined(*at.process.storage, claims, {.key = "a", .epoch = epoch}, effects);
}

const std::vector<Feature> features{
    {"a section over the claim", "this thread is inside a section",
     [](const Beside& at) {
       return pay_in_section(at, {{0, "jobs:a"}});
     }},
    {"a section over another key", "this thread is inside a section",
     [](const Beside& at) {
       return pay_in_section(at, {{0, "elsewhere"}});
     }},
    {"a section over everything", "this thread is inside a section",
     [](const Beside& at) { return pay_in_section(at, {}); }},
    {"a section within a section", "this thread is inside a section",
     [](const Beside& at) {
       Section outer = at.process.engine->section({}).value();
       Result<JoinedOutcome> paid = pay_in_section(at, {{0, "jobs:a"}});
       CHECK(outer.commit());
       return paid;
     }},
    {"a section that has ended", nullptr,
     [](const Beside& at) {
       CHECK(at.process.engine->section({}).value().commit());
       return at.process.pay("a", at.epoch);
     }},
    {"a section of another thread", nullptr,
     [](const Beside& at) {
       Section section = at.process.engine->section({}).value();
       std::optional<Result<JoinedOutcome>> paid;
       std::thread payer{[&] { paid = at.process.pay("a", at.epoch); }};
       CHECK(section.commit());
       payer.join();
       return *paid;
     }},
    {"a section of another engine", nullptr,
     [](const Beside& at) {
       Section section = at.other.engine->section({}).value();
       Result<JoinedOutcome> paid = at.process.pay("a", at.epoch);
       CHECK(section.commit());
       return paid;
     }},
    {"claims of another engine", "not of the engine that was recovered from this storage",
     [](const Beside& at) {
       const Epoch epoch = at.other.claim("a");
       const auto paid = pay_as(at, *at.other.claims, epoch);
       CHECK(at.other.state("a") == ClaimState::held);
       return paid;
     }},
    {"claims of an engine in memory alone", "not of the engine that was recovered",
     [](const Beside& at) {
       const auto engine = Engine::open({.clock = &at.clock}).value();
       Claims claims = engine->claims("jobs", policy_of_joins()).value();
       const Epoch epoch = claims.claim({.key = "a"}).epoch;
       const auto paid = pay_as(at, claims, epoch);
       CHECK(claims.get("a")->state == ClaimState::held);
       return paid;
     }},
    {"claims of an engine that has ended", "not of the engine that was recovered",
     [](const Beside& at) {
       Claims claims = *at.other.claims;
       at.other.engine.reset();
       return pay_as(at, claims, 1);
     }},
    {"a joined commit inside of one", nullptr,
     [](const Beside& at) {
       const Epoch inner = at.process.claim("inner");
       at.clock.call = [&] {
         const auto refused = at.process.pay("inner", inner);
         REQUIRE_FALSE(refused);
         CHECK(refused.error().message().find("in a joined commit already") != std::string::npos);
       };
       const auto paid = at.process.pay("a", at.epoch);
       CHECK(at.process.state("inner") == ClaimState::held);
       CHECK(at.process.effect("inner") == "-");
       return paid;
     }},
    {"one of another storage inside of it", nullptr,
     [](const Beside& at) {
       const Epoch inner = at.other.claim("inner");
       at.clock.call = [&] {
         const auto refused = at.other.pay("inner", inner);
         REQUIRE_FALSE(refused);
         CHECK(refused.error().message().find("in a joined commit already") != std::string::npos);
       };
       const auto paid = at.process.pay("a", at.epoch);
       CHECK(at.other.state("inner") == ClaimState::held);
       return paid;
     }},
    {"one in the callback of a waiter of it", nullptr,
     [](const Beside& at) {
       const Epoch inner = at.process.claim("inner");
       bool called = false;
       const ClaimCallback then = [&](ClaimOutcome&& outcome) {
         CHECK(outcome.answer == ClaimAnswer::replay);
         CHECK(at.process.effect("a") != "-");
         const auto paid = at.process.pay("inner", inner);
         CHECK((paid && paid->written));
         called = true;
       };
       CHECK(at.process.claims->claim_or_wait({.key = "a"}, no_end, then) != 0);
       const auto paid = at.process.pay("a", at.epoch);
       CHECK(called);
       CHECK(at.process.state("inner") == ClaimState::done);
       return paid;
     }},
    {"a section begun in the callback of a waiter", nullptr,
     [](const Beside& at) {
       const ClaimCallback then = [&](ClaimOutcome&&) {
         Section section = at.process.engine->section({}).value();
         CHECK(section.commit());
       };
       CHECK(at.process.claims->claim_or_wait({.key = "a"}, no_end, then) != 0);
       return at.process.pay("a", at.epoch);
     }},
    {"a batch of claims and one of completions", nullptr,
     [](const Beside& at) {
       const ClaimRequest requests[] = {{.key = "one"}, {.key = "two"}};
       ClaimOutcome outcomes[2];
       at.process.claims->claim(requests, outcomes);
       const auto one = at.process.pay("one", outcomes[0].epoch);
       CHECK((one && one->written));
       const OwnerCall calls[] = {{.key = "one", .epoch = outcomes[0].epoch, .payload = "paid"},
                                  {.key = "two", .epoch = outcomes[1].epoch}};
       OwnerOutcome ends[2];
       at.process.claims->complete(calls, ends);
       CHECK(ends[0].answer == OwnerAnswer::ok);
       CHECK(ends[1].answer == OwnerAnswer::ok);
       return at.process.pay("a", at.epoch);
     }},
    {"steps with memos", nullptr,
     [](const Beside& at) {
       Steps steps{*at.process.claims, "a", at.epoch};
       CHECK(steps.run("reserve", [] { return std::string{"r1"}; }).ok());
       return at.process.pay("a", at.epoch);
     }},
    {"a claim of a session", nullptr,
     [](const Beside& at) {
       const SessionId session = at.process.engine->open_session();
       const ClaimOutcome bound = at.process.claims->claim({.key = "b", .session = session});
       const auto paid = at.process.pay("b", bound.epoch);
       CHECK((paid && paid->written));
       at.process.engine->close_session(session);
       CHECK(at.process.state("b") == ClaimState::done);
       return at.process.pay("a", at.epoch);
     }},
    {"a claim that is in doubt", nullptr,
     [](const Beside& at) {
       const OwnerCall doubt{
           .key = "a", .epoch = at.epoch, .on_failure = Policy::OnFailure::in_doubt};
       CHECK(at.process.claims->fail(doubt).answer == OwnerAnswer::ok);
       return at.process.pay("a", at.epoch);
     }},
    {"a result that is too long, and may be dropped", nullptr,
     [](const Beside& at) {
       rocksdb::WriteBatch effects;
       REQUIRE(effects.Put(at.process.payments(), "a", "paid").ok());
       const std::string longer(std::size_t{2} << 20, 'r');
       const auto paid = complete_joined(
           *at.process.storage, *at.process.claims,
           {.key = "a", .epoch = at.epoch, .payload = longer, .keeping = ResultKeeping::optional},
           effects);
       CHECK((paid && paid->owner.dropped == ErrorCode::value_too_long));
       return paid;
     }},
    {"a flush and a rewrite before it", nullptr,
     [](const Beside& at) {
       CHECK(at.process.engine->store().set("k", "v").ok());
       CHECK(at.process.engine->flush(1).ok());
       CHECK(at.process.storage->rewrite(*at.process.engine));
       return at.process.pay("a", at.epoch);
     }},
};

}  // namespace

TEST_CASE("joined commits beside other features: they compose, or are refused before any change",
          "[storage][join][attack][between-15]") {
  const std::size_t at = GENERATE(range(std::size_t{0}, features.size()));
  const Feature& feature = features[at];
  INFO(feature.what);
  const Directory directory;
  const Directory beside;
  CallingClock clock;
  const auto check = [&](JoinProcess& process) {
    const bool is_done = feature.refused == nullptr;
    CHECK(process.state("a") == (is_done ? ClaimState::done : ClaimState::held));
    CHECK((process.effect("a") != "-") == is_done);
  };
  {
    JoinProcess process{directory.path(), clock};
    JoinProcess other{beside.path(), clock};
    const auto paid = feature.pay({process, clock, process.claim("a"), other});
    CHECK(paid.ok() == (feature.refused == nullptr));
    if (paid) CHECK(paid->written);
    if (!paid) {
      CHECK(paid.error().code == ErrorCode::bad_option);
      CHECK_THAT(paid.error().message(),
                 Catch::Contains(feature.refused != nullptr ? feature.refused : ""));
    }
    CHECK_FALSE(process.storage->stats().failed);
    check(process);
  }
  JoinProcess process{directory.path(), clock};
  check(process);
}

TEST_CASE("joined commits of an engine that forgets, or has its journal elsewhere, are refused",
          "[storage][join][attack][between-15]") {
  const Directory directory;
  ManualClock clock;
  auto storage = open_storage({.directory = directory.path()}, clock, {{"payments", {}}}).value();
  struct Case {
    Options options;
    const char* refused;
  };
  const Case cases[] = {
      {{.clock = &clock}, "has another journal"},
      {{.clock = &clock,
        .journal = storage.get(),
        .replicated = true,
        .first_version = storage->first_version()},
       "is a replica"},
  };
  for (const Case& each : cases) {
    INFO(each.refused);
    const auto engine = Engine::open(each.options).value();
    REQUIRE(storage->recover(*engine));
    auto claims = engine->claims("jobs", policy_of_joins());
    if (!claims) continue;  // a replica alone declares none
    rocksdb::WriteBatch effects;
    REQUIRE(effects.Put(family(*storage, "payments"), "a", "paid").ok());
    const auto refused = complete_joined(*storage, *claims, {.key = "a", .epoch = 1}, effects);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::bad_option);
    CHECK_THAT(refused.error().message(), Catch::Contains(each.refused));
  }
}

TEST_CASE("joined commits in memory alone are on the disk with their effects",
          "[storage][join][attack][between-15]") {
  const Directory directory;
  ManualClock clock;
  {
    JoinProcess process{directory.path(), clock, Durability::memory};
    REQUIRE(process.pay("a", process.claim("a"), "paid", Durability::logged)->written);
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.state("a") == ClaimState::done);
  CHECK(process.effect("a") != "-");
}

TEST_CASE("a joined commit that finishes nothing writes no effects, whatever else its thread does",
          "[storage][join][attack][between-15]") {
  const Directory directory;
  CallingClock clock;
  {
    JoinProcess process{directory.path(), clock};
    const Epoch stale = process.claim("a");
    clock.clock.advance(61s);
    static_cast<void>(process.claim("a"));
    bool called = false;
    clock.call = [&] {
      CHECK(process.engine->store().set("k", "v").ok());
      called = true;
    };
    const auto paid = process.pay("a", stale);
    REQUIRE(called);
    REQUIRE(paid);
    CHECK(paid->owner.answer == OwnerAnswer::stale_owner);
    CHECK_FALSE(paid->written);
    CHECK(process.effect("a") == "-");
  }
  JoinProcess process{directory.path(), clock};
  CHECK(process.effect("a") == "-");
  CHECK(process.state("a") == ClaimState::held);
  CHECK(process.engine->store().get("k").value() == "v");
}

TEST_CASE("a joined commit in a forked child is refused, and its parent goes on",
          "[storage][join][process][attack][between-15]") {
  const Directory directory;
  ManualClock clock;
  JoinProcess process{directory.path(), clock};
  const Epoch epoch = process.claim("a");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(10);
    const auto paid = process.pay("a", epoch);
    _exit(!paid && paid.error().code == ErrorCode::forked ? 0 : 1);
  }
  int verdict = 0;
  REQUIRE(waitpid(child, &verdict, 0) == child);
  CHECK(verdict == 0);
  CHECK(process.effect("a") == "-");
  CHECK(process.pay("a", epoch)->written);
}

}  // namespace semel::tests
