// Atomic sections: no thread sees the middle of one, and none waits for ever.
// Words: inside = between the section's beginning and its end; accounts = keys whose sum must stay.
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "engine/api/engine_impl.hpp"
#include "semel/engine_host.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

std::int64_t number_in(Section& section, Bytes key) {
  StoreOutcome outcome;
  section.apply({.verb = Verb::incr_by, .key = key, .amount = 0}, outcome);
  return outcome.number;  // asserts nothing: threads use it
}

void add_in(Section& section, Bytes key, std::int64_t amount) {
  StoreOutcome outcome;
  section.apply({.verb = Verb::incr_by, .key = key, .amount = amount}, outcome);
}

/// Groups of the journal: ticket -> how many mutations it holds.
std::map<Ticket, std::size_t> groups_of(const MemoryJournal& journal) {
  std::map<Ticket, std::size_t> groups;
  journal.replay([&](Ticket ticket, const Mutation&) { ++groups[ticket]; });
  return groups;
}

}  // namespace

TEST_CASE("section: operations inside see each other and leave the engine as one group",
          "[engine][section]") {
  EngineFixture f;
  REQUIRE(f.put("a", "1"));
  {
    const std::array keys{KeyRef{0, "a"}, KeyRef{0, "b"}, KeyRef{2, "c"}};
    auto section = f.engine->section(keys);
    REQUIRE(section.has_value());
    StoreOutcome outcome;
    section->apply({.verb = Verb::set, .key = "b", .value = "2"}, outcome);
    CHECK(outcome.applied);
    section->apply({.verb = Verb::append, .key = "b", .value = "3"}, outcome);
    section->apply({.verb = Verb::get, .key = "b"}, outcome);
    CHECK(outcome.value == "23");
    section->apply({.verb = Verb::del, .key = "a"}, outcome);
    section->apply({.verb = Verb::set, .db = 2, .key = "c", .value = "4"}, outcome);
    section->apply({.verb = Verb::get, .key = "a"}, outcome);
    CHECK_FALSE(outcome.found);
    CHECK(f.journal.size() == 1);  // nothing has left yet
  }
  CHECK(groups_of(f.journal) == std::map<Ticket, std::size_t>{{1, 1}, {2, 4}});
  CHECK(f.read("b") == "23");
  CHECK(f.read("c", 2) == "4");
  { auto nothing = f.engine->section({}); }
  CHECK(f.journal.newest() == 2);
  CHECK(f.engine->stats().sections >= 2);
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("section: covers the keys it was opened with, or everything", "[engine][section]") {
  EngineFixture f;
  {
    const std::array keys{KeyRef{0, "a"}, KeyRef{9, "b"}};
    auto section = f.engine->section(keys);
    CHECK(section->covers({0, "a"}));
    CHECK(section->covers({9, "b"}));
    CHECK_FALSE(section->covers({limits::db_count, "a"}));
    int others = 0;
    for (int i = 0; i < 200; ++i) others += section->covers({0, std::to_string(i)}) ? 0 : 1;
    CHECK(others > 100);  // at most two of sixteen shards are taken
  }
  auto all = f.engine->section({});
  for (int i = 0; i < 200; ++i) CHECK(all->covers({0, std::to_string(i)}));
}

TEST_CASE("section: keys of other shards can be used meanwhile", "[engine][section][race]") {
  EngineFixture f;
  const std::array keys{KeyRef{0, "a"}};
  auto section = f.engine->section(keys);
  std::string other = "0";
  while (section->covers({0, other})) other += "0";
  std::thread{[&] { static_cast<void>(f.put(other, "v")); }}.join();  // ends, so it did not wait
  StoreOutcome outcome;
  section->apply({.verb = Verb::set, .key = "a", .value = "v"}, outcome);
  CHECK(outcome.applied);
}

TEST_CASE("section: time stands still inside", "[engine][section]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v", Expiry::in(10ms)));
  {
    auto section = f.engine->section({});
    const Timestamp begin = section->now();
    CHECK(begin == f.clock.now());
    f.clock.advance(10ms);
    CHECK(section->now() == begin);
    StoreOutcome outcome;
    section->apply({.verb = Verb::get, .key = "k"}, outcome);
    CHECK(outcome.value == "v");
  }
  CHECK(f.read("k") == "<none>");
}

TEST_CASE("section: moves with its owner", "[engine][section]") {
  EngineFixture f;
  auto opened = f.engine->section({});
  {
    const Section moved{*std::move(opened)};
    CHECK(moved.covers({0, "k"}));
  }
  CHECK(f.put("k", "v"));  // would wait for ever if the section still held
}

TEST_CASE("section: section_keys_max keys are taken, one more is refused",
          "[engine][section][limits]") {
  EngineFixture f;
  const std::vector<KeyRef> keys(limits::section_keys_max + 1, KeyRef{0, "k"});
  CHECK(f.engine->section(std::span{keys}.first(limits::section_keys_max)).has_value());
  CHECK(code_of(f.engine->section(keys)) == ErrorCode::too_many_keys);
  const std::array wrong{KeyRef{0, "k"}, KeyRef{limits::db_count, "k"}};
  CHECK(code_of(f.engine->section(wrong)) == ErrorCode::db_out_of_range);
  CHECK(f.put("k", "v"));
}

TEST_CASE("section: a journal that takes no writes refuses inside as well", "[engine][section]") {
  EngineFixture f;
  REQUIRE(f.put("k", "v"));
  f.journal.set_accepts_writes(false);
  {
    auto section = f.engine->section({});
    StoreOutcome outcome;
    section->apply({.verb = Verb::set, .key = "k", .value = "w"}, outcome);
    CHECK(outcome.error == ErrorCode::refused);
    section->apply({.verb = Verb::get, .key = "k"}, outcome);
    CHECK(outcome.value == "v");
  }
  CHECK(code_of(f.engine->flush(std::nullopt)) == ErrorCode::refused);
  CHECK(f.read("k") == "v");
  CHECK(f.journal.size() == 1);
}

TEST_CASE("section: a flush beside readers that look at records without admission",
          "[engine][section][race]") {
  EngineFixture f;
  std::atomic<bool> ends{false};
  std::thread sweeper{[&] {
    while (!ends.load(std::memory_order_relaxed)) f.engine->advance();  // mo: relaxed: a stop sign
  }};
  for (int i = 0; i < 100; ++i) {
    // Some of the same moment that have ended early: those timers are looked at.
    for (int k = 0; k < 40; ++k) {
      const std::string key = std::to_string(k % 8);
      static_cast<void>(f.put(key, std::string(100, 'v'), Expiry::in(50ms)));
      if (k % 8 == 7) REQUIRE(f.engine->flush(0).ok());
    }
    f.clock.advance(1ms);
  }
  ends.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  sweeper.join();
  CHECK(f.engine->host().check_invariants().empty());
}

TEST_CASE("section: databases swapped by others never leave a key uncovered",
          "[engine][section][race]") {
  EngineFixture f;
  std::thread swapper{[&] {
    for (int i = 0; i < 2000; ++i) static_cast<void>(f.engine->swap_db(0, 1));
  }};
  bool covered = true;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = std::to_string(i);
    const std::array keys{KeyRef{0, key}};
    auto section = f.engine->section(keys);
    covered = covered && section->covers(keys[0]);
  }
  swapper.join();
  CHECK(covered);
}

TEST_CASE("section: money moved between accounts is never lost or seen on its way",
          "[engine][section][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f;
  const std::vector<std::string> accounts{"a", "b", "c", "d", "e"};
  for (const std::string& account : accounts) REQUIRE(f.put(account, "100"));
  std::atomic<int> wrong{0};
  std::atomic<int> running{3};
  const auto mover = [&](unsigned thread) {
    std::mt19937_64 random{seed + thread};
    for (int i = 0; i < 1500; ++i) {
      const std::string& from = accounts[random() % accounts.size()];
      const std::string& to = accounts[random() % accounts.size()];
      const std::array keys{KeyRef{0, from}, KeyRef{0, to}};
      auto section = f.engine->section(keys);
      const auto amount = static_cast<std::int64_t>(random() % 50);
      add_in(*section, from, -amount);
      add_in(*section, to, amount);
    }
    running.fetch_sub(1, std::memory_order_release);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) threads.emplace_back(mover, t);
  threads.emplace_back([&] {  // ordinary operations and growth beside
    std::mt19937_64 random{seed + 9};
    for (int i = 0; i < 20'000; ++i) {
      static_cast<void>(f.put("x" + std::to_string(random() % 10'000), "v", Expiry::in(5ms)));
    }
  });
  threads.emplace_back([&] {
    while (running.load(std::memory_order_acquire) != 0) {
      auto all = f.engine->section({});
      std::int64_t sum = 0;
      for (const std::string& account : accounts) sum += number_in(*all, account);
      if (sum != 500) wrong.fetch_add(1, std::memory_order_relaxed);
    }
  });
  while (running.load(std::memory_order_acquire) != 0) {
    f.pass(1ms);
    const std::vector<Bytes> keys(accounts.begin(), accounts.end());
    const auto seen = f.store().mget(keys);
    std::int64_t sum = 0;
    for (const auto& value : *seen) sum += std::stoll(*value);
    if (sum != 500) wrong.fetch_add(1, std::memory_order_relaxed);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong.load(std::memory_order_acquire) == 0);
  f.pass(100ms);
  CHECK(f.engine->size(0) == accounts.size());
  CHECK(broken_rules(*f.engine) == "");
}

TEST_CASE("section: increments inside and outside are all counted", "[engine][section][race]") {
  EngineFixture f;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        auto section = f.engine->section(std::array{KeyRef{0, "n"}, KeyRef{0, "m"}});
        add_in(*section, "m", -1);
        // No other thread may come between the read and the write.
        StoreOutcome outcome;
        section->apply({.verb = Verb::get, .key = "n"}, outcome);
        const std::int64_t next = outcome.found ? std::stoll(outcome.value) + 1 : 1;
        const std::string text = std::to_string(next);
        section->apply({.verb = Verb::set, .key = "n", .value = text}, outcome);
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) static_cast<void>(f.store().incr_by("n", 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(f.read("n") == "22000");
  CHECK(f.read("m") == "-2000");
}

TEST_CASE("section: increments are all counted while shards are watched and left again",
          "[engine][section][race]") {
  EngineFixture f;
  constexpr int bursts = 40;
  constexpr int burst = 50;  // sections; many enough to be watched for
  std::atomic<bool> done{false};
  const auto count_inside = [&] {
    for (int i = 0; i < bursts * burst; ++i) {
      auto section = f.engine->section(std::array{KeyRef{0, "n"}});
      StoreOutcome outcome;
      section->apply({.verb = Verb::get, .key = "n"}, outcome);
      const std::string text = std::to_string(outcome.found ? std::stoll(outcome.value) + 1 : 1);
      section->apply({.verb = Verb::set, .key = "n", .value = text}, outcome);
      // Twice as often as advance() looks: then the shard is one without sections.
      if (i % burst == 0) {
        for (int calls = 0; calls < 128; ++calls) static_cast<void>(f.engine->advance(1));
      }
    }
  };
  std::uint64_t outside = 0;
  std::thread counter{[&] {
    // mo: relaxed: only a sign to end.
    for (; !done.load(std::memory_order_relaxed); ++outside)
      static_cast<void>(f.store().incr_by("n", 1));
  }};
  std::thread other{count_inside};
  count_inside();
  other.join();
  done.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  counter.join();
  CHECK(f.read("n") == std::to_string(outside + 2 * bursts * burst));
}

TEST_CASE("section: time inside never lies before an earlier section's",
          "[engine][section][race]") {
  EngineFixture f;
  Timestamp last{};  // guarded by the sections themselves
  std::atomic<int> back{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        auto section = f.engine->section({});
        if (section->now() < last) back.fetch_add(1, std::memory_order_relaxed);
        f.clock.advance(1ms);
        last = f.clock.now();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(back.load(std::memory_order_acquire) == 0);
}

TEST_CASE("section: sections, expiry, snapshots, scans, sizes and subscribers never wait in a ring",
          "[engine][section][race]") {
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  EngineFixture f{{.shard_count = 4}};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random{seed + t};
      for (int i = 0; i < 400; ++i) {
        const std::string key = std::to_string(random() % 500);
        f.clock.advance(1ms);
        switch (random() % 9) {
          case 0: {
            auto all = f.engine->section({});
            add_in(*all, key, 1);
            break;
          }
          case 1: {
            auto some = f.engine->section(std::array{KeyRef{0, key}, KeyRef{1, key}});
            add_in(*some, key, 1);
            break;
          }
          case 2:
            static_cast<void>(f.engine->advance(100));
            break;
          case 3:
            static_cast<void>(f.engine->size(0));
            break;
          case 4:
            static_cast<void>(f.engine->host().snapshot([](const Mutation&) {}));
            break;
          case 5:
            static_cast<void>(
                f.engine->flush(1, random() % 2 == 0 ? FlushMode::async : FlushMode::sync));
            break;
          case 6:
            f.engine->unsubscribe_expired(f.engine->subscribe_expired([](const ExpiredEvent&) {}));
            break;
          case 7:
            f.engine->host().quiesce();
            break;
          default:
            for (int n = 0; n < 200; ++n) {
              static_cast<void>(f.put(std::to_string(random() % 5000), "1", Expiry::in(20ms)));
            }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  f.pass(100ms);
  CHECK(broken_rules(*f.engine) == "");
}

}  // namespace semel::tests
