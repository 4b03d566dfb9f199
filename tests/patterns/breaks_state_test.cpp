// What breaks in locks, guards, nonces and tables of what was seen; the others, and the words, are
// in breaks_test.cpp.
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/patterns/debounce.hpp"
#include "semel/patterns/guards.hpp"
#include "semel/patterns/lock.hpp"
#include "semel/patterns/replay_guard.hpp"
#include "tests/patterns/process.hpp"
#include "tests/patterns/story.hpp"

using namespace semel;
using semel::tests::nil;
using semel::tests::ok;
using semel::tests::one;
using semel::tests::Process;
using semel::tests::Redis;
using semel::tests::text;
using semel::tests::zero;

// --- locks --------------------------------------------------------------------------------------

TEST_CASE("breaks: P5: DEL without a comparison unlocks another's lock", "[patterns][breaks]") {
  Redis redis;
  CHECK(redis.say("SET lock a NX PX 30000") == ok);
  redis.later(Millis{30'000});
  CHECK(redis.say("SET lock b NX PX 30000") == ok);
  CHECK(redis.say("DEL lock") == one);               // A
  CHECK(redis.say("SET lock c NX PX 30000") == ok);  // beside B, who is at work

  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Lock a{locks, "l"};
  Lock b{locks, "l"};
  Lock c{locks, "l"};
  CHECK(a.try_lock());
  process.clock().advance(Millis{30'000});
  CHECK(b.try_lock());
  CHECK_FALSE(a.unlock());
  CHECK_FALSE(c.try_lock());
  CHECK(b.is_held());
}

TEST_CASE("breaks: P6: a renewal that outlives its unlock keeps a dead one's lock",
          "[patterns][breaks]") {
  const int rounds = 60;
  Redis redis;
  CHECK(redis.say("SET lock a NX PX 30000") == ok);
  CHECK(redis.say("DEL lock") == one);               // A, whose timer goes on
  CHECK(redis.say("SET lock b NX PX 30000") == ok);  // B, who dies
  for (int i = 0; i < rounds; ++i) {
    redis.later(Millis{10'000});
    CHECK(redis.say("PEXPIRE lock 30000") == one);
  }
  CHECK(redis.say("SET lock c NX PX 30000") == nil);  // after ten minutes

  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Watchdog watchdog{process.engine()};
  const ClaimOutcome a = locks.claim({.key = "l"});
  const Watchdog::Guard forgotten = watchdog.keep(locks, "l", a.epoch);
  CHECK(locks.release({.key = "l", .epoch = a.epoch}).answer == OwnerAnswer::ok);
  CHECK(locks.claim({.key = "l"}).answer == ClaimAnswer::granted);  // B, who dies
  for (int i = 0; i < 3; ++i) {
    process.clock().advance(Millis{10'000});
    CHECK(watchdog.poll() == 0);
  }
  CHECK(forgotten.lost());
  CHECK(locks.claim({.key = "l"}).answer == ClaimAnswer::granted);  // C, 30 s after B
}

TEST_CASE("breaks: P6: a paused holder overwrites what the next holder wrote",
          "[patterns][breaks]") {
  std::string file;
  Redis redis;
  CHECK(redis.say("SET lock a NX PX 30000") == ok);  // A looks, has the lock, and is paused
  redis.later(Millis{30'000});
  CHECK(redis.say("SET lock b NX PX 30000") == ok);
  file = "b";
  file = "a";  // A wakes up
  CHECK(file == "a");

  Process process;
  Claims locks = process.claims("locks", policies::lock);
  Fence fence;
  const auto write = [&](const Lock& lock, const char* what) {
    if (fence.admit(lock.fencing_token())) file = what;
  };
  Lock a{locks, "l"};
  CHECK(a.try_lock());
  process.clock().advance(Millis{30'000});
  Lock b{locks, "l"};
  CHECK(b.try_lock());
  write(b, "b");
  write(a, "a");
  CHECK(file == "b");
}

TEST_CASE("breaks: P7: a lucky newcomer overtakes a waiter", "[patterns][breaks]") {
  Redis redis;
  CHECK(redis.say("SET lock a NX PX 30000") == ok);
  CHECK(redis.say("SET lock b NX PX 30000") == nil);  // B tries again in a second
  CHECK(redis.say("DEL lock") == one);
  CHECK(redis.say("SET lock c NX PX 30000") == ok);  // C has just come
  redis.later(Millis{1'000});
  CHECK(redis.say("SET lock b NX PX 30000") == nil);

  Process process;
  Claims locks = process.claims("locks", policies::fair_lock);
  const ClaimOutcome a = locks.claim({.key = "l"});
  ClaimOutcome b;
  static_cast<void>(locks.claim_or_wait({.key = "l", .owner = "b"}, no_end,
                                        [&](ClaimOutcome&& outcome) { b = std::move(outcome); }));
  CHECK(locks.release({.key = "l", .epoch = a.epoch}).answer == OwnerAnswer::ok);
  const ClaimOutcome c = locks.claim({.key = "l", .owner = "c"});
  CHECK(b.answer == ClaimAnswer::granted);
  CHECK(c.answer == ClaimAnswer::in_flight);
  CHECK(c.owner == "b");
}

// --- what was there before ----------------------------------------------------------------------

TEST_CASE("breaks: P8: a table of what was seen grows for ever", "[patterns][breaks]") {
  constexpr Millis window{30LL * 86'400'000};
  Redis redis;
  for (int i = 0; i < 500; ++i) CHECK(redis.say("SET seen:invoice:" + text(i) + " 1 NX") == ok);
  redis.later(window);
  CHECK(redis.say("DBSIZE") == "(integer) 500");

  Process process;
  SeenBefore rows{process.engine().store(), "rows", window};
  for (int i = 0; i < 500; ++i) CHECK(rows.is_first({"invoice", text(i)}).value());
  process.clock().advance(window - Millis{1});
  CHECK_FALSE(rows.is_first({"invoice", "0"}).value());
  CHECK(process.engine().size(0) == 500);
  process.clock().advance(Millis{1});
  for (int turns = 0; turns < 1'000 && process.engine().size(0) > 0; ++turns) {
    static_cast<void>(process.engine().advance());
  }
  CHECK(process.engine().size(0) == 0);
}

TEST_CASE("breaks: P9: of two that read the same one update is lost", "[patterns][breaks]") {
  int sold = 0;
  Redis redis;
  CHECK(redis.say("SET stock 10") == ok);
  CHECK(redis.say("GET stock") == "\"10\"");  // A
  CHECK(redis.say("GET stock") == "\"10\"");  // B
  for (int i = 0; i < 2; ++i) {
    if (redis.say("SET stock 9") == ok) ++sold;
  }
  CHECK(sold == 2);
  CHECK(redis.say("GET stock") == "\"9\"");

  sold = 0;
  Process process;
  Store store = process.engine().store();
  REQUIRE(store.set("stock", "10").ok());
  const Versioned a = **store.get_versioned("stock");
  const Versioned b = **store.get_versioned("stock");
  for (const Versioned& seen : {a, b}) {
    if (store.compare_and_set("stock", seen.version, "9")->stored) ++sold;
  }
  CHECK(sold == 1);
  const auto current = store.compare_and_set("stock", b.version, "9")->current;
  CHECK(store.compare_and_set("stock", current->version, "8")->stored);  // B, with what is there
}

TEST_CASE("breaks: P9: check and take are two calls, and the account is overdrawn",
          "[patterns][breaks]") {
  Redis redis;
  CHECK(redis.say("SET balance 300") == ok);
  CHECK(redis.say("GET balance") == "\"300\"");  // A: enough
  CHECK(redis.say("GET balance") == "\"300\"");  // B: enough
  CHECK(redis.say("DECRBY balance 300") == zero);
  CHECK(redis.say("DECRBY balance 300") == "(integer) -300");

  Process process;
  Store store = process.engine().store();
  REQUIRE(store.set("balance", "300").ok());
  CHECK(decrement_if_at_least(store, "balance", 300)->taken);
  CHECK_FALSE(decrement_if_at_least(store, "balance", 300)->taken);
  CHECK(**store.get("balance") == "0");
}

TEST_CASE("breaks: P10: check and move are two calls, and an order is sent and refunded",
          "[patterns][breaks]") {
  std::vector<std::string> done;
  Redis redis;
  CHECK(redis.say("SET state paid") == ok);
  const std::string a = redis.say("GET state");
  const std::string b = redis.say("GET state");
  if (a == "\"paid\"" && redis.say("SET state sent") == ok) done.emplace_back("sent");
  if (b == "\"paid\"" && redis.say("SET state refunded") == ok) done.emplace_back("refunded");
  CHECK(done == std::vector<std::string>{"sent", "refunded"});

  done.clear();
  Process process;
  Store store = process.engine().store();
  REQUIRE(store.set("state", "paid").ok());
  for (const char* to : {"sent", "refunded"}) {
    if (transition(store, "state", "paid", to)->moved) done.emplace_back(to);
  }
  CHECK(done == std::vector<std::string>{"sent"});
}

// --- signed requests ----------------------------------------------------------------------------

namespace {

/// A server of signed requests, as it is meant.
struct Guarded {
  Guarded() : guard(ReplayGuard::open(*engine, {.secrets = {"secret"}}).value()) {}
  ReplayAnswer send(std::int64_t sent, Bytes nonce) {
    SignedRequest request{.parameters = {}, .timestamp_unix_ms = sent, .nonce = nonce};
    const std::string signature = signature_of(request, "secret");
    request.signature = signature;
    return guard.check(request).answer;
  }
  ManualClock clock;
  std::unique_ptr<Engine> engine = Engine::open({.clock = &clock}).value();
  ReplayGuard guard;
};

}  // namespace

TEST_CASE("breaks: P11: GET then SET of a nonce is a race", "[patterns][breaks]") {
  int accepted = 0;
  Redis redis;
  const std::string a = redis.say("GET nonce:n");
  const std::string b = redis.say("GET nonce:n");
  for (const std::string& seen : {a, b}) {
    if (seen == nil && redis.say("SET nonce:n 1 PX 60000") == ok) ++accepted;
  }
  CHECK(accepted == 2);

  Guarded server;
  const std::int64_t now = server.clock.unix_ms();
  CHECK(server.send(now, "n") == ReplayAnswer::accepted);
  CHECK(server.send(now, "n") == ReplayAnswer::replayed);
}

TEST_CASE("breaks: P11: an old request passes when its nonce is forgotten", "[patterns][breaks]") {
  int accepted = 0;
  Redis redis;  // the timestamp is signed, but its age is not checked
  for (int i = 0; i < 2; ++i) {
    if (redis.say("SET nonce:n 1 NX PX 60000") == ok) ++accepted;
    redis.later(Millis{60'000});
  }
  CHECK(accepted == 2);

  Guarded server;
  const std::int64_t sent = server.clock.unix_ms();
  CHECK(server.send(sent, "n") == ReplayAnswer::accepted);
  server.clock.advance(Millis{59'999});
  CHECK(server.send(sent, "n") == ReplayAnswer::replayed);
  server.clock.advance(Millis{1});
  CHECK(server.send(sent, "n") == ReplayAnswer::too_old);
}

TEST_CASE("breaks: P11: a request signed for the future passes twice", "[patterns][breaks]") {
  int accepted = 0;
  std::int64_t now = 1'700'000'000'000;
  const std::int64_t signed_for = now + 3'600'000;
  Redis redis;
  for (int i = 0; i < 2; ++i) {
    const bool in_time = now - signed_for < 60'000;  // "not older than 60 s"
    if (in_time && redis.say("SET nonce:n 1 NX PX 60000") == ok) ++accepted;
    redis.later(Millis{60'000});
    now += 60'000;
  }
  CHECK(accepted == 2);

  accepted = 0;
  Guarded server;
  const std::int64_t ahead = server.clock.unix_ms() + 3'600'000;
  CHECK(server.send(ahead, "n") == ReplayAnswer::too_new);
  for (int minute = 0; minute < 70; ++minute) {  // whenever it is shown
    if (server.send(ahead, "n") == ReplayAnswer::accepted) ++accepted;
    server.clock.advance(Millis{60'000});
  }
  CHECK(accepted == 1);
}

TEST_CASE("breaks: P11: glued parameters have one MD5 for two requests", "[patterns][breaks]") {
  const std::vector<KeyField> one_value{{"a", "1&b=2"}};
  const std::vector<KeyField> two_values{{"a", "1"}, {"b", "2"}};
  const auto glued = [](const std::vector<KeyField>& parameters) {
    std::string joined;
    for (const KeyField& each : parameters) {
      joined.append(joined.empty() ? "" : "&").append(each.name).append("=").append(each.value);
    }
    return md5_hex(joined + "&key=secret");
  };
  CHECK(glued(one_value) == glued(two_values));

  for (const auto scheme : {SignatureScheme::hmac_sha256, SignatureScheme::md5_sorted_parameters}) {
    const SignedRequest first{.parameters = one_value, .nonce = "n"};
    const SignedRequest second{.parameters = two_values, .nonce = "n"};
    CHECK(signature_of(first, "secret", scheme) != signature_of(second, "secret", scheme));
  }
}

// --- debounce ------------------------------------------------------------------------------------

TEST_CASE("breaks: P12: the end of a slow run removes another's guard", "[patterns][breaks]") {
  int at_work = 0;
  Redis redis;
  const auto begin = [&] {
    if (redis.say("SET click:u7 1 NX PX 45000") == ok) ++at_work;
  };
  begin();  // A, who is slow
  redis.later(Millis{45'000});
  begin();                                  // B
  CHECK(redis.say("DEL click:u7") == one);  // A ends
  --at_work;
  begin();  // C
  CHECK(at_work == 2);

  at_work = 0;
  Process process;
  Claims claims = process.claims("clicks", policies::debounce);
  Debounce clicks{process.engine(), claims, {.remove_on_finish = true}};
  CHECK(clicks.run("u7", [&] {  // A
    process.clock().advance(Millis{45'000});
    if (claims.claim({.key = "u7"}).answer == ClaimAnswer::granted) ++at_work;  // B
  }) == DebounceAnswer::ran);
  CHECK(clicks.run("u7", [&] { ++at_work; }) == DebounceAnswer::suppressed);  // C
  CHECK(at_work == 1);
}
