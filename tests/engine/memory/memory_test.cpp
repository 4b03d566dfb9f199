// The memory limit: it holds, nothing live is lost at it, and what has ended serves again.
// Words: full = a new record was refused; kept = every record that was accepted still answers.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "engine/api/engine_impl.hpp"
#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/sanitized.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::string key_of(std::size_t i) {
  return "key" + std::to_string(i);
}

/// Puts records until one is refused; returns how many were accepted.
std::size_t fill(EngineFixture& f, Bytes value, Expiry expiry = Expiry::clear(),
                 std::size_t first = 0) {
  std::size_t count = 0;
  for (;; ++count) {
    const auto result = f.store().set(key_of(first + count), value, {.expiry = expiry});
    if (result.has_value()) continue;
    REQUIRE(result.error().code == ErrorCode::memory_full);
    return count;
  }
}

void require_kept(EngineFixture& f, Bytes value, std::size_t count, std::size_t first = 0) {
  for (std::size_t i = first; i < first + count; ++i) REQUIRE(f.read(key_of(i)) == value);
}

std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("memory: a full engine refuses new records, counts it, and keeps all it has",
          "[engine][memory]") {
  for (const std::size_t value_bytes : {0U, 40U, 1000U, 30'000U, 200'000U}) {
    EngineFixture f{{.memory_bytes = 12 * mib, .shard_count = 4}};
    const std::string value(value_bytes, 'v');
    const std::size_t count = fill(f, value);
    INFO(value_bytes << " bytes: " << count);
    CHECK(count * (value_bytes + 24) > 4 * mib);  // the limit is not reached for nothing
    CHECK(f.engine->stats().bytes_used <= 12 * mib);
    CHECK(f.engine->stats().refused >= 1);
    CHECK(f.engine->size(0) == count);
    require_kept(f, value, count);
    CHECK(broken_rules(*f.engine) == "");
  }
}

TEST_CASE("memory: the limit holds while records come and go at it", "[engine][memory]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  std::map<std::string, std::string> model;
  std::size_t refused = 0;
  for (int i = 0; i < 60'000; ++i) {
    const std::string key = key_of(random() % 60'000);
    if (random() % 4 == 0) {
      REQUIRE(*f.store().del(key) == (model.erase(key) == 1));
    } else {
      const std::size_t size = random() % 100 == 0 ? random() % 100'000 : random() % 300;
      const std::string value(size, static_cast<char>('a' + random() % 26));
      const auto result = f.store().set(key, value);
      if (result.ok()) {
        model[key] = value;
      } else {
        ++refused;
        REQUIRE(result.error().code == ErrorCode::memory_full);
      }
    }
    if (i % 500 == 0) REQUIRE(f.engine->stats().bytes_used <= 8 * mib);
  }
  CHECK(refused > 0);
  for (const auto& [key, value] : model) REQUIRE(f.read(key) == value);
  CHECK(f.engine->size(0) == model.size());
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: the limit holds when every other small record goes", "[engine][memory]") {
  EngineFixture f{{.memory_bytes = 16 * mib}};
  const std::size_t count = fill(f, "");
  for (std::size_t i = 0; i < count; i += 2) REQUIRE(*f.store().del(key_of(i)));
  f.engine->host().quiesce();
  CHECK(f.engine->stats().bytes_used <= 16 * mib);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: the process grows with what is used, not with the limit", "[engine][memory]") {
  const std::size_t before = resident_bytes();
  const ManualClock clock;
  // Without a journal: one in memory would grow by each value, too.
  const auto engine = open_engine({.clock = &clock, .memory_bytes = std::size_t{64} << 30});
  Store store = engine->store();
  for (std::size_t i = 0; i < 1000; ++i) REQUIRE(store.set(key_of(i), "v").has_value());
  const std::size_t small = resident_bytes();
  CHECK((is_sanitized || is_emulated || small < before + 24 * mib));
  const std::string value(1000, 'v');
  for (std::size_t i = 0; i < 40'000; ++i) REQUIRE(store.set(key_of(i), value).has_value());
  const std::size_t used = engine->stats().bytes_used;
  CHECK(used > 40 * mib);
  CHECK(used < 64 * mib);
  CHECK((is_sanitized || is_emulated || resident_bytes() < small + used + 16 * mib));
}

TEST_CASE("memory: what has ended makes room for records of the same size", "[engine][memory]") {
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  const std::string value(100, 'v');
  const std::size_t first = fill(f, value, Expiry::in(10ms));
  for (int round = 0; round < 5; ++round) {
    f.pass(10ms);
    CHECK(f.engine->stats().records == 0);
    const std::size_t again = fill(f, value, Expiry::in(10ms));
    CHECK(again * 10 >= first * 9);
  }
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: what has ended makes room for records of other sizes", "[engine][memory]") {
  // The table and the wheel do not shrink; of what they leave, most must serve every size.
  const std::vector<std::size_t> sizes{30, 2000, 100, 30'000, 400, 300'000, 60, 1'000'000};
  EngineFixture f{{.memory_bytes = 16 * mib, .shard_count = 2}};
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t size : sizes) {
      const std::string value(size, 'v');
      const std::size_t count = fill(f, value, Expiry::in(10ms));
      const Stats stats = f.engine->stats();
      const std::size_t room = 16 * mib - stats.bytes_table - stats.bytes_wheel - 8 * 64 * 1024;
      INFO(round << ": " << count << " of " << size << " bytes, room " << room);
      CHECK(stats.bytes_records + size >= room * 7 / 10);
      f.pass(10ms);
      CHECK(f.engine->stats().records == 0);
    }
  }
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: one large value after another fits where one fits", "[engine][memory]") {
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 1}};
  const std::string value(mib, 'v');
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    REQUIRE(f.put("k", value));
    REQUIRE(*f.store().del("k"));
  }
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    REQUIRE(f.put("k", value, Expiry::in(1ms)));
    f.pass(1ms);
  }
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    REQUIRE(f.put("k", value));  // replaced
  }
}

TEST_CASE("memory: at the limit what lives can be overwritten, counted up and deleted",
          "[engine][memory]") {
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  const std::string value(300, 'v');
  const std::string other(300, 'w');
  REQUIRE(f.put("n", "0"));
  const std::size_t count = fill(f, value);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      INFO(round << " " << i);
      REQUIRE(f.put(key_of(i), round % 2 == 0 ? other : value));
      REQUIRE(f.store().incr_by("n", 1).has_value());
    }
  }
  require_kept(f, other, count);
  CHECK(f.read("n") == std::to_string(count * 3));
  for (std::size_t i = 0; i < count; i += 2) REQUIRE(*f.store().del(key_of(i)));
  CHECK(f.put("new", value));
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: at the limit claims answer busy, and those that were granted can end",
          "[engine][memory][claims]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  Claims ns = f.claims("ns");
  Claims open = f.claims("open", {.fail_open = true});
  std::vector<Epoch> epochs;
  for (;;) {
    const ClaimOutcome outcome = ns.claim({.key = key_of(epochs.size())});
    if (outcome.answer != ClaimAnswer::granted) {
      CHECK(outcome.answer == ClaimAnswer::busy);
      CHECK(outcome.error == ErrorCode::memory_full);
      break;
    }
    epochs.push_back(outcome.epoch);
  }
  CHECK(open.claim({.key = "more"}).answer == ClaimAnswer::unprotected);
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    REQUIRE(ns.claim({.key = key_of(i)}).answer == ClaimAnswer::in_flight);
  }
  std::vector<std::size_t> order(epochs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    const std::string key = key_of(i);
    const OwnerCall named{.key = key, .epoch = epochs[i], .payload = {}};
    if (i % 5 == 0) {
      REQUIRE(ns.release(named).answer == OwnerAnswer::ok);
    } else if (i % 5 == 1) {
      REQUIRE(ns.renew(named).answer == OwnerAnswer::ok);
    } else {
      REQUIRE(ns.complete(named).answer == OwnerAnswer::ok);
    }
  }
  // Each call left a timer that no record needs any more.
  CHECK(f.engine->stats().bytes_used <= f.engine->stats().bytes_limit);
  CHECK(ns.claim({.key = "new"}).answer == ClaimAnswer::granted);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: refused at any point, an operation changes nothing and nothing is lost",
          "[engine][memory]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  // Each limit is a span more than the last, so that the refusal strikes elsewhere: at a record, a
  // piece of the table, a large value, the wheel.
  for (unsigned extra = 0; extra < 24; ++extra) {
    const std::size_t limit = limits::memory_bytes_min + extra * engine::Region::span_bytes;
    EngineFixture f{{.memory_bytes = limit, .shard_count = 1U << (extra % 3)}};
    std::map<std::string, std::string> model;
    int refused = 0;
    for (std::size_t i = 0; refused < 40; ++i) {
      const std::string key = key_of(random() % 40'000);
      const std::size_t kind = random() % 100;
      const std::size_t size = kind < 2    ? 40'000 + random() % 300'000
                               : kind < 20 ? random() % 4000
                                           : random() % 60;
      const std::string value(size, static_cast<char>('a' + i % 26));
      const Expiry expiry =
          i % 2 == 0 ? Expiry::in(Millis{random() % 100'000'000 + 1000}) : Expiry::clear();
      const auto result = f.store().set(key, value, {.expiry = expiry});
      if (result.ok()) {
        model[key] = value;
        continue;
      }
      REQUIRE(result.error().code == ErrorCode::memory_full);
      const auto old = model.find(key);
      REQUIRE(f.read(key) == (old == model.end() ? "<none>" : old->second));
      if (refused++ % 13 == 0) REQUIRE(broken_rules(*f.engine) == "");
      if (refused % 10 == 0) REQUIRE(f.engine->advance() > 0);  // the wheel takes its timers
    }
    for (const auto& [key, value] : model) REQUIRE(f.read(key) == value);
    REQUIRE(f.engine->size(0) == model.size());
    REQUIRE(broken_rules(*f.engine) == "");
  }
}

TEST_CASE("memory: several keys at once are refused as a whole", "[engine][memory][section]") {
  EngineFixture f{{.memory_bytes = 8 * mib}};
  const std::string value(1000, 'v');
  const std::size_t count = fill(f, value);
  const std::size_t mutations = f.journal.size();
  std::vector<KeyValue> many;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < 2000; ++i) names.push_back("many" + std::to_string(i));
  for (const std::string& name : names) many.push_back({name, value});
  CHECK(code_of(f.store().mset(many)) == ErrorCode::memory_full);
  CHECK(f.journal.size() == mutations);
  CHECK(f.engine->size(0) == count);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("memory: several keys of all sizes at the limit are written together or not at all",
          "[engine][memory][section]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 6; ++round) {
    EngineFixture f{{.memory_bytes = (4 + 2 * static_cast<std::size_t>(round)) * mib,
                     .shard_count = 1U << (round % 3)}};
    const std::string value(500, 'v');
    const std::size_t count = fill(f, value);
    int refused = 0;
    int written = 0;
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(*f.store().del(key_of(i)));  // a little more room each time
      if (i % 50 != 0) continue;
      std::vector<std::string> texts;
      std::vector<KeyValue> pairs;
      for (std::size_t n = 0; n < 30; ++n) {
        texts.push_back("many" + std::to_string(n));
        texts.emplace_back(random() % (64U << (random() % 9)), static_cast<char>('a' + i % 26));
      }
      for (std::size_t n = 0; n < 60; n += 2) pairs.push_back({texts[n], texts[n + 1]});
      std::vector<std::string> before;
      for (const KeyValue& pair : pairs) before.push_back(f.read(pair.key));
      const Status status = f.store().mset(pairs);
      if (status) {
        ++written;
        for (const KeyValue& pair : pairs) REQUIRE(f.read(pair.key) == pair.value);
        continue;
      }
      ++refused;
      REQUIRE(status.error().code == ErrorCode::memory_full);
      for (std::size_t n = 0; n < pairs.size(); ++n) REQUIRE(f.read(pairs[n].key) == before[n]);
    }
    CHECK(written > 0);
    INFO("refused " << refused << ", written " << written);
    CHECK(broken_rules(*f.engine) == "");
  }
}

TEST_CASE("memory: threads at the limit lose nothing and stay within it",
          "[engine][memory][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.memory_bytes = 8 * mib, .shard_count = 2}};
  std::vector<std::map<std::string, std::string>> models(3);
  std::vector<int> refused(3, 0);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int i = 0; i < 12'000; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(random() % 9000);
        if (random() % 5 == 0) {
          static_cast<void>(f.store().del(key));
          models[t].erase(key);
        } else {
          const std::string value(random() % 900, static_cast<char>('a' + random() % 26));
          const auto result = f.store().set(key, value, {.expiry = Expiry::in(60'000ms)});
          if (result.ok()) {
            models[t][key] = value;
          } else {
            ++refused[t];
          }
        }
        if (f.engine->stats().bytes_used > 8 * mib) over.store(true, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(over.load(std::memory_order_acquire));
  CHECK(refused[0] + refused[1] + refused[2] > 0);
  std::size_t total = 0;
  for (const auto& model : models) {
    total += model.size();
    for (const auto& [key, value] : model) REQUIRE(f.read(key) == value);
  }
  CHECK(f.engine->size(0) == total);
  CHECK(broken_rules(*f.engine) == "");
}

}  // namespace semel::tests
