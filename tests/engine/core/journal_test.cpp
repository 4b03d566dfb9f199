// The one door out and the one way back in: what leaves as Mutation, and what replay makes of it.
// Words: log = the mutations of an engine in some order; twin = an engine a log was replayed into.
#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "engine/api/owned_mutation.hpp"
#include "semel/engine_host.hpp"
#include "semel/hashes.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using engine::OwnedMutation;
using namespace std::chrono_literals;

namespace {

std::vector<OwnedMutation> log_of(const MemoryJournal& journal) {
  std::vector<OwnedMutation> log;
  journal.replay([&](Ticket, const Mutation& mutation) { log.emplace_back(mutation); });
  return log;
}

void replay(const std::vector<OwnedMutation>& log, Engine& twin) {
  for (const OwnedMutation& kept : log) {
    const Status status = twin.host().restore(kept.view());
    if (!status) FAIL_CHECK(status.error().message());
  }
}

Mutation put_of(Bytes key, Bytes value, Version version, Timestamp due = no_end) {
  Mutation mutation;
  mutation.key = key;
  mutation.value = value;
  mutation.version = version;
  mutation.due = due;
  return mutation;
}

Mutation erase_of(Bytes key, Version version) {
  Mutation mutation = put_of(key, {}, version);
  mutation.type = Mutation::Type::erase;
  return mutation;
}

Policy short_policy() {
  Policy policy;
  policy.lease = 50ms;
  policy.result_ttl = 200ms;
  policy.attempts_max = 5;
  return policy;
}

/// A day in the life of an engine: strings and claims, ttls, deletions, flushes, swaps. Asserts
/// nothing, so that several threads may live it at once.
void live(EngineFixture& f, Claims ns, std::mt19937_64& random, int steps) {
  for (int i = 0; i < steps; ++i) {
    const auto db = static_cast<std::uint8_t>(random() % 3);
    const std::string key = "k" + std::to_string(random() % 60);
    const ClaimOutcome claim = random() % 3 == 0 ? ns.claim({.key = key}) : ClaimOutcome{};
    switch (random() % 12) {
      case 0:
        static_cast<void>(f.store(db).del(key));
        break;
      case 1:
        static_cast<void>(f.store(db).expire(key, Expiry::in(Millis{1 + random() % 100})));
        break;
      case 2:
        static_cast<void>(f.store(db).incr_by("n" + key, 3));
        break;
      case 3:
        static_cast<void>(f.store(db).append(key, "more"));
        break;
      case 4:
        static_cast<void>(ns.complete({.key = key, .epoch = claim.epoch, .payload = "result"}));
        break;
      case 5:
        static_cast<void>(ns.fail({.key = key, .epoch = claim.epoch, .payload = "failed"}));
        break;
      case 6:
        static_cast<void>(ns.release({.key = key, .epoch = claim.epoch}));
        break;
      case 7:
        f.pass(Millis{random() % 20});
        break;
      case 8:
        if (random() % 50 == 0) {
          const FlushMode mode = random() % 2 == 0 ? FlushMode::async : FlushMode::sync;
          static_cast<void>(f.engine->flush(db, mode));
        }
        if (random() % 50 == 0) static_cast<void>(f.engine->swap_db(db, 1));
        break;
      case 9:
        static_cast<void>(f.store(db).rename(key, "r" + key));
        break;
      default:
        static_cast<void>(f.put(
            key, std::to_string(i),
            random() % 2 == 0 ? Expiry::in(Millis{1 + random() % 300}) : Expiry::clear(), db));
    }
  }
}

}  // namespace

TEST_CASE("journal: a change is one mutation with its version, a call that changes nothing is none",
          "[engine][journal]") {
  EngineFixture f;
  const auto expect = [&](std::size_t size, Version version, Mutation::Type type) {
    REQUIRE(f.journal.size() == size);
    const std::vector<OwnedMutation> log = log_of(f.journal);
    CHECK(log.back().view().version == version);
    CHECK(log.back().view().type == type);
    CHECK(log.back().view().key == "k");
  };
  StoreOutcome outcome;
  f.engine->host().apply({.verb = Verb::set, .expiry = Expiry::in(50ms), .key = "k", .value = "v"},
                         outcome);
  expect(1, outcome.version, Mutation::Type::put);
  CHECK(log_of(f.journal).back().view().due == f.clock.now() + 50ms);
  CHECK(log_of(f.journal).back().view().value == "v");
  f.engine->host().apply({.verb = Verb::persist, .key = "k"}, outcome);
  expect(2, outcome.version, Mutation::Type::put);
  CHECK(log_of(f.journal).back().view().due == no_end);
  for (const Verb verb :
       {Verb::get, Verb::exists, Verb::strlen, Verb::expire_time, Verb::persist}) {
    f.engine->host().apply({.verb = verb, .key = "k"}, outcome);
  }
  f.engine->host().apply({.verb = Verb::set, .condition = Condition::if_absent, .key = "k"},
                         outcome);
  f.engine->host().apply({.verb = Verb::del, .key = "absent"}, outcome);
  CHECK(f.journal.size() == 2);
  f.engine->host().apply({.verb = Verb::del, .key = "k"}, outcome);
  expect(3, outcome.version, Mutation::Type::erase);
  // Expiry is not journalled: the mutation's due says it.
  REQUIRE(f.put("k", "v", Expiry::in(1ms)));
  f.pass(1ms);
  CHECK(f.engine->stats().records == 0);
  CHECK(f.journal.size() == 4);
}

TEST_CASE("journal: versions of a key grow with its changes, across deletion and expiry",
          "[engine][journal]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  EngineFixture f;
  live(f, f.claims("ns", short_policy()), random, 5000);
  std::map<std::pair<std::uint8_t, std::string>, Version> last;
  Ticket ticket = 0;
  f.journal.replay([&](Ticket at, const Mutation& mutation) {
    REQUIRE(at >= ticket);
    ticket = at;
    if (mutation.type != Mutation::Type::put && mutation.type != Mutation::Type::erase) return;
    Version& version = last[{mutation.db, std::string{mutation.key}}];
    REQUIRE(mutation.version > version);
    version = mutation.version;
  });
  CHECK(ticket == f.journal.newest());
}

TEST_CASE("journal: replayed in order, in any order, or twice, a log makes the same engine",
          "[engine][journal]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 8; ++round) {
    EngineFixture f;
    live(f, f.claims("ns", short_policy()), random, 2000);
    std::vector<OwnedMutation> log = log_of(f.journal);
    if (round != 0) std::shuffle(log.begin(), log.end(), random);
    EngineFixture twin;
    twin.clock.advance(f.clock.now() - twin.clock.now());
    replay(log, *twin.engine);
    const Contents contents = contents_of(*f.engine);
    REQUIRE(contents == contents_of(*twin.engine));
    for (std::uint8_t db = 0; db < 3; ++db) CHECK(f.engine->size(db) == twin.engine->size(db));
    replay(log, *twin.engine);
    REQUIRE(contents == contents_of(*twin.engine));
    CHECK(broken_rules(*twin.engine) == "");

    // Epochs go on above everything that was handed out before.
    Epoch largest = 0;
    for (const OwnedMutation& kept : log) largest = std::max(largest, kept.view().version);
    Claims ns = twin.claims("other");
    for (int i = 0; i < 100; ++i) {
      const Epoch epoch = ns.claim({.key = std::to_string(i)}).epoch;
      REQUIRE(epoch > largest);
      largest = epoch;
    }
  }
}

TEST_CASE("journal: two threads leave a log that makes the same engine",
          "[engine][journal][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 1}};
  const Claims ns = f.claims("ns", short_policy());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      live(f, ns, random, 4000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::tuple<std::uint8_t, std::string, Version>> seen;
  std::vector<OwnedMutation> log = log_of(f.journal);
  for (const OwnedMutation& kept : log) {
    const Mutation mutation = kept.view();
    if (mutation.type == Mutation::Type::flush) continue;
    REQUIRE(seen.insert({mutation.db, std::string{mutation.key}, mutation.version}).second);
  }
  std::mt19937_64 random{seed};
  std::shuffle(log.begin(), log.end(), random);
  EngineFixture twin;
  twin.clock.advance(f.clock.now() - twin.clock.now());
  replay(log, *twin.engine);
  CHECK(contents_of(*f.engine) == contents_of(*twin.engine));
}

TEST_CASE("journal: while it takes no writes every change is refused and nothing is changed",
          "[engine][journal]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  REQUIRE(f.put("k", "5", Expiry::in(1000ms)));
  REQUIRE(f.put("dead", "v", Expiry::in(1ms)));
  const ClaimOutcome granted = ns.claim({.key = "c"});
  f.clock.advance(1ms);
  const Contents before = contents_of(*f.engine);
  const std::size_t size = f.journal.size();
  f.journal.set_accepts_writes(false);
  Store store = f.store();
  CHECK(code_of(store.set("k", "w")) == ErrorCode::refused);
  CHECK(code_of(store.set("dead", "w")) == ErrorCode::refused);
  CHECK(code_of(store.set("new", "w")) == ErrorCode::refused);
  CHECK(code_of(store.incr_by("k", 1)) == ErrorCode::refused);
  CHECK(code_of(store.del("k")) == ErrorCode::refused);
  CHECK(code_of(store.expire("k", Expiry::in(5ms))) == ErrorCode::refused);
  CHECK(code_of(store.rename("k", "l")) == ErrorCode::refused);
  CHECK(code_of(store.mset(std::array{KeyValue{"k", "w"}, KeyValue{"l", "w"}})) ==
        ErrorCode::refused);
  CHECK(ns.claim({.key = "d"}).error == ErrorCode::refused);
  CHECK(ns.complete({.key = "c", .epoch = granted.epoch}).error == ErrorCode::refused);
  CHECK(code_of(f.engine->flush(std::nullopt)) == ErrorCode::refused);
  CHECK(code_of(f.engine->swap_db(0, 1)) == ErrorCode::refused);
  CHECK(f.read("k") == "5");  // reading, and what changes nothing, goes on
  CHECK_FALSE(*store.del("absent"));
  CHECK(ns.claim({.key = "c"}).answer == ClaimAnswer::in_flight);
  CHECK(contents_of(*f.engine) == before);
  CHECK(f.journal.size() == size);
  f.journal.set_accepts_writes(true);
  CHECK(ns.complete({.key = "c", .epoch = granted.epoch}).answer == OwnerAnswer::ok);
  CHECK(f.put("k", "w"));
}

TEST_CASE("journal: of one that is full what frees is accepted, and what adds is refused",
          "[engine][journal]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  for (const char* key : {"a", "b", "c", "d", "k", "l"}) {
    REQUIRE(f.put(key, "5", Expiry::in(1000ms)));
  }
  Hashes hashes = f.engine->hashes();
  REQUIRE(hashes.hset("h", std::array{FieldValue{"x", "1"}, FieldValue{"y", "2"}}).ok());
  const Epoch done = ns.claim({.key = "done"}).epoch;
  const Epoch failed = ns.claim({.key = "failed"}).epoch;
  const Epoch released = ns.claim({.key = "released"}).epoch;
  const Epoch renewed = ns.claim({.key = "renewed"}).epoch;
  REQUIRE(ns.claim({.key = "forgotten"}).answer == ClaimAnswer::granted);
  f.journal.set_accepts_writes(false);
  f.journal.set_accepts_frees(true);
  Store store = f.store();
  CHECK(code_of(store.set("k", "w")) == ErrorCode::refused);
  CHECK(code_of(store.set("new", "w")) == ErrorCode::refused);
  CHECK(code_of(store.incr_by("k", 1)) == ErrorCode::refused);
  CHECK(code_of(store.persist("k")) == ErrorCode::refused);
  CHECK(code_of(store.expire("k", Expiry::in(5000ms))) == ErrorCode::refused);  // later
  CHECK(code_of(store.rename("k", "l")) == ErrorCode::refused);
  CHECK(ns.claim({.key = "d"}).error == ErrorCode::refused);
  CHECK(ns.renew({.key = "renewed", .epoch = renewed}).error == ErrorCode::refused);
  CHECK(code_of(f.engine->swap_db(0, 1)) == ErrorCode::refused);
  CHECK(f.read("k") == "5");
  CHECK(f.read("l") == "5");

  CHECK(*store.del("a"));
  CHECK(store.del(std::array<Bytes, 2>{"b", "c"}).value() == 2);
  CHECK(store.getdel("d").value() == "5");
  CHECK(*store.expire("k", Expiry::in(500ms)));  // earlier
  CHECK(hashes.hdel("h", std::array<Bytes, 1>{"x"}).value() == 1);
  CHECK(ns.complete({.key = "done", .epoch = done, .payload = "r"}).answer == OwnerAnswer::ok);
  CHECK(ns.fail({.key = "failed", .epoch = failed}).answer == OwnerAnswer::ok);
  CHECK(ns.release({.key = "released", .epoch = released}).answer == OwnerAnswer::ok);
  CHECK(*ns.forget("forgotten"));
  CHECK(ns.claim({.key = "done"}).answer == ClaimAnswer::replay);

  EngineFixture twin;
  f.journal.replay(
      [&](Ticket, const Mutation& mutation) { REQUIRE(twin.engine->host().restore(mutation)); });
  CHECK(contents_of(*f.engine) == contents_of(*twin.engine));
  CHECK(f.engine->flush(std::nullopt).has_value());
  CHECK(f.engine->size(0) == 0);

  f.journal.set_accepts_frees(false);  // used up
  f.journal.set_accepts_writes(true);
  REQUIRE(f.put("k", "5"));
  f.journal.set_accepts_writes(false);
  CHECK(code_of(store.del("k")) == ErrorCode::refused);
}

TEST_CASE("journal: of one that is full a section is accepted only if all of it frees",
          "[engine][journal][section]") {
  EngineFixture f;
  REQUIRE(f.put("k", "5"));
  REQUIRE(f.put("l", "5"));
  f.journal.set_accepts_writes(false);
  f.journal.set_accepts_frees(true);
  const std::size_t size = f.journal.size();
  StoreOutcome outcome;
  {
    Section mixed = f.engine->section({}).value();
    mixed.apply({.verb = Verb::del, .key = "k"}, outcome);
    CHECK(outcome.error == ErrorCode::refused);  // a group is never half refused
    mixed.apply({.verb = Verb::set, .key = "n", .value = "v"}, outcome);
    CHECK(outcome.error == ErrorCode::refused);
  }
  CHECK(f.journal.size() == size);
  {
    Section frees = f.engine->section({}).value();
    frees.only_frees();
    frees.apply({.verb = Verb::del, .key = "k"}, outcome);
    CHECK(outcome.error == ErrorCode::ok);
    frees.apply({.verb = Verb::set, .key = "n", .value = "v"}, outcome);
    CHECK(outcome.error == ErrorCode::refused);
    CHECK(frees.commit());
  }
  CHECK_FALSE(*f.store().exists("k"));
  CHECK(f.read("l") == "5");
  CHECK(f.journal.size() == size + 1);
}

TEST_CASE("journal: the larger version stays, whatever comes first", "[engine][journal]") {
  EngineFixture f;
  const auto restore = [&](const Mutation& mutation) {
    REQUIRE(f.engine->host().restore(mutation).has_value());
  };
  restore(put_of("k", "new", 20));
  restore(put_of("k", "old", 10));
  CHECK(f.read("k") == "new");
  restore(put_of("k", "same version", 20));
  CHECK(f.read("k") == "new");
  restore(erase_of("k", 15));
  CHECK(f.read("k") == "new");
  restore(erase_of("k", 30));
  CHECK(f.read("k") == "<none>");
  restore(put_of("k", "too old", 25));
  CHECK(f.read("k") == "<none>");
  // The erase comes before the put that it ended; nothing is there to be erased.
  restore(erase_of("gone", 50));
  restore(put_of("gone", "too old", 40));
  CHECK(f.read("gone") == "<none>");
  CHECK(f.engine->size(0) == 0);  // what keeps the old ones away is no record
  CHECK(contents_of(*f.engine).empty());
  restore(put_of("gone", "newer", 60));
  CHECK(f.read("gone") == "newer");
  // A put that has ended already keeps older ones away as well.
  restore(put_of("ended", "short", 80, f.clock.now()));
  restore(put_of("ended", "endless", 70));
  CHECK(f.read("ended") == "<none>");
  CHECK(f.put("ended", "again"));
  CHECK(f.store().set("last", "v")->version > 80);
  f.pass(std::chrono::hours{1});
  CHECK(f.engine->stats().records == 3);  // gone, ended, last: the delete markers are gone
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("journal: an older flush after a newer one brings nothing back", "[engine][journal]") {
  EngineFixture f;
  Mutation flush;
  flush.type = Mutation::Type::flush;
  flush.version = 30;
  REQUIRE(f.engine->host().restore(put_of("a", "v", 25)).has_value());
  REQUIRE(f.engine->host().restore(put_of("b", "v", 35)).has_value());
  REQUIRE(f.engine->host().restore(flush).has_value());
  flush.version = 10;
  REQUIRE(f.engine->host().restore(flush).has_value());
  REQUIRE(f.engine->host().restore(put_of("c", "v", 20)).has_value());
  CHECK(f.read("a") == "<none>");
  CHECK(f.read("b") == "v");
  CHECK(f.read("c") == "<none>");
  flush.db = 1;
  flush.version = 40;
  REQUIRE(f.engine->host().restore(flush).has_value());
  CHECK(f.read("b") == "v");  // another database
}

TEST_CASE("journal: the map of the databases is the newest, of the right size",
          "[engine][journal]") {
  EngineFixture f;
  REQUIRE(f.put("k", "zero"));
  Mutation map;
  map.type = Mutation::Type::db_map;
  map.version = 1000;
  std::string swapped;
  for (char db = 0; db < static_cast<char>(limits::db_count); ++db) swapped.push_back(db);
  std::string straight = swapped;
  std::swap(swapped[0], swapped[5]);
  map.value = swapped;
  REQUIRE(f.engine->host().restore(map).has_value());
  CHECK(f.read("k", 5) == "zero");
  map.version = 999;
  map.value = straight;
  REQUIRE(f.engine->host().restore(map).has_value());
  CHECK(f.read("k", 5) == "zero");
  map.version = 1001;
  map.value = Bytes{straight}.substr(1);
  CHECK(code_of(f.engine->host().restore(map)) == ErrorCode::bad_option);
  CHECK(f.read("k", 5) == "zero");
}

TEST_CASE("journal: an engine opened above a version never hands out a smaller one",
          "[engine][journal]") {
  EngineFixture f{{.first_version = 1'000'000}};
  CHECK(f.store().set("k", "v")->version >= 1'000'000);
  Claims ns = f.claims("ns");
  CHECK(ns.claim({.key = "k"}).epoch >= 1'000'000);
  std::thread{[&] { CHECK(ns.claim({.key = "l"}).epoch >= 1'000'000); }}.join();
  REQUIRE(f.engine->host().restore(put_of("r", "v", 5'000'000)).has_value());
  CHECK(ns.claim({.key = "m"}).epoch >= 1'000'000);
  CHECK(f.store().set("r", "w")->version > 5'000'000);
}

TEST_CASE("journal: restore refuses what could not have been written", "[engine][journal]") {
  EngineFixture f{{.key_bytes_max = 100, .value_bytes_max = 1000}};
  const std::string key(101, 'k');
  const std::string value(3000, 'v');
  CHECK(code_of(f.engine->host().restore(put_of(key, "v", 1))) == ErrorCode::key_too_long);
  CHECK(code_of(f.engine->host().restore(put_of("", "v", 1))) == ErrorCode::key_empty);
  CHECK(code_of(f.engine->host().restore(put_of("k", value, 1))) == ErrorCode::value_too_long);
  Mutation elsewhere = put_of("k", "v", 1);
  elsewhere.db = limits::db_count;
  CHECK(code_of(f.engine->host().restore(elsewhere)) == ErrorCode::db_out_of_range);
  CHECK(contents_of(*f.engine).empty());
}

}  // namespace semel::tests
