// Large objects among other records: what shares their nodes, what sees them whole, and that all of
// their memory comes back.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/object_api/whole_record.hpp"
#include "engine/types/sorted_set.hpp"
#include "semel/engine_host.hpp"
#include "semel/limits.hpp"
#include "tests/engine/engine_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;
using engine::change_object;
using engine::Element;
using engine::ObjectChange;
using engine::ObjectEdit;
using engine::ObjectReader;
using engine::read_object;

namespace {

constexpr int many = 5'000;

std::string number(int i) {
  std::string text = std::to_string(i);
  return std::string(8 - text.size(), '0') + text;
}

Result<ObjectChange> push(Engine& engine, Bytes key, int from, int to) {
  return change_object(engine, {0, key}, Kind::list, [&](ObjectEdit& list) {
    for (int i = from; i < to; ++i) list.insert_at(list.size(), number(i));
    return ErrorCode::ok;
  });
}
Result<ObjectChange> pop(Engine& engine, Bytes key, std::size_t count) {
  return change_object(engine, {0, key}, Kind::list, [&](ObjectEdit& list) {
    list.erase_range(0, std::min(count, list.size()));
    return ErrorCode::ok;
  });
}
Result<ObjectChange> add(Engine& engine, Bytes key, int from, int to) {
  return change_object(engine, {0, key}, Kind::sorted_set, [&](ObjectEdit& set) {
    for (int i = from; i < to; ++i) engine::add_member(set, i % 100, number(i), {});
    return ErrorCode::ok;
  });
}
std::size_t size_of(Engine& engine, Bytes key, Kind kind) {
  std::size_t size = 0;
  REQUIRE(read_object(engine, {0, key}, kind,
                      [&](const ObjectReader& object) { size = object.size(); }));
  return size;
}
/// Of a list: all values, one behind the other.
std::string text_of(Engine& engine, Bytes key) {
  std::string text;
  REQUIRE(read_object(engine, {0, key}, Kind::list, [&](const ObjectReader& list) {
    list.each(0, list.size(),
              [&](const Element& element) { return text.append(element.value), true; });
  }));
  return text;
}
std::string numbers(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text.append(number(i));
  return text;
}
/// What records and nodes take, when nothing waits any more.
std::uint64_t held_bytes(Engine& engine) {
  engine.host().quiesce();
  CHECK(broken_rules(engine).empty());
  return engine.stats().bytes_records;
}

}  // namespace

TEST_CASE("large objects: a change of few elements, and all memory comes back",
          "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "l", 0, many).ok());
  REQUIRE(add(engine, "z", 0, many).ok());
  const std::uint64_t full = held_bytes(engine);
  CHECK(full > std::uint64_t{many} * 8 * 2);
  for (int i = 0; i < 300; ++i) {
    REQUIRE(push(engine, "l", many + i, many + i + 1).ok());
    REQUIRE(pop(engine, "l", 1).ok());
    REQUIRE(add(engine, "z", i * 7, i * 7 + 3).ok());  // there already
  }
  CHECK(text_of(engine, "l") == numbers(300, many + 300));
  CHECK(size_of(engine, "z", Kind::sorted_set) == many);
  CHECK(held_bytes(engine) < full + full / 4);
  REQUIRE(pop(engine, "l", many - 10).ok());
  CHECK(text_of(engine, "l") == numbers(many + 290, many + 300));
  REQUIRE(bench.store().del("z").value());
  REQUIRE(bench.store().del("l").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: scattered changes leave little behind, and a removal nothing",
          "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  std::mt19937 chance{Catch::rngSeed()};
  std::vector<int> numbers(30'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), chance);
  // Nothing but these calls gives memory back: no upkeep, and no other call of this thread.
  for (std::size_t first = 0; first < numbers.size(); first += 500) {
    REQUIRE(change_object(engine, {0, "k"}, Kind::sorted_set, [&](ObjectEdit& set) {
              for (std::size_t i = first; i < first + 500; ++i) {
                engine::add_member(set, numbers[i] % 100, number(numbers[i]), {});
              }
              return ErrorCode::ok;
            }).ok());
  }
  const std::uint64_t with_garbage = engine.stats().bytes_records;
  const std::uint64_t without = held_bytes(engine);
  INFO("seed " << Catch::rngSeed());
  CHECK(with_garbage < without * 2);
  REQUIRE(bench.store().del("k").value());
  CHECK(engine.stats().bytes_records < without / 2);  // a release frees a part at once
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: journal, snapshot and whole records have their elements",
          "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "l", 0, many).ok());
  REQUIRE(push(engine, "l", many, many + 1).ok());
  REQUIRE(add(engine, "z", 0, many).ok());
  REQUIRE(bench.store().expire("z", Expiry::in(1h)).value());
  const auto check = [&](Engine& other) {
    CHECK(contents_of(other) == contents_of(engine));
    CHECK(text_of(other, "l") == numbers(0, many + 1));
    CHECK(size_of(other, "z", Kind::sorted_set) == many);
    // And it goes on.
    REQUIRE(push(other, "l", many + 1, many + 2).ok());
    CHECK(text_of(other, "l") == numbers(0, many + 2));
    REQUIRE(other.store().del("l").value());
    REQUIRE(other.store().del("z").value());
    CHECK(held_bytes(other) == 0);
  };
  const auto again = open_engine({.clock = &bench.clock});
  bench.journal.replay(
      [&](Ticket, const Mutation& mutation) { CHECK(again->host().restore(mutation)); });
  check(*again);
  const auto third = open_engine({.clock = &bench.clock});
  REQUIRE(engine.host().snapshot([&](const Mutation& put) { CHECK(third->host().restore(put)); }));
  check(*third);
  const auto fourth = open_engine({.clock = &bench.clock});
  const auto whole = engine::read_whole(engine, {0, "l"});
  REQUIRE((whole.ok() && whole.value()));
  REQUIRE(engine::replace_whole(*fourth, {0, "l"}, *whole.value()));
  CHECK(text_of(*fourth, "l") == numbers(0, many + 1));
}

TEST_CASE("large objects: bytes of the name of one are not restored", "[engine][objects]") {
  EngineFixture bench;
  REQUIRE(push(*bench.engine, "l", 0, many).ok());
  std::string forged(16, '\0');
  forged[0] = 0x20;
  for (const Kind kind : {Kind::list, Kind::set, Kind::sorted_set, Kind::stream}) {
    Mutation put;
    put.kind = kind;
    put.version = 5'000;
    put.key = "k";
    put.value = forged;
    CHECK_FALSE(bench.engine->host().restore(put));
    CHECK_FALSE(engine::replace_whole(*bench.engine, {0, "k"}, {.kind = kind, .value = forged}));
  }
  CHECK_FALSE(bench.store().exists("k").value());
}

TEST_CASE("large objects: a ttl, a copy and another name share the nodes", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "a", 0, many).ok());
  const std::uint64_t one = held_bytes(engine);
  REQUIRE(bench.store().expire("a", Expiry::in(1h)).value());
  REQUIRE(bench.store().copy("a", "b", std::nullopt, false).ok());
  REQUIRE(bench.store().rename("b", "c").ok());
  CHECK(held_bytes(engine) < one + 1'000);
  REQUIRE(push(engine, "a", many, many + 1).ok());
  CHECK(held_bytes(engine) < one + 10'000);
  REQUIRE(pop(engine, "c", 1).ok());  // a chain of its own from here on
  REQUIRE(push(engine, "c", many, many + 2).ok());
  CHECK(text_of(engine, "a") == numbers(0, many + 1));
  CHECK(text_of(engine, "c") == numbers(1, many + 2));
  CHECK(bench.store().ttl("c")->has_ttl);
  bench.pass(2h);
  CHECK_FALSE(bench.store().exists("a").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: in memory alone they have no limit of a record", "[engine][objects]") {
  const std::string element(1'000, 'e');
  const auto grow = [&](Engine& engine) {
    return change_object(engine, {0, "k"}, Kind::list, [&](ObjectEdit& list) {
      for (int i = 0; i < 1'000; ++i) list.insert_at(list.size(), element);
      return ErrorCode::ok;
    });
  };
  ManualClock clock;
  Options options{.clock = &clock, .value_bytes_max = 2'000'000};
  const auto plain = Engine::open(options);
  REQUIRE(plain);
  for (int i = 0; i < 5; ++i) REQUIRE(grow(**plain));
  CHECK(size_of(**plain, "k", Kind::list) == 5'000);
  REQUIRE(pop(**plain, "k", 4'999));
  CHECK(text_of(**plain, "k") == element);

  MemoryJournal journal;
  options.journal = &journal;
  const auto logged = Engine::open(options);
  REQUIRE(logged);
  REQUIRE(grow(**logged));
  const auto refused = grow(**logged);
  CHECK(refused.error().code == ErrorCode::value_too_long);
  CHECK(refused.error().detail.find("limit 2000000") != std::string::npos);
  CHECK(size_of(**logged, "k", Kind::list) == 1'000);
}

TEST_CASE("large objects: a snapshot reads them as they were at its cut", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  for (const Bytes key : {"a", "b", "c"}) REQUIRE(push(engine, key, 0, many).ok());
  const auto other = open_engine({.clock = &bench.clock});
  int seen = 0;
  REQUIRE(engine.host().snapshot([&](const Mutation& put) {
    CHECK(other->host().restore(put));
    if (put.type != Mutation::Type::put || put.kind != Kind::list || ++seen > 1) return;
    for (int i = 0; i < 200; ++i) {
      for (const Bytes key : {"a", "b"}) {
        REQUIRE(push(engine, key, many + i, many + i + 1).ok());
        REQUIRE(pop(engine, key, 1).ok());
      }
    }
    REQUIRE(bench.store().del("b").value());
    REQUIRE(bench.store().del("c").value());
  }));
  for (const Bytes key : {"a", "b", "c"}) CHECK(text_of(*other, key) == numbers(0, many));
  CHECK(text_of(engine, "a") == numbers(200, many + 200));
  REQUIRE(bench.store().del("a").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: a section and a flush", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "a", 0, many).ok());
  {
    auto section = engine.section({});
    REQUIRE(section);
    REQUIRE(pop(engine, "a", 1).ok());
    REQUIRE(push(engine, "b", 0, many).ok());
    REQUIRE(push(engine, "b", many, many + 1).ok());
    REQUIRE(section->commit());
  }
  const auto again = open_engine({.clock = &bench.clock});
  bench.journal.replay(
      [&](Ticket, const Mutation& mutation) { CHECK(again->host().restore(mutation)); });
  CHECK(text_of(*again, "a") == numbers(1, many));
  CHECK(text_of(*again, "b") == numbers(0, many + 1));
  REQUIRE(engine.flush(0).ok());
  bench.pass(1s);
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: a full memory refuses what grows and takes what shrinks",
          "[engine][objects]") {
  ManualClock clock;
  const auto opened = open_engine({.clock = &clock,
                                   .memory_bytes = std::size_t{16} << 20,
                                   .value_bytes_max = limits::value_bytes_max});
  Engine& engine = *opened;
  constexpr int step = 1'000;
  int count = 0;
  ErrorCode error = ErrorCode::ok;
  for (; error == ErrorCode::ok; count += step) {
    error = code_of(push(engine, "l", count, count + step));
  }
  CHECK(error == ErrorCode::memory_full);
  count -= step;
  CHECK(count > 100'000);
  CHECK(size_of(engine, "l", Kind::list) == static_cast<std::size_t>(count));
  for (int i = 0; i < 100; ++i) REQUIRE(pop(engine, "l", 1).ok());
  REQUIRE(engine.store().expire("l", Expiry::in(1h)).value());
  CHECK(text_of(engine, "l") == numbers(100, count));
  REQUIRE(engine.store().del("l").value());
  // The nodes of the old list are freed for this one as it grows.
  for (int i = 0; i < count / 2; i += step) REQUIRE(push(engine, "l", i, i + step).ok());
  REQUIRE(engine.store().del("l").value());
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: compaction moves their records", "[engine][objects]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  for (int i = 0; i < 20'000; ++i)
    REQUIRE(bench.put("s" + std::to_string(i), std::string(20, 'v')));
  for (int i = 0; i < 50; ++i) REQUIRE(push(engine, "list" + number(i), 0, 500).ok());
  for (int i = 0; i < 20'000; ++i) {
    if (i % 16 != 0) REQUIRE(bench.store().del("s" + std::to_string(i)).value());
  }
  engine.host().quiesce();
  static_cast<void>(engine.host().compact());
  for (int i = 0; i < 50; ++i) CHECK(text_of(engine, "list" + number(i)) == numbers(0, 500));
  for (int i = 0; i < 50; ++i) REQUIRE(pop(engine, "list" + number(i), 500).ok());
  for (int i = 0; i < 20'000; i += 16) REQUIRE(bench.store().del("s" + std::to_string(i)).value());
  bench.pass(2s);  // a key that lay far from its home has left a delete marker for a second
  CHECK(held_bytes(engine) == 0);
}

TEST_CASE("large objects: readers see one version each, and writers lose no change",
          "[engine][objects][race]") {
  EngineFixture bench;
  Engine& engine = *bench.engine;
  REQUIRE(push(engine, "l", 0, 1'000).ok());
  REQUIRE(add(engine, "z", 0, 1'000).ok());
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  const auto read = [&] {
    while (!ends.load(std::memory_order_relaxed)) {
      const auto one = read_object(engine, {0, "l"}, Kind::list, [&](const ObjectReader& list) {
        // Each change moves one element from the front to the end.
        if (list.size() != 1'000) wrong.fetch_add(1, std::memory_order_relaxed);
        std::size_t seen = 0;
        list.each(0, list.size(), [&](const Element& element) {
          if (element.value.size() != 8) wrong.fetch_add(1, std::memory_order_relaxed);
          return ++seen != 0;
        });
        if (seen != 1'000) wrong.fetch_add(1, std::memory_order_relaxed);
      });
      const auto of_set =
          read_object(engine, {0, "z"}, Kind::sorted_set, [&](const ObjectReader& set) {
            for (int i = 0; i < 1'000; i += 100) {
              if (!engine::score_in(set, number(i))) wrong.fetch_add(1, std::memory_order_relaxed);
            }
          });
      if (!one || !of_set) wrong.fetch_add(1, std::memory_order_relaxed);
    }
  };
  const auto write = [&] {
    for (int i = 0; i < 400; ++i) {
      const auto moved = change_object(engine, {0, "l"}, Kind::list, [&](ObjectEdit& list) {
        const std::string first{list.at(0).value};
        list.erase_at(0);
        list.insert_at(list.size(), first);
        return ErrorCode::ok;
      });
      const auto scored = change_object(engine, {0, "z"}, Kind::sorted_set, [&](ObjectEdit& set) {
        engine::add_member(set, 1, number(i * 7 % 1'000), {.adds = true});
        return ErrorCode::ok;
      });
      if (!moved.ok() || !scored.ok()) wrong.fetch_add(1, std::memory_order_relaxed);
      if (i % 50 == 0 && !bench.store().expire("l", Expiry::in(1h)).value())
        wrong.fetch_add(1, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(read);
  threads.emplace_back(read);
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) writers.emplace_back(write);
  for (std::thread& each : writers) each.join();
  ends.store(true, std::memory_order_relaxed);
  for (std::thread& each : threads) each.join();
  CHECK(wrong.load(std::memory_order_relaxed) == 0);
  double sum = 0;
  REQUIRE(read_object(engine, {0, "z"}, Kind::sorted_set, [&](const ObjectReader& set) {
    set.each(0, set.size(),
             [&](const Element& element) { return sum += engine::score_of(element.key), true; });
  }));
  CHECK(sum == 99.0 * 50 * 10 + 3 * 400);  // no addition was lost
  REQUIRE(bench.store().del("l").value());
  REQUIRE(bench.store().del("z").value());
  CHECK(held_bytes(engine) == 0);
}

namespace {

/// Keeps the trail of each change whose base it has, and knows the least of each mutation.
class TrailJournal final : public Journal {
 public:
  struct Seen {
    Version version;
    Version base;
    std::size_t value_bytes;
    std::size_t trail_bytes;
  };
  [[nodiscard]] Ticket append(std::span<const Mutation> group) override {
    for (const Mutation& each : group) {
      seen.push_back({each.version, each.base, each.value.size(), each.trail.size()});
    }
    return seen.size();
  }
  [[nodiscard]] bool keeps_trail(const Mutation& delta) const noexcept override {
    return keeps && !seen.empty() && seen.back().version == delta.base;
  }
  [[nodiscard]] Status wait(Ticket, Durability) override { return Done{}; }
  [[nodiscard]] Ticket newest() const override { return seen.size(); }

  std::vector<Seen> seen;
  bool keeps = true;
};

}  // namespace

TEST_CASE("large objects: a journal that keeps trails is not given the whole object") {
  TrailJournal journal;
  auto engine = Engine::open({.journal = &journal, .memory_bytes = std::size_t{64} << 20}).value();
  REQUIRE(push(*engine, "list", 0, many));
  CHECK(journal.seen.back().value_bytes > std::size_t{many} * 8);

  REQUIRE(push(*engine, "list", many, many + 1));
  CHECK(journal.seen.back().value_bytes == 0);
  CHECK(journal.seen.back().base == journal.seen[journal.seen.size() - 2].version);
  CHECK(journal.seen.back().trail_bytes < 24);
  REQUIRE(pop(*engine, "list", 1));
  CHECK(journal.seen.back().value_bytes == 0);

  journal.keeps = false;
  REQUIRE(push(*engine, "list", many + 1, many + 2));
  CHECK(journal.seen.back().value_bytes > std::size_t{many} * 8);
  CHECK(journal.seen.back().trail_bytes != 0);

  journal.keeps = true;
  REQUIRE(pop(*engine, "list", many / 2));  // a trail that names a range
  CHECK(journal.seen.back().value_bytes == 0);
  // A copy, another end and the last element are no changes of the record that was there.
  Store store = engine->store();
  REQUIRE(store.expire("list", Expiry::in(1h)).value());
  CHECK(journal.seen.back().value_bytes != 0);
  CHECK(journal.seen.back().trail_bytes == 0);
  REQUIRE(pop(*engine, "list", many));
  CHECK(journal.seen.back().value_bytes == 0);
  CHECK(journal.seen.back().trail_bytes == 0);
  CHECK(size_of(*engine, "list", Kind::list) == 0);
}

}  // namespace semel::tests
