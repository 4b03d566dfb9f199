// Words of this suite: key - has decisions; decision - a call and its answer, with what it met and
// why; place - room for one decision; change - a decision that changed the record; log - all of
// the places.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/decisions/decision_log.hpp"
#include "semel/claim.hpp"
#include "semel/engine_host.hpp"
#include "semel/limits.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {
namespace {

using namespace std::chrono_literals;

Options with_log(std::size_t bytes = 1 << 20) {
  Options options;
  options.memory_bytes = std::size_t{32} << 20;
  options.decision_log_bytes = bytes;
  return options;
}

std::vector<ClaimDecision> explained(Claims& claims, Bytes key,
                                     std::size_t count = limits::decisions_per_key_max) {
  auto decisions = claims.explain(key, count);
  REQUIRE(decisions.ok());
  return *std::move(decisions);
}

ClaimDecision last(Claims& claims, Bytes key) {
  const auto decisions = explained(claims, key, 1);
  REQUIRE(decisions.size() == 1);
  return decisions.back();
}

/// "granted takeover ..": the outcomes of a key, from old to new.
std::string outcomes_of(Claims& claims, Bytes key) {
  std::string all;
  for (const ClaimDecision& each : explained(claims, key)) {
    all.append(all.empty() ? "" : " ").append(each.outcome);
  }
  return all;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

Fingerprint print_of(std::uint8_t byte) {
  Fingerprint fingerprint{.algorithm = 1, .digest = {}};
  fingerprint.digest.fill(byte);
  return fingerprint;
}

}  // namespace

TEST_CASE("explain: a claim's life is told with times, owners, epochs and reasons",
          "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims orders = f.claims("orders", {.lease = 1000ms});
  const std::int64_t began = f.clock.unix_ms();
  const ClaimOutcome first = orders.claim({.key = "k", .owner = "worker-1"});
  f.clock.advance(400ms);
  static_cast<void>(orders.claim({.key = "k", .owner = "worker-2"}));
  f.clock.advance(620ms);
  const ClaimOutcome second = orders.claim({.key = "k", .owner = "worker-2"});
  static_cast<void>(orders.complete({.key = "k", .epoch = first.epoch, .payload = "late"}));
  static_cast<void>(orders.complete({.key = "k", .epoch = second.epoch, .payload = "paid"}));
  static_cast<void>(orders.claim({.key = "k", .owner = "worker-3"}));

  const auto told = explained(orders, "k");
  REQUIRE(told.size() == 6);
  CHECK(outcomes_of(orders, "k") == "granted in_flight takeover stale_owner ok replay");
  CHECK(told[0].owner == "worker-1");
  CHECK(told[0].epoch == first.epoch);
  CHECK(told[0].attempt == 1);
  CHECK(told[0].first_unix_ms == began);
  CHECK(told[0].why == "nothing was known about the key; the lease is 1000 ms");
  CHECK(told[1].owner == "worker-2");
  CHECK(told[1].seen == ClaimState::held);
  CHECK(told[1].seen_owner == "worker-1");
  CHECK(told[1].seen_epoch == first.epoch);
  CHECK(told[1].first_unix_ms == began + 400);
  CHECK(contains(told[1].why, "600 ms of its lease were left"));
  CHECK(told[2].seen_owner == "worker-1");
  CHECK(contains(told[2].why, "its lease had ended 20 ms before"));
  CHECK(told[2].attempt == 2);
  CHECK(told[3].call == DecisionCall::complete);
  CHECK(told[3].epoch == first.epoch);
  CHECK(told[3].seen_epoch == second.epoch);
  CHECK(contains(told[3].why, "has gone to another owner"));
  CHECK(told[4].why == "the work is done, and claims get its result");
  CHECK(told[5].seen == ClaimState::done);
  CHECK(told[5].seen_epoch == second.epoch);
  CHECK(told[5].why == "the work is done, and its result is kept");
}

TEST_CASE("explain: each outcome of a claim on a held or finished key is told",
          "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  SECTION("mismatch") {
    Claims claims = f.claims("n");
    static_cast<void>(claims.claim({.key = "k", .fingerprint = print_of(1)}));
    static_cast<void>(claims.claim({.key = "k", .fingerprint = print_of(2)}));
    CHECK(last(claims, "k").outcome == "mismatch");
    CHECK(contains(last(claims, "k").why, "fingerprint"));
  }
  SECTION("regranted") {
    Claims claims = f.claims("n");
    const ClaimId id{7};
    static_cast<void>(claims.claim({.key = "k", .claim_id = id}));
    static_cast<void>(claims.claim({.key = "k", .claim_id = id}));
    CHECK(outcomes_of(claims, "k") == "granted regranted");
  }
  SECTION("in doubt, resolved") {
    Claims claims = f.claims("n", {.lease = 10ms, .on_lease_end = Policy::OnLeaseEnd::in_doubt});
    static_cast<void>(claims.claim({.key = "k", .owner = "gone"}));
    f.clock.advance(30ms);
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(last(claims, "k").outcome == "in_doubt");
    CHECK(last(claims, "k").seen_owner == "gone");
    CHECK(contains(last(claims, "k").why, "ended 20 ms before"));
    CHECK(claims.resolve("k", Resolution::done, "found").value());
    CHECK(last(claims, "k").call == DecisionCall::resolve);
    CHECK(contains(last(claims, "k").why, "the work is done"));
  }
  SECTION("in doubt by the owner's word") {
    Claims claims = f.claims("n");
    const Epoch epoch = claims.claim({.key = "k"}).epoch;
    static_cast<void>(
        claims.fail({.key = "k", .epoch = epoch, .on_failure = Policy::OnFailure::in_doubt}));
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(contains(last(claims, "k").why, "did not know"));
  }
}

TEST_CASE("explain: each outcome by a policy or limit is told", "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  SECTION("too old, too new") {
    Claims claims = f.claims("n", {.window = 1000ms, .ahead = 1000ms});
    const std::int64_t now = f.clock.unix_ms();
    static_cast<void>(claims.claim({.key = "k", .first_sent_unix_ms = now - 1000}));
    CHECK(last(claims, "k").outcome == "too_old");
    static_cast<void>(claims.claim({.key = "k", .first_sent_unix_ms = now + 1001}));
    CHECK(last(claims, "k").outcome == "too_new");
  }
  SECTION("poison") {
    Claims claims = f.claims("n", {.lease = 10ms, .attempts_max = 1});
    static_cast<void>(claims.claim({.key = "k"}));
    f.clock.advance(10ms);
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(last(claims, "k").outcome == "poison");
    CHECK(contains(last(claims, "k").why, "1 attempts were made"));
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(outcomes_of(claims, "k") == "granted poison poison");
  }
  SECTION("kept failure") {
    Claims claims = f.claims("n", {.on_failure = Policy::OnFailure::keep});
    const Epoch epoch = claims.claim({.key = "k"}).epoch;
    static_cast<void>(claims.fail({.key = "k", .epoch = epoch, .payload = "no"}));
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(outcomes_of(claims, "k") == "granted ok kept_failure");
  }
  SECTION("unknown, issued") {
    Claims claims = f.claims("n", {.issued = true});
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(claims.issue("k").value());
    CHECK_FALSE(claims.issue("k").value());
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(outcomes_of(claims, "k") == "unknown ok nothing granted");
    CHECK(contains(last(claims, "k").why, "issued"));
  }
  SECTION("a closed session") {
    Claims claims = f.claims("n");
    const SessionId session = f.engine->open_session();
    static_cast<void>(claims.claim({.key = "k", .session = session}));
    f.engine->close_session(session);
    static_cast<void>(claims.claim({.key = "k"}));
    CHECK(last(claims, "k").outcome == "takeover");
    CHECK(contains(last(claims, "k").why, "session had been closed"));
  }
  SECTION("busy, unprotected") {
    // Nothing fits after the store is full.
    Claims claims = f.claims("n");
    Claims open = f.claims("o", {.fail_open = true});
    const std::string value(std::size_t{1} << 16, 'v');
    for (int i = 0; f.put("fill" + std::to_string(i), value); ++i) {
    }
    for (int i = 0; f.put("f" + std::to_string(i), "v"); ++i) {
    }
    const std::string owner(limits::owner_label_max, 'o');
    ClaimOutcome full;
    std::string key;
    for (int i = 0; full.error != ErrorCode::memory_full; ++i) {
      key = "k" + std::to_string(i);
      full = claims.claim({.key = key, .owner = owner});
      REQUIRE(i < 1'000'000);
    }
    CHECK(last(claims, key).outcome == "busy");
    CHECK(last(claims, key).why == sentence_of(ErrorCode::memory_full));
    CHECK(open.claim({.key = key, .owner = owner}).answer == ClaimAnswer::unprotected);
    CHECK(last(open, key).outcome == "unprotected");
  }
}

TEST_CASE("explain: each call of an owner and an operator is told", "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n", {.lease = 100ms});
  const Epoch epoch = claims.claim({.key = "k"}).epoch;
  static_cast<void>(claims.renew({.key = "k", .epoch = epoch}));
  CHECK(last(claims, "k").call == DecisionCall::renew);
  CHECK(last(claims, "k").why == "the lease begins again");
  f.clock.advance(100ms);
  static_cast<void>(claims.renew({.key = "k", .epoch = epoch}));
  CHECK(last(claims, "k").outcome == "refused");
  CHECK(contains(last(claims, "k").why, "a lost lease is not revived"));
  static_cast<void>(claims.complete({.key = "k", .epoch = epoch, .payload = "r"}));
  CHECK(last(claims, "k").outcome == "late");
  CHECK(contains(last(claims, "k").why, "nobody had taken over"));
  static_cast<void>(claims.complete({.key = "k", .epoch = epoch, .payload = "other"}));
  CHECK(last(claims, "k").outcome == "conflict");
  static_cast<void>(claims.release({.key = "k", .epoch = epoch}));
  CHECK(last(claims, "k").outcome == "not_owner");
  CHECK(claims.forget("k").value());
  CHECK(last(claims, "k").call == DecisionCall::forget);
  static_cast<void>(claims.complete({.key = "k", .epoch = epoch}));
  CHECK(last(claims, "k").outcome == "unknown");
  const Epoch again = claims.claim({.key = "k"}).epoch;
  static_cast<void>(claims.release({.key = "k", .epoch = again}));
  CHECK(last(claims, "k").why == "the owner gave the key back");
}

TEST_CASE("explain: a record that ends by its time is told, whoever removes it",
          "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n", {.result_ttl = 1000ms});
  const Epoch epoch = claims.claim({.key = "k"}).epoch;
  static_cast<void>(claims.complete({.key = "k", .epoch = epoch}));
  const std::int64_t done = f.clock.unix_ms();
  SECTION("the wheel") {
    f.pass(5000ms);
  }
  SECTION("the next claim") {
    f.clock.advance(5000ms);
  }
  static_cast<void>(claims.claim({.key = "k"}));
  CHECK(outcomes_of(claims, "k") == "granted ok ended granted");
  const ClaimDecision ended = explained(claims, "k")[2];
  CHECK(ended.first_unix_ms == done + 1000);
  CHECK(ended.seen == ClaimState::done);
  CHECK(ended.seen_epoch == epoch);
}

TEST_CASE("explain: batches and waits are told as single calls", "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n", {.lease = 100ms});
  const std::vector<ClaimRequest> requests{{.key = "a"}, {.key = "b"}, {.key = "a"}};
  std::vector<ClaimOutcome> outcomes(3);
  claims.claim(requests, outcomes);
  CHECK(outcomes_of(claims, "a") == "granted");  // its repetition folds onto it
  const std::vector<OwnerCall> calls{{.key = "a", .epoch = outcomes[0].epoch, .payload = "r"}};
  std::vector<OwnerOutcome> ended(1);
  claims.complete(calls, ended);
  CHECK(outcomes_of(claims, "a") == "granted ok");

  std::vector<ClaimOutcome> all(2);
  CHECK_FALSE(claims.claim_all(std::vector<ClaimRequest>{{.key = "c"}, {.key = "b"}}, all));
  CHECK(outcomes_of(claims, "b") == "granted in_flight");
  CHECK(outcomes_of(claims, "c").empty());  // nothing was decided about it
  CHECK(claims.claim_all(std::vector<ClaimRequest>{{.key = "c"}, {.key = "d"}}, all));
  CHECK(outcomes_of(claims, "c") == "granted");

  ClaimAnswer waited = ClaimAnswer::busy;
  f.engine->host().set_client("the completing client");
  static_cast<void>(claims.claim_or_wait({.key = "b", .owner = "waits"}, no_end,
                                         [&](ClaimOutcome&& end) { waited = end.answer; }));
  static_cast<void>(claims.release({.key = "b", .epoch = outcomes[1].epoch}));
  CHECK(waited == ClaimAnswer::granted);
  CHECK(last(claims, "b").outcome == "granted");
  CHECK(last(claims, "b").owner == "waits");
  CHECK(last(claims, "b").client.empty());  // it was not that client's call
}

TEST_CASE("explain: equal decisions in a row are one, with their number and times",
          "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n", {.lease = 10'000ms});
  static_cast<void>(claims.claim({.key = "k", .owner = "one"}));
  const std::int64_t began = f.clock.unix_ms();
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(claims.claim({.key = "k", .owner = "two"}));
    f.clock.advance(1ms);
  }
  const auto told = explained(claims, "k");
  REQUIRE(told.size() == 2);
  CHECK(told[1].times == 1000);
  CHECK(told[1].first_unix_ms == began);
  CHECK(told[1].last_unix_ms == began + 999);
}

TEST_CASE("explain: a flood of claims pushes out no change of its key, and no other key",
          "[engine][claims][explain][bound]") {
  EngineFixture f{with_log(4096)};  // one bucket: all keys share it
  Claims claims = f.claims("n", {.lease = 100'000ms});
  const Epoch epoch = claims.claim({.key = "k", .owner = "one"}).epoch;
  static_cast<void>(claims.renew({.key = "k", .epoch = epoch}));
  for (const char* other : {"a", "b", "c", "d", "e", "f", "g"}) {
    static_cast<void>(claims.claim({.key = other}));
  }
  for (int i = 0; i < 10'000; ++i) {
    const std::string owner = "flood-" + std::to_string(i);
    static_cast<void>(claims.claim({.key = "k", .owner = owner}));
  }
  CHECK(outcomes_of(claims, "k") == "granted ok in_flight in_flight in_flight in_flight");
  CHECK(explained(claims, "k").back().owner == "flood-9999");
  for (const char* other : {"a", "b", "c", "d", "e", "f", "g"}) {
    CHECK(outcomes_of(claims, other) == "granted");
  }
  // Changes of one key fill its own places only.
  for (int i = 0; i < 1000; ++i) {
    const Epoch next = claims.claim({.key = "z"}).epoch;
    static_cast<void>(claims.release({.key = "z", .epoch = next}));
  }
  CHECK(explained(claims, "z").size() == limits::decisions_per_key_max);
  std::size_t others = 0;
  for (const char* key : {"k", "a", "b", "c", "d", "e", "f", "g"}) {
    others += explained(claims, key).size();
  }
  CHECK(others == engine::DecisionLog::place_count - limits::decisions_per_key_max);
  CHECK(f.engine->stats().bytes_decisions == 4096);
}

TEST_CASE("explain: the log never grows, and forgets the oldest", "[engine][claims][explain]") {
  EngineFixture f{with_log(64 * 1024)};
  Claims claims = f.claims("n");
  const std::uint64_t before = f.engine->stats().bytes_decisions;
  for (int i = 0; i < 20'000; ++i) {
    static_cast<void>(claims.claim({.key = "k" + std::to_string(i)}));
  }
  CHECK(f.engine->stats().bytes_decisions == before);
  std::size_t told = 0;
  for (int i = 0; i < 20'000; ++i) told += explained(claims, "k" + std::to_string(i)).size();
  CHECK(told == 16 * engine::DecisionLog::place_count);
  CHECK(outcomes_of(claims, "k19999") == "granted");
  CHECK(broken_rules(*f.engine).empty());
}

TEST_CASE("explain: what cannot be asked is an error", "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n");
  CHECK(code_of(claims.explain("")) == ErrorCode::key_empty);
  CHECK(code_of(claims.explain(std::string(limits::key_bytes_max, 'k'))) ==
        ErrorCode::key_too_long);
  CHECK(code_of(claims.explain("k", 0)) == ErrorCode::bad_option);
  CHECK(code_of(claims.explain("k", limits::decisions_per_key_max)) == ErrorCode::ok);
  CHECK(code_of(claims.explain("k", limits::decisions_per_key_max + 1)) == ErrorCode::bad_option);
  CHECK(explained(claims, "k").empty());
  // Calls that are not valid decide nothing.
  static_cast<void>(claims.claim({.key = "k", .owner = std::string(65, 'o')}));
  static_cast<void>(claims.claim({.key = "k", .lease = 0ms}));
  CHECK(explained(claims, "k").empty());
  CHECK(f.engine->drop_namespace("n", DropRule::all).ok());
  CHECK(code_of(claims.explain("k")) == ErrorCode::namespace_dropped);

  EngineFixture without;
  Claims plain = without.claims("n");
  CHECK(code_of(plain.explain("k")) == ErrorCode::bad_option);
  CHECK(without.engine->stats().bytes_decisions == 0);
}

TEST_CASE("explain: the log is a part of the memory limit", "[engine][claims][explain]") {
  Options options = with_log();
  options.decision_log_bytes = options.memory_bytes / 4;
  EngineFixture f{options};
  CHECK(f.engine->stats().bytes_used >= options.decision_log_bytes);
  ++options.decision_log_bytes;
  CHECK(code_of(Engine::open(options)) == ErrorCode::bad_option);
}

TEST_CASE("explain: decisions are told whichever way their calls went, and in any database",
          "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  const SessionId session = f.engine->open_session();
  for (const std::uint8_t db : {std::uint8_t{0}, std::uint8_t{7}}) {
    Claims claims = f.claims("in-" + std::to_string(db), {.lease = 1000ms, .db = db});
    INFO("database " << int{db});
    // Short and long keys, of one call and of many, bound to no session, one, and the engine's.
    for (const std::size_t size : {1U, 30U, 300U}) {
      const std::string key(size, 'k');
      const ClaimOutcome one = claims.claim({.key = key, .session = 0});
      static_cast<void>(claims.claim({.key = key, .session = session}));
      static_cast<void>(claims.claim({.key = key}));
      REQUIRE(f.engine->swap_db(db, 5).has_value());
      REQUIRE(f.engine->swap_db(db, 5).has_value());
      static_cast<void>(claims.complete({.key = key, .epoch = one.epoch, .payload = "paid"}));
      std::vector<OwnerOutcome> ends(1);
      claims.complete(std::vector<OwnerCall>{{.key = key, .epoch = one.epoch, .payload = "no"}},
                      ends);
      std::vector<ClaimOutcome> again(1);
      claims.claim(std::vector<ClaimRequest>{{.key = key}}, again);
      static_cast<void>(claims.claim({.key = key, .session = 0}));
      CHECK(outcomes_of(claims, key) == "granted in_flight ok conflict replay");
      CHECK(explained(claims, key)[1].times == 2);
      CHECK(last(claims, key).times == 2);
      CHECK(last(claims, key).seen_epoch == one.epoch);
    }
  }
}

TEST_CASE("explain: where sections are frequent claims are granted once and told",
          "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n", {.lease = 1000ms});
  for (int i = 0; i < 200; ++i) {
    auto section = f.engine->section(std::array{KeyRef{0, "n:k"}});
    REQUIRE(section.ok());
  }
  const ClaimOutcome first = claims.claim({.key = "k"});
  CHECK(first.answer == ClaimAnswer::granted);
  CHECK(claims.claim({.key = "k"}).answer == ClaimAnswer::in_flight);
  CHECK(claims.complete({.key = "k", .epoch = first.epoch, .payload = "p"}).answer ==
        OwnerAnswer::ok);
  CHECK(claims.claim({.key = "k"}).result == "p");
  CHECK(outcomes_of(claims, "k") == "granted in_flight ok replay");
}

TEST_CASE("explain: a full bucket loses its oldest decision, and keeps the order of the others",
          "[engine][claims][explain]") {
  EngineFixture f{with_log(engine::DecisionLog::bucket_bytes)};  // one bucket for all keys
  Claims claims = f.claims("n", {.lease = 1'000'000ms});
  constexpr int keys = 40;
  for (int i = 0; i < keys; ++i) {
    f.clock.advance(1ms);
    static_cast<void>(claims.claim({.key = std::to_string(i)}));
    // Of one of the last keys: it takes a place, and later moves one of its own to the end.
    static_cast<void>(claims.claim({.key = std::to_string(i - i % 3), .owner = std::to_string(i)}));
  }
  std::size_t told = 0;
  for (int i = 0; i < keys; ++i) {
    std::int64_t before = 0;
    for (const ClaimDecision& each : explained(claims, std::to_string(i))) {
      CHECK(each.first_unix_ms >= before);
      before = each.first_unix_ms;
      ++told;
    }
  }
  CHECK(told == engine::DecisionLog::place_count);
  CHECK(outcomes_of(claims, std::to_string(keys - 1)).starts_with("granted"));
}

TEST_CASE("explain: labels of any bytes come back as they are", "[engine][claims][explain]") {
  EngineFixture f{with_log()};
  Claims claims = f.claims("n");
  std::string hostile;
  for (int byte = 0; byte < 32; ++byte) hostile.push_back(static_cast<char>(byte));
  hostile.append(limits::owner_label_max - hostile.size(), '\xff');
  f.engine->host().set_client(std::string(1000, 'c'));
  static_cast<void>(claims.claim({.key = "k", .owner = hostile}));
  f.engine->host().set_client({});
  static_cast<void>(claims.claim({.key = "k", .owner = "o"}));
  const auto told = explained(claims, "k");
  CHECK(told[0].owner == hostile);
  CHECK(told[0].client == std::string(engine::DecisionLog::client_bytes_max, 'c'));
  CHECK(told[1].client.empty());
  CHECK(told[1].seen_owner == hostile);
  CHECK(told[1].why.find('\xff') == std::string::npos);
}

TEST_CASE("explain: of an owner that a disk has with too many bytes the first ones are told",
          "[engine][claims][explain]") {
  EngineFixture f;
  REQUIRE(f.claims("ns").claim({.key = "k", .lease = 1h, .owner = "short", .session = 0}).epoch !=
          0);
  for (const std::size_t bytes : {64U, 65U, 255U}) {
    CAPTURE(bytes);
    ManualClock clock{f.clock.now().time_since_epoch()};
    Options options = with_log();
    options.clock = &clock;
    options.first_version = 1'000'000;
    const auto next = open_engine(options);
    const std::string owner(bytes, 'o');
    f.journal.replay([&](Ticket, const Mutation& each) {
      Mutation read = each;
      if (read.claim) read.claim->owner = owner;
      REQUIRE(next->host().restore(read).ok());
    });
    Result<Claims> claims = next->claims("ns");
    REQUIRE(claims.has_value());
    CHECK(claims->claim({.key = "k"}).answer == ClaimAnswer::in_flight);
    CHECK(last(*claims, "k").seen_owner == std::string(limits::owner_label_max, 'o'));
  }
}

TEST_CASE("explain: threads that claim one key leave no decision half written",
          "[engine][claims][explain][race]") {
  Options options = with_log(8192);
  Claims* shared = nullptr;
  EngineFixture f{options};
  Claims claims = f.claims("n");
  shared = &claims;
  constexpr int rounds = 2000;
  std::atomic<std::uint64_t> broken{0};
  const auto ask = [&](int thread) {
    const std::string owner(limits::owner_label_max, static_cast<char>('a' + thread));
    for (int i = 0; i < rounds; ++i) {
      const ClaimOutcome outcome = shared->claim({.key = "k", .owner = owner});
      if (outcome.answer == ClaimAnswer::granted) {
        static_cast<void>(shared->release({.key = "k", .epoch = outcome.epoch}));
      }
      const auto told = shared->explain("k");
      for (const ClaimDecision& each : *told) {
        const bool whole =
            each.owner.empty() || each.owner == std::string(limits::owner_label_max, each.owner[0]);
        if (!whole || each.times == 0) broken.fetch_add(1, std::memory_order_relaxed);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(ask, i);
  for (std::thread& thread : threads) thread.join();
  CHECK(broken.load(std::memory_order_relaxed) == 0);
  CHECK(explained(claims, "k").size() <= limits::decisions_per_key_max);
}

TEST_CASE("claim counts: by namespace and outcome, and the rest together",
          "[engine][claims][counts]") {
  Options options;
  options.counts_by_namespace = true;
  EngineFixture f{options};
  Claims first = f.claims("first");
  static_cast<void>(first.claim({.key = "k"}));
  static_cast<void>(first.claim({.key = "k"}));
  static_cast<void>(first.claim({.key = ""}));  // not valid: no answer of a claim
  auto counts = f.engine->host().claim_counts();
  REQUIRE(counts.size() == 1);
  CHECK(counts[0].name == "first");
  CHECK(counts[0].counts[static_cast<std::size_t>(ClaimCount::granted)] == 1);
  CHECK(counts[0].counts[static_cast<std::size_t>(ClaimCount::in_flight)] == 1);
  CHECK(counts[0].counts[static_cast<std::size_t>(ClaimCount::busy)] == 0);

  constexpr std::size_t many = 10'000;
  for (std::size_t i = 0; i < many; ++i) {
    Claims each = f.claims("n" + std::to_string(i));
    static_cast<void>(each.claim({.key = "k"}));
  }
  counts = f.engine->host().claim_counts();
  REQUIRE(counts.size() == limits::counted_namespaces_max + 1);
  CHECK(counts.back().name.empty());
  CHECK(counts.back().counts[static_cast<std::size_t>(ClaimCount::granted)] ==
        many - (limits::counted_namespaces_max - 1));

  // A name that comes again has its counters again.
  CHECK(f.engine->drop_namespace("first", DropRule::all).ok());
  Claims again = f.claims("first");
  static_cast<void>(again.claim({.key = "k"}));
  CHECK(f.engine->host().claim_counts()[0].counts[static_cast<std::size_t>(ClaimCount::granted)] ==
        2);
}

}  // namespace semel::tests
