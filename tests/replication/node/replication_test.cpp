// Services that link Semel and form a group: their engines are used as any other, from all of them,
// while nodes end and come back.
#include "semel/replication.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "base/mutex.hpp"
#include "semel/claims.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/once.hpp"
#include "semel/store.hpp"
#include "tests/replication/node/services.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/socket.hpp"

namespace semel::tests {
namespace {

Claims namespace_of(Services& services, std::uint64_t id, Bytes name, const Policy& policy = {}) {
  auto claims = services.engine(id).claims(name, policy);
  INFO(services.said());
  REQUIRE(claims.ok());
  return *std::move(claims);
}

}  // namespace

TEST_CASE("replication: of claims from all services one is granted, and its result is everyone's",
          "[replication]") {
  Services services{3};
  std::vector<Claims> claims;
  for (std::uint64_t id = 1; id <= 3; ++id) claims.push_back(namespace_of(services, id, "orders"));
  for (int i = 0; i < 40; ++i) {
    const std::string key = "order " + std::to_string(i);
    std::vector<ClaimOutcome> outcomes(3);
    std::vector<std::thread> threads;
    for (std::size_t at = 0; at < 3; ++at) {
      threads.emplace_back([&, at] { outcomes[at] = claims[at].claim({.key = key}); });
    }
    for (std::thread& each : threads) each.join();
    std::size_t winner = 3;
    for (std::size_t at = 0; at < 3; ++at) {
      CHECK(outcomes[at].error == ErrorCode::ok);
      if (outcomes[at].answer == ClaimAnswer::granted) {
        CHECK(winner == 3);
        winner = at;
      } else {
        CHECK(outcomes[at].answer == ClaimAnswer::in_flight);
      }
    }
    REQUIRE(winner < 3);
    // Another service may finish it: what counts is the epoch.
    const OwnerCall call{.key = key, .epoch = outcomes[winner].epoch, .payload = "paid"};
    CHECK(claims[(winner + 1) % 3].complete(call).answer == OwnerAnswer::ok);
    for (Claims& each : claims) {
      const ClaimOutcome repeat = each.claim({.key = key});
      CHECK(repeat.answer == ClaimAnswer::replay);
      CHECK(repeat.result == "paid");
      const auto view = each.get(key);
      REQUIRE(view.ok());
      CHECK(view->state == ClaimState::done);
    }
  }
}

TEST_CASE("replication: what one service has written, the next read of any other sees",
          "[replication]") {
  Services services{3};
  for (int i = 0; i < 30; ++i) {
    Store writer = services.engine(1 + i % 3).store();
    Store reader = services.engine(1 + (i + 1) % 3).store();
    const std::string value = std::to_string(i);
    REQUIRE(writer.set("key", value).ok());
    const auto found = reader.get("key");
    REQUIRE(found.ok());
    CHECK(*found == value);
    const auto taken = reader.set("key", "other", {.condition = Condition::if_absent, .get = true});
    REQUIRE(taken.ok());
    CHECK_FALSE(taken->stored);
    CHECK(taken->previous == value);
  }
}

TEST_CASE("replication: every kind of call goes through the log", "[replication]") {
  Services services{3};
  Engine& one = services.engine(services.follower());
  Engine& other = services.engine(services.leader());
  Store store = one.store();
  const std::vector<KeyValue> pairs{{"a", "1"}, {"b", "2"}};
  REQUIRE(store.mset(pairs));
  const auto many = other.store().mget(std::vector<Bytes>{"a", "b", "c"});
  REQUIRE(many.ok());
  CHECK(*many == std::vector<std::optional<std::string>>{"1", "2", std::nullopt});
  CHECK(*store.msetnx(pairs) == false);
  CHECK(*other.store().incr_by("a", 4) == 5);
  CHECK(*store.incr_by_float("f", 1.5L) == "1.5");
  CHECK(store.incr_by("b", 9'223'372'036'854'775'807).error().code ==
        ErrorCode::increment_overflow);
  CHECK(store.rename("a", "z"));
  CHECK(store.rename("none", "z").error().code == ErrorCode::no_such_key);
  CHECK(*store.copy("z", "y", std::nullopt, false));
  CHECK(*store.move("y", 3));
  CHECK(*one.store(3).get("y") == "5");
  CHECK(*store.exists(std::vector<Bytes>{"z", "b", "y"}) == 2);
  CHECK(*store.expire("z", Expiry::in(Millis{60'000})));
  const auto ttl = other.store().ttl("z");
  REQUIRE(ttl.ok());
  CHECK(ttl->has_ttl);
  CHECK(ttl->remaining > Millis{50'000});
  CHECK(*store.del(std::vector<Bytes>{"z", "b", "none"}) == 2);

  Hashes hashes = one.hashes();
  CHECK(*hashes.hset("h", "field", "1"));
  CHECK_FALSE(*hashes.hsetnx("h", "field", "2"));
  CHECK(*hashes.hincrby("h", "field", 4) == 5);
  CHECK(*hashes.hincrbyfloat("h", "real", 0.5L) == "0.5");
  CHECK(*other.hashes().hget("h", "field") == "5");
  CHECK(*hashes.hdel("h", std::vector<Bytes>{"field", "none"}) == 1);

  std::vector<StoreOp> ops(3);
  ops[0] = {.verb = Verb::set, .key = "batch", .value = "1"};
  ops[1] = {.verb = Verb::incr_by, .key = "batch", .amount = 2};
  ops[2] = {.verb = Verb::get, .key = "batch"};
  std::vector<StoreOutcome> outcomes(3);
  one.host().apply(ops, outcomes);
  CHECK(outcomes[1].number == 3);
  CHECK(outcomes[2].value == "3");
  CHECK(one.swap_db(0, 5));
  CHECK(*other.store(5).get("batch") == "3");
  CHECK(one.flush({}).ok());
  CHECK(*other.store(5).exists("batch") == false);
}

TEST_CASE("replication: claims of a batch, operators' calls and namespaces", "[replication]") {
  Services services{3};
  const std::uint64_t here = services.follower();
  Claims claims = namespace_of(services, here, "batch", {.issued = true});
  CHECK(*claims.issue("a"));
  CHECK_FALSE(*claims.issue("a"));
  CHECK(*claims.issue("b"));
  const std::vector<ClaimRequest> requests{{.key = "a"}, {.key = "b"}, {.key = "a"}, {.key = "c"}};
  std::vector<ClaimOutcome> outcomes(4);
  claims.claim(requests, outcomes);
  CHECK(outcomes[0].answer == ClaimAnswer::granted);
  CHECK(outcomes[1].answer == ClaimAnswer::granted);
  CHECK(outcomes[2].folded_onto == 0U);
  CHECK(outcomes[3].answer == ClaimAnswer::unknown);
  const std::vector<OwnerCall> calls{{.key = "a", .epoch = outcomes[0].epoch, .payload = "x"},
                                     {.key = "b", .epoch = 7}};
  std::vector<OwnerOutcome> ends(2);
  claims.complete(calls, ends);
  CHECK(ends[0].answer == OwnerAnswer::ok);
  CHECK(ends[1].answer != OwnerAnswer::ok);
  CHECK(*claims.resolve("b", Resolution::released));
  CHECK(*claims.forget("a"));
  CHECK_FALSE(*claims.forget("a"));
  CHECK(claims.claim({.key = ""}).error == ErrorCode::key_empty);
  CHECK(claims.claim({.key = std::string(70'000, 'k')}).error != ErrorCode::ok);

  Engine& engine = services.engine(here);
  CHECK(engine.claims("batch", Policy{}).error().code == ErrorCode::namespace_differs);
  CHECK(engine.change_namespace("batch", {.lease = Millis{5'000}, .issued = true}).ok());
  CHECK(engine.drop_namespace("batch", DropRule::all).error().code == ErrorCode::bad_option);
  CHECK(engine.drop_namespace("none").error().code == ErrorCode::bad_namespace);
  namespace_of(services, here, "unused");
  CHECK(engine.drop_namespace("unused").ok());
  CHECK(engine.claims("unused").error().code == ErrorCode::bad_namespace);

  Claims plain = namespace_of(services, here, "plain");
  const std::vector<ClaimRequest> both{{.key = "x"}, {.key = "y"}};
  std::vector<ClaimOutcome> all(2);
  CHECK(plain.claim_all(both, all));
  CHECK(all[0].answer == ClaimAnswer::granted);
  std::vector<ClaimOutcome> none(2);
  CHECK_FALSE(plain.claim_all(std::vector<ClaimRequest>{{.key = "z"}, {.key = "y"}}, none));
  CHECK(plain.get("z")->state == ClaimState::absent);
}

TEST_CASE("replication: a leader that ends is not seen by those who claim elsewhere",
          "[replication]") {
  Services services{3};
  std::map<std::uint64_t, Claims> claims;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    claims.emplace(id, namespace_of(services, id, "orders"));
  }
  int key = 0;
  for (int round = 0; round < 4; ++round) {
    const std::uint64_t leader = services.leader();
    REQUIRE(leader != 0);
    std::atomic<bool> is_over{false};
    std::atomic<int> granted{0};
    std::vector<std::thread> threads;
    for (std::uint64_t id = 1; id <= 3; ++id) {
      if (id == leader) continue;
      threads.emplace_back(
          [&, mine = claims.at(id), from = key + static_cast<int>(id) * 100'000]() mutable {
            for (int i = 0; !is_over.load(std::memory_order_relaxed); ++i) {
              const std::string name = std::to_string(from + i);
              const ClaimOutcome claim = mine.claim({.key = name});
              if (claim.answer != ClaimAnswer::granted) return;
              const OwnerCall call{.key = name, .epoch = claim.epoch, .payload = "done"};
              if (mine.complete(call).answer != OwnerAnswer::ok) return;
              ++granted;
            }
          });
    }
    const auto wait_for = [&](int more) {
      const int target = granted.load(std::memory_order_relaxed) + more;
      for (int i = 0; i < 20'000 && granted.load(std::memory_order_relaxed) < target; ++i)
        poll(nullptr, 0, 1);
      CHECK(granted.load(std::memory_order_relaxed) >= target);
    };
    wait_for(50);
    claims.erase(leader);
    services.close(leader);
    wait_for(200);
    is_over = true;
    for (std::thread& each : threads) each.join();
    services.open(leader);
    claims.emplace(leader, namespace_of(services, leader, "orders"));
    key += 10'000'000;
  }
}

TEST_CASE("replication: counters, tokens and fields count once while leaders end",
          "[replication]") {
  Services services{3};
  Policy issued;
  issued.issued = true;
  static_cast<void>(namespace_of(services, services.follower(), "tokens", issued));
  std::atomic<int> counted{0};
  std::atomic<int> failed{0};
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t leader = services.leader();
    REQUIRE(leader != 0);
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      const std::uint64_t id = (leader + static_cast<std::uint64_t>(thread % 2)) % 3 + 1;
      threads.emplace_back([&, round, thread, &engine = services.engine(id)] {
        Store store = engine.store();
        Hashes hashes = engine.hashes();
        auto tokens = engine.claims("tokens");
        for (int i = 0; tokens.ok() && !is_over.load(std::memory_order_relaxed); ++i) {
          const std::string mine =
              std::to_string(round) + "/" + std::to_string(thread) + "/" + std::to_string(i);
          const auto count = store.incr_by("count", 1);
          const auto field = hashes.hincrby("hash", "field", 1);
          const auto token = tokens->issue(mine);
          const auto gone = store.del("none");
          const bool is_right = count.ok() && field.ok() && token.ok() && *token && gone.ok() &&
                                tokens->claim({.key = mine}).answer == ClaimAnswer::granted;
          ++(is_right ? counted : failed);
          if (!is_right) return;
        }
      });
    }
    const auto wait_for = [&](int more) {
      const int target = counted.load(std::memory_order_relaxed) + more;
      for (int i = 0; i < 20'000 && counted.load(std::memory_order_relaxed) < target; ++i)
        poll(nullptr, 0, 1);
      CHECK(counted.load(std::memory_order_relaxed) >= target);
    };
    wait_for(40);
    services.close(leader);
    wait_for(80);
    is_over = true;
    for (std::thread& each : threads) each.join();
    services.open(leader);
  }
  INFO(services.said());
  CHECK(failed == 0);
  Engine& engine = services.engine(services.leader());
  CHECK(*engine.store().get("count") == std::to_string(counted.load(std::memory_order_relaxed)));
  CHECK(*engine.hashes().hget("hash", "field") ==
        std::to_string(counted.load(std::memory_order_relaxed)));
}

TEST_CASE("replication: a claim that waits gets its turn, whichever services they are of",
          "[replication]") {
  Services services{3};
  std::vector<Claims> claims;
  for (std::uint64_t id = 1; id <= 3; ++id) claims.push_back(namespace_of(services, id, "turns"));
  for (int i = 0; i < 9; ++i) {
    const std::string key = std::to_string(i);
    Claims& owner = claims[static_cast<std::size_t>(i % 3)];
    Claims& next = claims[static_cast<std::size_t>((i + 1 + i / 3) % 3)];
    const ClaimOutcome first = owner.claim({.key = key});
    REQUIRE(first.answer == ClaimAnswer::granted);
    std::promise<ClaimOutcome> called;
    const Timestamp deadline = services.engine(1).now() + Millis{20'000};
    auto blocked =
        std::async(std::launch::async, [&] { return next.claim_or_wait({.key = key}, deadline); });
    const WaitTicket ticket = next.claim_or_wait(
        {.key = key}, deadline, [&](ClaimOutcome&& end) { called.set_value(std::move(end)); });
    CHECK(ticket != 0);
    if (i % 2 == 0) {
      REQUIRE(owner.complete({.key = key, .epoch = first.epoch, .payload = "r"}).answer ==
              OwnerAnswer::ok);
      CHECK(blocked.get().answer == ClaimAnswer::replay);
      CHECK(called.get_future().get().result == "r");
    } else {
      REQUIRE(owner.release({.key = key, .epoch = first.epoch}).answer == OwnerAnswer::ok);
      // One of the two gets it, and then the other.
      auto future = called.get_future();
      for (int turn = 0; turn < 2; ++turn) {
        const auto in_time = [&](auto& each) {
          return each.valid() &&
                 each.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
        };
        for (int wait = 0; wait < 20'000 && !in_time(blocked) && !in_time(future); ++wait) {
          poll(nullptr, 0, 1);
        }
        const ClaimOutcome outcome = in_time(blocked) ? blocked.get() : future.get();
        REQUIRE(outcome.answer == ClaimAnswer::granted);
        REQUIRE(next.release({.key = key, .epoch = outcome.epoch}).answer == OwnerAnswer::ok);
      }
    }
  }
}

TEST_CASE("replication: many who wait for one key do not all ask each time", "[replication]") {
  constexpr int count = 200;
  Services services{3};
  const std::uint64_t leader = services.leader();
  Claims owner = namespace_of(services, leader, "crowd");
  Claims claims = namespace_of(services, services.follower(), "crowd");
  const ClaimOutcome first = owner.claim({.key = "k"});
  REQUIRE(first.answer == ClaimAnswer::granted);
  base::Mutex mutex;
  std::vector<Epoch> granted;
  std::atomic<int> others{0};
  for (int i = 0; i < count; ++i) {
    REQUIRE(claims.claim_or_wait({.key = "k"}, no_end, [&](ClaimOutcome&& end) {
      const base::MutexLock lock{mutex};
      if (end.answer == ClaimAnswer::granted) return granted.push_back(end.epoch);
      ++others;
    }) != 0);
  }
  const auto parked = [&] { return services.engine(services.follower()).stats().waiters; };
  for (int wait = 0; wait < 20'000 && parked() != count; ++wait) poll(nullptr, 0, 1);
  REQUIRE(parked() == count);
  const auto asked = [&] { return services.engine(leader).stats().claims_duplicate; };
  const std::uint64_t before = asked();
  Epoch held = first.epoch;
  for (std::size_t turn = 0; turn < count; ++turn) {
    REQUIRE(owner.release({.key = "k", .epoch = held}).answer == OwnerAnswer::ok);
    held = 0;
    for (int wait = 0; wait < 20'000 && held == 0; ++wait) {
      {
        const base::MutexLock lock{mutex};
        if (granted.size() > turn) held = granted[turn];
      }
      if (held == 0) poll(nullptr, 0, 1);
    }
    REQUIRE(held != 0);
  }
  CHECK(others == 0);
  // All at once it would be half of the square of them, 19,900.
  CHECK(asked() - before < 10 * count);
  CHECK(granted.size() == count);
}

TEST_CASE("replication: waits end by their deadline, by a lease, by cancel and with the service",
          "[replication]") {
  Services services{3};
  const std::uint64_t here = services.follower();
  Claims claims = namespace_of(services, here, "ends");
  const auto in = [&](std::int64_t ms) { return services.engine(here).now() + Millis{ms}; };

  REQUIRE(claims.claim({.key = "held"}).answer == ClaimAnswer::granted);
  const ClaimOutcome late = claims.claim_or_wait({.key = "held"}, in(50));
  CHECK(late.answer == ClaimAnswer::in_flight);
  CHECK(late.error == ErrorCode::timed_out);
  std::promise<ErrorCode> timed;
  static_cast<void>(claims.claim_or_wait({.key = "held"}, in(50), [&](ClaimOutcome&& outcome) {
    timed.set_value(outcome.error);
    throw std::runtime_error("of the user");
  }));
  CHECK(timed.get_future().get() == ErrorCode::timed_out);

  // An idle group's time goes on: the lease of a silent owner ends, and the next one has it.
  REQUIRE(claims.claim({.key = "silent", .lease = Millis{100}}).answer == ClaimAnswer::granted);
  const ClaimOutcome taken = claims.claim_or_wait({.key = "silent"}, in(20'000));
  CHECK(taken.answer == ClaimAnswer::granted);
  CHECK(taken.takeover);

  std::atomic<int> calls{0};
  const WaitTicket ticket =
      claims.claim_or_wait({.key = "held"}, no_end, [&](ClaimOutcome&&) { ++calls; });
  REQUIRE(ticket != 0);
  CHECK(claims.cancel_wait("held", ticket));
  CHECK_FALSE(claims.cancel_wait("held", ticket));
  CHECK(calls.load(std::memory_order_relaxed) == 0);

  std::promise<ErrorCode> closed;
  static_cast<void>(claims.claim_or_wait({.key = "held"}, no_end,
                                         [&](ClaimOutcome&& end) { closed.set_value(end.error); }));
  auto blocked = std::async(std::launch::async,
                            [&] { return claims.claim_or_wait({.key = "held"}, no_end).error; });
  while (services.engine(here).stats().waiters < 2) poll(nullptr, 0, 1);
  services.close(here);
  CHECK(closed.get_future().get() == ErrorCode::closing);
  CHECK(blocked.get() == ErrorCode::closing);
}

TEST_CASE("replication: the patterns work on a group as on one engine", "[replication]") {
  Services services{3};
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, id] {
        Claims claims = *services.engine(id).claims("once", Policy{});
        for (int i = 0; i < 20; ++i) {
          const auto done = once(claims, OnceCall{.key = std::to_string(i), .wait = Millis{20'000}},
                                 [&] { return ++runs; });
          if (!done.has_value()) ++runs;  // told by the count
        }
      });
    }
  }
  for (std::thread& each : threads) each.join();
  CHECK(runs.load(std::memory_order_relaxed) == 20);

  int counter = 0;  // guarded by the lock alone
  threads.clear();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    threads.emplace_back([&, id] {
      Claims locks = *services.engine(id).claims("locks", Policy{});
      for (int i = 0; i < 20; ++i) {
        Lock lock{locks, "counter"};
        if (lock.try_lock_for(Millis{20'000})) ++counter;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(counter == 60);
}

TEST_CASE("replication: without a majority calls end within their patience, and nothing is changed",
          "[replication]") {
  Services services{3, {}, Millis{300}};
  const std::uint64_t leader = services.leader();
  Claims claims = namespace_of(services, leader, "alone");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != leader) services.close(id);
  }
  const ClaimOutcome refused = claims.claim({.key = "a"});
  CHECK((refused.error == ErrorCode::not_leader || refused.error == ErrorCode::outcome_unknown));
  CHECK(refused.answer == ClaimAnswer::busy);
  const auto read = services.engine(leader).store().get("a");
  CHECK_FALSE(read.ok());
  CHECK(services.engine(leader).open_session() == 0);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (id != leader) services.open(id);
  }
  // Again with a claim of one's own: what was under way may have been decided meanwhile.
  ClaimOutcome claim;
  for (int i = 0; i < 100; ++i) {
    claim = claims.claim({.key = "b"});
    if (claim.error == ErrorCode::ok) break;
  }
  CHECK(claim.answer == ClaimAnswer::granted);
}

TEST_CASE("replication: sessions, sections, levels and a child process", "[replication]") {
  Services services{3};
  const std::uint64_t here = services.follower();
  Engine& engine = services.engine(here);
  Claims claims = namespace_of(services, here, "bound");
  const SessionId session = engine.open_session();
  REQUIRE(session != 0);
  REQUIRE(claims.claim({.key = "a", .session = session}).answer == ClaimAnswer::granted);
  CHECK(claims.claim({.key = "a"}).answer == ClaimAnswer::in_flight);
  engine.close_session(session);
  const ClaimOutcome taken = claims.claim({.key = "a"});
  CHECK(taken.answer == ClaimAnswer::granted);
  CHECK(taken.takeover);

  REQUIRE(engine.store().set("k", "v").ok());
  {
    auto section = engine.section({});
    REQUIRE(section.ok());
    CHECK(*engine.store().get("k") == "v");
    CHECK(engine.store().set("k", "w").error().code == ErrorCode::refused);
    CHECK(claims.claim({.key = "b"}).error == ErrorCode::refused);
  }
  CHECK(engine.confirm(Durability::quorum));
  std::promise<bool> confirmed;
  engine.confirm_async(Durability::quorum,
                       [&](const Status& status) { confirmed.set_value(status.ok()); });
  CHECK(confirmed.get_future().get());

  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool is_refused = claims.claim({.key = "c"}).error == ErrorCode::forked &&
                            engine.store().get("k").error().code == ErrorCode::forked &&
                            engine.store().set("k", "x").error().code == ErrorCode::forked &&
                            claims.claim_or_wait({.key = "c"}, no_end).error == ErrorCode::forked;
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(*engine.store().get("k") == "v");
}

TEST_CASE("replication: full memory refuses what grows on every service, and recovers",
          "[replication]") {
  Options limits;
  limits.memory_bytes = std::size_t{32} << 20;
  Services services{3, limits};
  Engine& engine = services.engine(services.follower());
  const std::string value(500'000, 'v');
  int count = 0;
  ErrorCode last = ErrorCode::ok;
  while (count < 1'000) {
    const auto stored = engine.store().set("k" + std::to_string(count), value);
    last = stored.ok() ? ErrorCode::ok : stored.error().code;
    if (last == ErrorCode::outcome_unknown) continue;  // a busy machine's leader has changed
    if (last != ErrorCode::ok) break;
    ++count;
  }
  CHECK(last == ErrorCode::memory_full);
  CHECK(count > 30);
  for (int i = 0; i < count; ++i) {
    while (!engine.store().del("k" + std::to_string(i)).ok()) {
    }
  }
  bool is_back = false;
  for (int i = 0; i < 2'000 && !is_back; ++i) {
    is_back = engine.store().set("small", "x").ok();
    if (!is_back) poll(nullptr, 0, 1);
  }
  CHECK(is_back);
  for (std::uint64_t id = 1; id <= 3; ++id) CHECK(services.at(id).status().failed.empty());
}

TEST_CASE("replication: wrong options are refused by name", "[replication]") {
  Services services{1};
  ReplicationOptions options = services.options(1);
  const auto detail = [&] {
    const auto opened = Replication::open(options);
    return opened.ok() ? std::string{"opened"} : opened.error().message();
  };
  CHECK(detail().find("is used") != std::string::npos);
  options.patience = Millis{-1};
  CHECK(detail().find("patience = -1") != std::string::npos);
  options = services.options(1);
  options.heartbeat = Millis{100};
  CHECK(detail().find("heartbeat = 100") != std::string::npos);
  options = services.options(1);
  options.engine.durability = Durability::logged;
  CHECK(detail().find("quorum") != std::string::npos);
  options = services.options(1);
  options.cluster_id = 0;
  CHECK(detail().find("cluster id") != std::string::npos);
  options = services.options(1);
  options.peers[2] = "nowhere:0";
  CHECK(detail().find("nowhere:0") != std::string::npos);
  options.peers.clear();
  CHECK(detail().find("listen") != std::string::npos);
  CHECK_FALSE(Replication::found(options));
}

}  // namespace semel::tests
