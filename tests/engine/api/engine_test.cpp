// A whole engine: databases, batches, several engines and threads, options, statistics.
// Words: put, read = set and get by key; pass = the clock moves and advance() runs.
#include "semel/engine.hpp"

#include <array>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

TEST_CASE("engine: options out of range are refused with their name, value and range",
          "[engine][options]") {
  const auto refusal = [](const Options& options) {
    const auto opened = Engine::open(options);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error().code == ErrorCode::bad_option);
    return opened.error().detail;
  };
  CHECK(refusal({.memory_bytes = limits::memory_bytes_min - 1}) ==
        "memory_bytes = 4194303, range 4194304..274877906944");
  CHECK(refusal({.memory_bytes = limits::memory_bytes_max + 1}) ==
        "memory_bytes = 274877906945, range 4194304..274877906944");
  CHECK(refusal({.key_bytes_max = 0}) == "key_bytes_max = 0, range 1..65536");
  CHECK(refusal({.key_bytes_max = 65'537}) == "key_bytes_max = 65537, range 1..65536");
  CHECK(refusal({.value_bytes_max = limits::value_bytes_max + 1}) ==
        "value_bytes_max = 16777217, range 0..16777216");
  CHECK(refusal({.shard_count = 0}) == "shard_count = 0, range 1..64");
  CHECK(refusal({.shard_count = 65}) == "shard_count = 65, range 1..64");
  CHECK(refusal({.shard_count = 48}) == "shard_count = 48, not a power of two");
  CHECK(Engine::open({.background = 0ms}).has_value());
  CHECK(Engine::open({.background = 1000ms}).has_value());
  CHECK(refusal({.background = 1001ms}) == "background = 1001, range 0..1000");
  // 64 shards need more than the smallest limit has.
  const auto tight = Engine::open({.memory_bytes = limits::memory_bytes_min, .shard_count = 64});
  if (!tight) CHECK(tight.error().code == ErrorCode::bad_option);
}

TEST_CASE("engine: every number of shards holds the same records", "[engine]") {
  for (unsigned shards = 1; shards <= limits::shard_count_max; shards *= 2) {
    EngineFixture f{{.memory_bytes = std::size_t{64} << 20, .shard_count = shards}};
    for (int i = 0; i < 3000; ++i) REQUIRE(f.put(std::to_string(i), "v" + std::to_string(i)));
    for (int i = 0; i < 3000; ++i) REQUIRE(f.read(std::to_string(i)) == "v" + std::to_string(i));
    CHECK(f.engine->size(0) == 3000);
    CHECK(broken_rules(*f.engine) == "");
  }
}

TEST_CASE("engine: sixteen databases share nothing", "[engine][db]") {
  EngineFixture f;
  for (unsigned db = 0; db < limits::db_count; ++db) {
    REQUIRE(f.put("k", "in " + std::to_string(db), Expiry::clear(), static_cast<std::uint8_t>(db)));
    for (unsigned i = 0; i < db; ++i) {
      REQUIRE(f.put("n" + std::to_string(i), "", Expiry::clear(), static_cast<std::uint8_t>(db)));
    }
  }
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    CHECK(f.read("k", db) == "in " + std::to_string(db));
    CHECK(f.engine->size(db) == db + 1U);
  }
  CHECK(*f.store(7).del("k"));
  CHECK(f.read("k", 7) == "<none>");
  CHECK(f.read("k", 6) == "in 6");
  CHECK(f.engine->size(limits::db_count) == 0);
  StoreOutcome outcome;
  f.engine->host().apply({.verb = Verb::get, .db = limits::db_count, .key = "k"}, outcome);
  CHECK(outcome.error == ErrorCode::db_out_of_range);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("engine: a string is wrong for a claim and a claim for a string, nothing changes",
          "[engine]") {
  EngineFixture f;
  Claims ns = f.claims("ns");
  REQUIRE(f.put("ns:s", "text"));
  const ClaimOutcome granted = ns.claim({.key = "c"});
  REQUIRE(granted.answer == ClaimAnswer::granted);
  CHECK(ns.claim({.key = "s"}).error == ErrorCode::wrong_kind);
  CHECK(code_of(f.store().get("ns:c")) == ErrorCode::wrong_type);
  CHECK(code_of(f.store().append("ns:c", "x")) == ErrorCode::wrong_type);
  CHECK(code_of(f.store().incr_by("ns:c", 1)) == ErrorCode::wrong_type);
  CHECK(f.read("ns:s") == "text");
  CHECK(ns.get("c")->epoch == granted.epoch);
  CHECK(code_of(f.store().set("ns:c", "string now")) == ErrorCode::wrong_type);
  CHECK(ns.renew({.key = "c", .epoch = granted.epoch}).answer == OwnerAnswer::ok);
  // DEL takes whatever is there, as in Redis: the claim is forgotten.
  CHECK(*f.store().del("ns:c"));
  CHECK(ns.complete({.key = "c", .epoch = granted.epoch}).answer == OwnerAnswer::unknown);
}

namespace {

/// A random operation on one of 40 keys; what it points to lives in `texts`.
StoreOp random_op(std::mt19937_64& random, const std::vector<std::string>& texts) {
  static constexpr std::array verbs{
      Verb::get,     Verb::exists, Verb::strlen,       Verb::expire_time, Verb::set,
      Verb::set,     Verb::set,    Verb::getdel,       Verb::append,      Verb::incr_by,
      Verb::decr_by, Verb::del,    Verb::expire,       Verb::persist,     Verb::getrange,
      Verb::delex,   Verb::digest, Verb::incr_by_float};
  static const Arithmetic half{.use_float = true, .by_float = 0.5L};
  StoreOp op;
  op.verb = verbs[random() % verbs.size()];
  op.db = random() % 4 == 0 ? 1 : 0;
  op.key = texts[random() % 40];
  op.value = texts[random() % texts.size()];
  op.amount = static_cast<std::int64_t>(random() % 5);
  op.arithmetic = &half;
  if (op.verb == Verb::set) {
    op.condition = static_cast<Condition>(random() % 3);
    op.get = random() % 3 == 0;
    if (random() % 2 == 0) op.expiry = Expiry::in(Millis{1 + random() % 50});
    if (random() % 5 == 0) op.expiry = Expiry::keep();
  } else if (op.verb == Verb::delex) {
    op.condition = Condition::if_equal;
    op.operand = op.value;
  } else if (op.verb == Verb::expire) {
    op.expiry = Expiry::in(Millis{1 + random() % 50});
  }
  return op;
}

void require_same(const StoreOutcome& a, const StoreOutcome& b) {
  REQUIRE(a.error == b.error);
  REQUIRE(a.found == b.found);
  REQUIRE(a.applied == b.applied);
  REQUIRE(a.has_value == b.has_value);
  REQUIRE(a.number == b.number);
  REQUIRE(a.due == b.due);
  REQUIRE(a.value == b.value);
  REQUIRE(a.version == b.version);
}

}  // namespace

TEST_CASE("engine: a batch, single calls and calls at a given time give equal answers",
          "[engine]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.push_back("key" + std::to_string(i));
  for (int i = 0; i < 10; ++i) texts.push_back(std::to_string(i * 100));
  texts.emplace_back(300, 'x');
  EngineFixture single;
  EngineFixture batch;
  EngineFixture timed;
  std::vector<StoreOutcome> outcomes(100);
  std::vector<StoreOutcome> timed_outcomes(100);
  for (int round = 0; round < 100; ++round) {
    std::vector<StoreOp> ops(random() % 100);
    for (StoreOp& op : ops) op = random_op(random, texts);
    const std::span<StoreOutcome> out = std::span{outcomes}.first(ops.size());
    batch.engine->host().apply(ops, out);
    // The clock of `timed` stands still: only the time handed in counts.
    const std::span<StoreOutcome> timed_out = std::span{timed_outcomes}.first(ops.size());
    timed.engine->host().apply_at(ops, timed_out, batch.clock.now());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      StoreOutcome one;
      single.engine->host().apply(ops[i], one);
      require_same(one, out[i]);
      require_same(one, timed_out[i]);
    }
    const Millis step{random() % 30};
    batch.pass(step);
    single.pass(step);
  }
  CHECK(contents_of(*single.engine) == contents_of(*batch.engine));
  CHECK(single.journal.size() == batch.journal.size());
  CHECK(broken_rules(*batch.engine) == "");
  CHECK(broken_rules(*timed.engine) == "");
}

TEST_CASE("engine: flush removes one database or all, counts the living, and versions go on",
          "[engine][db]") {
  EngineFixture f;
  Claims ns = f.claims("ns", {.db = 1});
  const ClaimOutcome before = ns.claim({.key = "c"});
  for (int i = 0; i < 100; ++i) {
    REQUIRE(f.put(std::to_string(i), "v", Expiry::clear(), static_cast<std::uint8_t>(i % 2)));
  }
  REQUIRE(f.put("short", "v", Expiry::in(10ms), 1));
  f.clock.advance(10ms);
  CHECK(f.engine->flush(1).value() == 51);  // 50 strings and the claim; the dead one does not count
  CHECK(f.engine->size(1) == 0);
  CHECK(f.engine->size(0) == 50);
  const ClaimOutcome after = ns.claim({.key = "c"});
  CHECK(after.answer == ClaimAnswer::granted);
  CHECK(after.epoch > before.epoch);
  CHECK(ns.complete({.key = "c", .epoch = before.epoch}).answer == OwnerAnswer::stale_owner);
  CHECK(f.engine->flush(limits::db_count).error().code == ErrorCode::db_out_of_range);
  CHECK(f.engine->flush(std::nullopt).value() == 51);
  CHECK(contents_of(*f.engine).empty());
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().bytes_records == 0);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("engine: swap_db exchanges records of every kind, sizes and later writes",
          "[engine][db]") {
  EngineFixture f;
  Claims ns = f.claims("ns", {.db = 3});
  const ClaimOutcome granted = ns.claim({.key = "c"});
  REQUIRE(f.put("k", "three", Expiry::in(100ms), 3));
  REQUIRE(f.put("k", "five", Expiry::clear(), 5));
  REQUIRE(f.put("only", "five", Expiry::clear(), 5));
  REQUIRE(f.engine->swap_db(3, 5).has_value());
  CHECK(f.read("k", 3) == "five");
  CHECK(f.read("only", 3) == "five");
  CHECK(f.read("k", 5) == "three");
  CHECK(f.engine->size(3) == 2);
  CHECK(f.engine->size(5) == 2);
  CHECK(ns.get("c")->state == ClaimState::absent);  // it is in database 5 now
  REQUIRE(f.engine->swap_db(3, 5).has_value());
  CHECK(ns.get("c")->epoch == granted.epoch);
  REQUIRE(f.engine->swap_db(3, 5).has_value());
  REQUIRE(f.put("later", "v", Expiry::clear(), 3));
  std::vector<unsigned> expired;
  f.engine->subscribe_expired([&](const ExpiredEvent& event) { expired.push_back(event.db); });
  f.pass(100ms);
  CHECK(expired == std::vector<unsigned>{5});  // reported under the number that it is shown by
  REQUIRE(f.engine->swap_db(5, 3).has_value());
  CHECK(f.read("later", 5) == "v");
  REQUIRE(f.engine->swap_db(4, 4).has_value());
  CHECK(code_of(f.engine->swap_db(0, limits::db_count)) == ErrorCode::db_out_of_range);
  CHECK(code_of(f.engine->swap_db(limits::db_count, 0)) == ErrorCode::db_out_of_range);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("engine: several engines in one process share nothing, whatever their order",
          "[engine]") {
  std::vector<std::unique_ptr<EngineFixture>> engines;
  for (int i = 0; i < 5; ++i) engines.push_back(std::make_unique<EngineFixture>());
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < engines.size(); ++i) {
      REQUIRE(engines[i]->put("k" + std::to_string(round), std::to_string(i)));
    }
  }
  engines.erase(engines.begin() + 2);
  engines.push_back(std::make_unique<EngineFixture>());
  CHECK(engines.back()->read("k0") == "<none>");
  engines.erase(engines.begin());
  CHECK(engines[0]->read("k49") == "1");
  CHECK(engines[1]->read("k49") == "3");
  CHECK(engines[1]->engine->size(0) == 50);
}

TEST_CASE("engine: a thread may end before the engine or after it", "[engine][race]") {
  std::mutex mutex;
  std::condition_variable changed;
  bool used = false;
  bool gone = false;
  auto first = std::make_unique<EngineFixture>();
  EngineFixture second;
  std::thread long_lived{[&] {
    bool good = first->put("from", "thread") && second.put("from", "thread");
    std::unique_lock lock{mutex};
    used = good;
    changed.notify_all();
    changed.wait(lock, [&] { return gone; });
    // The first engine is gone; this thread uses the second and then ends.
    static_cast<void>(second.put("after", "all"));
  }};
  {
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return used; });
  }
  for (int i = 0; i < 20; ++i) {
    std::thread{[&] { static_cast<void>(first->put("t" + std::to_string(i), "v")); }}.join();
  }
  CHECK(first->engine->size(0) == 21);
  CHECK(broken_rules(*first->engine) == "");
  first.reset();
  {
    const std::lock_guard lock{mutex};
    gone = true;
  }
  changed.notify_all();
  long_lived.join();
  CHECK(second.engine->size(0) == 2);
  EngineFixture third;  // the dead context of the first engine belongs to no engine
  CHECK(third.put("k", "v"));
}

TEST_CASE("engine: statistics add up", "[engine][stats]") {
  EngineFixture f{{.shard_count = 1}};  // small, so that it has to grow
  CHECK(f.engine->stats().records == 0);
  CHECK(f.engine->stats().wheel_lag == 0ms);
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(f.put("key" + std::to_string(i), "12345678",
                  i % 2 == 0 ? Expiry::in(1000ms) : Expiry::clear()));
  }
  for (int i = 0; i < 100; ++i) static_cast<void>(f.read("key" + std::to_string(i)));
  for (int i = 0; i < 50; ++i) static_cast<void>(f.read("absent" + std::to_string(i)));
  Stats stats = f.engine->stats();
  CHECK(stats.records == 5000);
  CHECK(stats.records_with_ttl == 2500);
  CHECK(stats.operations == 5150);
  CHECK(stats.hits == 100);
  CHECK(stats.misses == 5050);
  CHECK(stats.slots > stats.records);
  CHECK(stats.growth_steps > 0);
  CHECK(stats.bytes_records >= 5000 * 32);
  CHECK(stats.bytes_records <= 5000 * 64);
  CHECK(stats.bytes_used >= stats.bytes_table);
  CHECK(stats.bytes_used <= stats.bytes_limit);
  CHECK(stats.bytes_limit == limits::memory_bytes_default);
  CHECK(stats.expired == 0);
  f.pass(400ms);
  stats = f.engine->stats();
  CHECK(stats.wheel_items == 2500);
  CHECK(stats.bytes_wheel > 0);
  f.clock.advance(700ms);
  CHECK(f.engine->stats().wheel_lag == 700ms);
  f.pass(0ms);
  stats = f.engine->stats();
  CHECK(stats.expired == 2500);
  CHECK(stats.records == 2500);
  CHECK(stats.records_with_ttl == 0);
  CHECK(stats.wheel_items == 0);
  CHECK(stats.wheel_lag == 0ms);
}

TEST_CASE("engine: statistics read while others write are never absurd", "[engine][stats][race]") {
  EngineFixture f;
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      // What one writer adds the other takes away.
      for (int i = 0; i < 20'000; ++i) {
        if ((i + t) % 2 == 0) {
          static_cast<void>(f.put(std::to_string(i % 64), "v", Expiry::in(1000ms)));
        } else {
          static_cast<void>(f.store().del(std::to_string(i % 64)));
        }
      }
      stop.store(true, std::memory_order_release);
    });
  }
  bool sane = true;
  while (!stop.load(std::memory_order_acquire)) {
    const Stats stats = f.engine->stats();
    sane = sane && stats.records <= 1000 && stats.records_with_ttl <= 1000 &&
           stats.bytes_records <= 100'000 && f.engine->size(0) <= 1000;
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(sane);
  CHECK(broken_rules(*f.engine) == "");
}

}  // namespace semel::tests
