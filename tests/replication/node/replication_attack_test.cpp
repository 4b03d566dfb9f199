// What could make services of a group lose work, do it twice or hang: objects that end under calls,
// callbacks that call the engine, claims with an id of the caller, a child process, a full group.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include "engine/replica/own_state.hpp"
#include "semel/claims.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/limits.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/services.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

Claims claims_of(Services& services, std::uint64_t id, Bytes name, const Policy& policy = {}) {
  auto claims = services.engine(id).claims(name, policy);
  INFO(services.said());
  REQUIRE(claims.ok());
  return *std::move(claims);
}

bool comes_true(const std::function<bool()>& is) {
  for (int i = 0; i < 20'000 && !is(); ++i) poll(nullptr, 0, 1);
  return is();
}

/// Whether it is blocked, as a call that has begun waits for a majority that is not there; or over:
/// where the leader has noticed that, its call has ended already.
bool sleeps_or_is_over(pid_t thread) {
  std::ifstream file{"/proc/self/task/" + std::to_string(thread) + "/stat"};
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  return name_end == std::string::npos || line[name_end + 2] == 'S';
}

/// Calls of every kind: each returns whether it has failed.
std::vector<std::function<bool()>> calls_of(Engine& engine, Claims& claims) {
  return {
      [&] { return claims.claim({.key = "a"}).error != ErrorCode::ok; },
      [&] { return claims.claim_or_wait({.key = "held"}, no_end).error != ErrorCode::ok; },
      [&] {
        const std::vector<ClaimRequest> requests{{.key = "b"}, {.key = "c"}};
        std::vector<ClaimOutcome> outcomes(2);
        claims.claim(requests, outcomes);
        return outcomes[1].error != ErrorCode::ok;
      },
      [&] {
        std::vector<StoreOp> ops(limits::batch_max);
        for (std::size_t i = 0; i < ops.size(); ++i) {
          ops[i] = {.verb = i % 2 == 0 ? Verb::set : Verb::get, .key = "batch", .value = "1"};
        }
        std::vector<StoreOutcome> outcomes(ops.size());
        engine.host().apply(ops, outcomes);
        return outcomes.back().error != ErrorCode::ok;
      },
      [&] { return !engine.store().set("a", "b").ok(); },
      [&] { return !engine.store().get("a").ok(); },
      [&] {
        return !engine.store().mget(std::vector<Bytes>{"a", "b"}).ok();
      },
      [&] { return !engine.hashes().hset("h", "f", "v").ok(); },
      [&] { return !engine.hashes().hget("h", "f").ok(); },
      [&] { return !engine.confirm(Durability::quorum); },
      [&] { return engine.open_session() == 0; },
      [&] { return !engine.claims("new", Policy{}).ok(); },
      [&] { return !claims.get("held").ok(); },
      [&] { return !engine.flush({}).ok(); },
  };
}

}  // namespace

TEST_CASE("replication: a cancelled wait takes nothing from an owner with the same id",
          "[replication]") {
  Services services{3};
  const std::uint64_t here = services.follower();
  Claims claims = claims_of(services, here, "ids");
  const ClaimId mine{1, 2, 3};
  const ClaimOutcome held = claims.claim({.key = "k", .claim_id = mine});
  REQUIRE(held.answer == ClaimAnswer::granted);
  for (int i = 0; i < 50; ++i) {
    const WaitTicket ticket =
        claims.claim_or_wait({.key = "k", .claim_id = mine}, no_end, [](ClaimOutcome&&) {});
    static_cast<void>(claims.cancel_wait("k", ticket));
  }
  // Answers come in order, and so does what is asked for: both are behind the cancelled waits.
  std::promise<void> told;
  static_cast<void>(
      claims.claim_or_wait({.key = "other"}, no_end, [&](ClaimOutcome&&) { told.set_value(); }));
  told.get_future().get();
  REQUIRE(claims.claim({.key = "behind"}).answer == ClaimAnswer::granted);
  const auto view = claims.get("k");
  REQUIRE(view.ok());
  CHECK(view->state == ClaimState::held);
  CHECK(claims.complete({.key = "k", .epoch = held.epoch}).answer == OwnerAnswer::ok);
}

TEST_CASE("replication: calls under way end with the service, of whatever kind they are",
          "[replication]") {
  for (int round = 0; round < 3; ++round) {
    Services services{3};
    const std::uint64_t leader = services.leader();
    Claims claims = claims_of(services, leader, "ends");
    Engine& engine = services.engine(leader);
    REQUIRE(claims.claim({.key = "held"}).answer == ClaimAnswer::granted);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      if (id != leader) services.close(id);
    }
    const std::vector<std::function<bool()>> calls = calls_of(engine, claims);
    std::vector<std::thread> threads;
    std::vector<std::promise<pid_t>> begun(calls.size());
    std::atomic<std::size_t> failed{0};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      threads.emplace_back([&, i] {
        begun[i].set_value(gettid());
        if (calls[i]()) ++failed;
      });
    }
    std::atomic<int> called{0};
    for (int i = 0; i < 10; ++i) {
      // A callback that asks again at once, as one that knows nothing of the end would.
      static_cast<void>(claims.claim_or_wait({.key = "held"}, no_end, [&](ClaimOutcome&& outcome) {
        if (outcome.error == ErrorCode::ok) return;
        if (claims.claim({.key = "again"}).error == ErrorCode::ok) return;
        static_cast<void>(
            claims.claim_or_wait({.key = "held"}, no_end, [&](ClaimOutcome&&) { ++called; }));
      }));
    }
    for (std::promise<pid_t>& each : begun) {
      const pid_t thread = each.get_future().get();
      REQUIRE(comes_true([&] { return sleeps_or_is_over(thread); }));
    }
    services.close(leader);
    for (std::thread& each : threads) each.join();
    CHECK(failed == calls.size());
    CHECK(called == 10);
  }
}

TEST_CASE("replication: in a child process every call of the object ends, and says why",
          "[replication]") {
  Services services{3};
  Replication& group = services.at(services.leader());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(10);
    bool is_refused = group.transfer().error().code == ErrorCode::forked;
    is_refused = is_refused && group.add(9, "127.0.0.1:1").error().code == ErrorCode::forked;
    is_refused = is_refused && !group.status().failed.empty() && !group.status().leads;
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("replication: in its own state a thread reads the replica, and changes nothing",
          "[replication]") {
  Services services{3};
  Engine& engine = services.engine(1);
  REQUIRE(engine.store().set("k", "v").ok());
  for (std::uint64_t id = 2; id <= 3; ++id) services.close(id);
  auto own_state = std::make_optional<engine::OwnState>(&engine);
  // No majority is asked.
  CHECK(*engine.store().get("k") == "v");
  CHECK(engine.store().set("k", "w").error().code == ErrorCode::refused);
  CHECK(engine.claims("new", Policy{}).error().code == ErrorCode::refused);
  const Timestamp still = engine.clock().now();
  // That of other threads goes on.
  std::promise<bool> goes_on;
  std::thread other{
      [&] { goes_on.set_value(comes_true([&] { return engine.clock().now() > still; })); }};
  other.join();
  CHECK(goes_on.get_future().get());
  CHECK(engine.clock().now() == still);
  own_state.reset();
  CHECK(engine.clock().now() > still);
}

TEST_CASE("replication: whether it is ready is said with the reason, and a report may throw",
          "[replication]") {
  Services services{3};
  REQUIRE(services.leader() != 0);
  const std::uint64_t here = services.follower();
  const auto is_ready = [&] { return services.at(here).ready().ok(); };
  CHECK(comes_true(is_ready));
  const ReplicationStatus status = services.at(here).status();
  CHECK(status.leader != 0);
  CHECK_FALSE(status.is_fetching);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != here) services.close(id);
  }
  CHECK(comes_true([&] { return !is_ready(); }));
  const Status why = services.at(here).ready();
  CHECK(why.error().code == ErrorCode::not_leader);
  CHECK(why.error().detail == "the group has no leader, or it is not known");
  services.close(here);

  ReplicationOptions options = services.options(here);
  std::atomic<int> said{0};
  options.report = [&](const std::string&) {
    ++said;
    throw std::runtime_error{"report"};
  };
  const auto opened = Replication::open(options);
  REQUIRE(opened.ok());
  CHECK(comes_true([&] { return said > 0; }));
  CHECK((*opened)->status().failed.empty());
}

TEST_CASE("replication: a batch of completions larger than an entry is recorded", "[replication]") {
  Services services{3};
  const std::uint64_t here = services.follower();
  Claims claims = claims_of(services, here, "large");
  constexpr std::size_t count = 24;
  std::vector<std::string> keys;
  std::vector<OwnerCall> calls;
  const std::string result(500'000, 'r');
  for (std::size_t i = 0; i < count; ++i) keys.push_back(std::to_string(i));
  for (const std::string& key : keys) {
    const ClaimOutcome claim = claims.claim({.key = key});
    REQUIRE(claim.answer == ClaimAnswer::granted);
    calls.push_back({.key = key, .epoch = claim.epoch, .payload = result});
  }
  std::vector<OwnerOutcome> outcomes(count);
  claims.complete(calls, outcomes);
  for (const OwnerOutcome& each : outcomes) CHECK(each.answer == OwnerAnswer::ok);
  for (const std::string& key : keys) CHECK(claims.claim({.key = key}).result == result);
}

TEST_CASE("replication: a full group leaves work unprotected where the policy says so",
          "[replication]") {
  Options limits;
  limits.memory_bytes = std::size_t{32} << 20;
  Services services{1, limits};
  Claims open = claims_of(services, 1, "open", {.fail_open = true});
  Claims shut = claims_of(services, 1, "shut");
  const std::string value(500'000, 'v');
  bool is_full = false;
  for (int i = 0; i < 1'000 && !is_full; ++i) {
    is_full = !services.engine(1).store().set("k" + std::to_string(i), value).ok();
  }
  REQUIRE(is_full);
  CHECK(shut.claim({.key = "a"}).error == ErrorCode::memory_full);
  const ClaimOutcome one = open.claim({.key = "a"});
  CHECK(one.answer == ClaimAnswer::unprotected);
  CHECK(one.error == ErrorCode::ok);
  const std::vector<ClaimRequest> requests{{.key = "b"}, {.key = "c"}};
  std::vector<ClaimOutcome> outcomes(2);
  open.claim(requests, outcomes);
  CHECK(outcomes[1].answer == ClaimAnswer::unprotected);
  CHECK(open.claim_or_wait({.key = "d"}, no_end).answer == ClaimAnswer::unprotected);
  std::promise<ClaimAnswer> told;
  static_cast<void>(open.claim_or_wait(
      {.key = "e"}, no_end, [&](ClaimOutcome&& outcome) { told.set_value(outcome.answer); }));
  CHECK(told.get_future().get() == ClaimAnswer::unprotected);
}

TEST_CASE("replication: a visitor of a scan may call the engine", "[replication]") {
  Services services{3};
  const std::uint64_t here = services.leader();
  Engine& engine = services.engine(here);
  for (int i = 0; i < 20; ++i) REQUIRE(engine.store().set("k" + std::to_string(i), "v").ok());
  int seen = 0;
  int written = 0;
  const auto end = engine.scan(0, {.count = 100}, [&](const ScanItem& item) {
    ++seen;
    written += engine.store().set("copy of " + std::string{item.key}, "v").ok() ? 1 : 0;
    CHECK(engine.store().get(item.key).ok());
  });
  REQUIRE(end.ok());
  CHECK(seen >= 20);
  CHECK(written >= 20);
}

}  // namespace semel::tests
