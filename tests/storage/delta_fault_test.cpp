// Deltas whose base is damaged, missing, replaced or not there yet, and trails that are damaged.
#include <deque>
#include <random>
#include <vector>

#include "storage/start/pending_deltas.hpp"
#include "tests/storage/delta_fixture.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::tests::delta_storage {

TEST_CASE("deltas: changes in any order, twice, and after their base was replaced",
          "[storage][delta]") {
  // What a journal was given, as deltas where that is possible.
  class Recorder final : public Journal {
   public:
    [[nodiscard]] Ticket append(std::span<const Mutation> group) override {
      for (const Mutation& each : group) {
        kept_.push_back(
            {each, std::string{each.key}, std::string{each.value}, std::string{each.trail}});
        Kept& kept = kept_.back();
        kept.mutation.key = kept.key;
        kept.mutation.trail = kept.trail;
        kept.mutation.value = kept.trail.empty() ? Bytes{kept.value} : Bytes{};
      }
      return kept_.size();
    }
    [[nodiscard]] Status wait(Ticket, Durability) override { return Done{}; }
    [[nodiscard]] Ticket newest() const override { return kept_.size(); }

    struct Kept {
      Mutation mutation;
      std::string key;
      std::string value;
      std::string trail;
    };
    std::deque<Kept> kept_;
  };
  ManualClock clock;
  Recorder journal;
  auto writer = Engine::open({.clock = &clock, .journal = &journal});
  REQUIRE(writer);
  for (const Kind kind : object_kinds) {
    const std::string key{name_of(kind)};
    for (int chain = 0; chain < 3; ++chain) {
      fill(**writer, {0, key}, kind, 150);
      for (std::uint64_t i = 0; i < 20; ++i) change(**writer, {0, key}, kind, i * 3 + 7, 2);
      if (chain == 1) REQUIRE((*writer)->store().del(key).value());
    }
  }
  const Picture wanted = picture_of(**writer);
  std::size_t deltas = 0;
  for (const auto& kept : journal.kept_) deltas += is_delta(kept.mutation) ? 1 : 0;
  REQUIRE(deltas >= 200);
  const std::uint32_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  for (int round = 0; round < 10; ++round) {
    auto reader = Engine::open({.clock = &clock});
    REQUIRE(reader);
    storage::PendingDeltas pending;
    std::vector<const Recorder::Kept*> order;
    for (const auto& kept : journal.kept_) order.push_back(&kept);
    for (const auto& kept : journal.kept_) {
      if (random() % 4 == 0) order.push_back(&kept);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const Recorder::Kept* kept : order) {
      if (is_delta(kept->mutation)) {
        pending.note(kept->mutation);
      } else {
        REQUIRE((*reader)->host().restore(kept->mutation));
      }
      if (random() % 10 == 0) REQUIRE(pending.apply(**reader));
    }
    REQUIRE(pending.apply(**reader));
    CHECK(pending.describe_left().empty());
    check_same(picture_of(**reader), wanted);
  }
}

TEST_CASE("deltas: one without its base is damage, and a repair leaves it out",
          "[storage][delta][repair]") {
  const Directory directory;
  const std::string path = directory.of("s");
  ManualClock clock;
  Picture wanted;
  std::string lost;
  {
    Process process{path, clock};
    Engine& engine = *process.engine;
    fill(engine, {0, "other"}, Kind::set, 100);
    REQUIRE(process.storage->drain());  // not in the segment that will be damaged
    wanted = picture_of(engine);
    fill(engine, {0, "lost"}, Kind::list, 200);
    for (std::uint64_t i = 0; i < 5; ++i) change(engine, {0, "lost"}, Kind::list, i * 3 + 2, 1);
    REQUIRE(process.storage->drain());
    for (std::uint64_t i = 5; i < 9; ++i) change(engine, {0, "lost"}, Kind::list, i * 3 + 2, 1);
  }
  CHECK(count_stored(path, "lost").whole == 1);
  CHECK(count_stored(path, "lost").deltas == 9);
  CHECK(verify_storage(path).value().findings.empty());
  // The file that has the base, where it is.
  const auto info = inspect_storage(path, [&](const StoredMutation& found) {
    if (found.mutation.key == "lost" && !is_delta(found.mutation)) lost = found.file;
  });
  REQUIRE(info);
  REQUIRE(lost.ends_with(".sst"));
  flip(lost, 600);
  CHECK_FALSE(verify_storage(path).value().findings.empty());
  {
    Process process{path, clock};
    CHECK(process.recovered->error().code == ErrorCode::storage_damaged);
  }
  REQUIRE(repair_storage(path, true));
  CHECK(count_stored(path, "lost").deltas == 0);
  for (const StorageFinding& finding : verify_storage(path).value().findings) {
    FAIL_CHECK(finding.what);
  }
  check_start(path, clock, wanted);
}

TEST_CASE("deltas: a storage without the whole record is not opened, and says so",
          "[storage][delta]") {
  const Directory directory;
  const std::string path = directory.of("s");
  ManualClock clock;
  {
    Process process{path, clock};
    std::string bytes(50, 'x');
    Mutation delta{.kind = Kind::list, .version = 100, .key = "k", .value = {}, .claim = {}};
    delta.base = 90;
    delta.trail = bytes;
    REQUIRE(process.storage->append({&delta, 1}) != 0);
  }
  const auto check = verify_storage(path);
  REQUIRE(check->findings.size() == 1);
  CHECK(check->findings.front().what ==
        "1 objects have changes and not the record that was changed");
  {
    Process process{path, clock};
    REQUIRE_FALSE(process.recovered->ok());
    CHECK(process.recovered->error().code == ErrorCode::storage_damaged);
    CHECK(
        process.recovered->error().detail.ends_with("version 100 follows on 90, which is missing"));
    // What comes later than the delta makes it superfluous.
    Mutation erase{.type = Mutation::Type::erase,
                   .kind = Kind::list,
                   .version = 101,
                   .key = "k",
                   .value = {},
                   .claim = {}};
    REQUIRE(process.storage->append({&erase, 1}) != 0);
  }
  CHECK(verify_storage(path)->findings.empty());
  check_start(path, clock, {});
}

TEST_CASE("deltas: a backup between a record and its changes has both", "[storage][delta]") {
  const Directory directory;
  const std::string path = directory.of("s");
  ManualClock clock;
  Picture then;
  Picture last;
  {
    Process process{path, clock};
    Engine& engine = *process.engine;
    for (const Kind kind : object_kinds) fill(engine, {0, name_of(kind)}, kind, 200);
    const auto change_all = [&](std::uint64_t number) {
      for (const Kind kind : object_kinds) change(engine, {0, name_of(kind)}, kind, number, 2);
    };
    change_all(5);
    REQUIRE(process.storage->drain());
    change_all(7);
    then = picture_of(engine);
    REQUIRE(process.storage->backup(directory.of("backup")));
    change_all(8);
    REQUIRE(process.storage->rewrite(engine));
    change_all(10);
    last = picture_of(engine);
  }
  CHECK(verify_storage(directory.of("backup")).value().findings.empty());
  REQUIRE(restore_backup(directory.of("backup"), directory.of("back")));
  check_start(directory.of("back"), clock, then);
  check_start(path, clock, last);
}

TEST_CASE("deltas: trails of another record, and damaged ones, are refused", "[storage][delta]") {
  ManualClock clock;
  auto engine = Engine::open({.clock = &clock});
  REQUIRE(engine);
  fill(**engine, {0, "list"}, Kind::list, 200);
  fill(**engine, {0, "set"}, Kind::set, 200);
  const Picture before = picture_of(**engine);
  const auto version_of = [&](Bytes key) {
    Version version = 0;
    REQUIRE((*engine)->host().snapshot([&](const Mutation& mutation) {
      if (mutation.key == key) version = mutation.version;
    }));
    return version;
  };
  const auto restore = [&](Bytes key, Kind kind, Bytes trail) {
    Mutation delta{.kind = kind, .key = key, .value = {}, .claim = {}};
    delta.base = version_of(key);
    delta.version = delta.base + 1'000;
    delta.trail = trail;
    return restore_deltas(**engine, {&delta, 1});
  };
  const std::uint32_t seed = Catch::rngSeed();
  INFO("seed " << seed);
  std::mt19937_64 random{seed};
  const auto is_refused = [](const Result<std::size_t>& result) {
    return !result.ok() && result.error().code == ErrorCode::storage_damaged;
  };
  // Rank 200 of 200; more than there are; all of them; a step of keys; of no kind; cut.
  for (const Bytes trail :
       {Bytes{"\4\xc8\1\1v", 5}, Bytes{"\5\0\xc9\1", 4}, Bytes{"\5\0\xc8\1", 4},
        Bytes{"\1\1\0k", 4}, Bytes{"\7\0\0", 3}, Bytes{"\3\0\5v", 4}, Bytes{"\3", 1}}) {
    CHECK(is_refused(restore("list", Kind::list, trail)));
  }
  // A value, which members have not; a step of ranks; a key that is no member.
  for (const Bytes trail : {Bytes{"\1\1\1kv", 5}, Bytes{"\3\0\1v", 4}, Bytes{"\2\5k", 3}}) {
    CHECK(is_refused(restore("set", Kind::set, trail)));
  }
  CHECK(is_refused(restore("set", Kind::list, Bytes{"\3\0\1v", 4})));
  check_same(picture_of(**engine), before);
  // Noise: refused, or applied to a record that is sound.
  for (int i = 0; i < 3'000; ++i) {
    std::string noise(1 + random() % 30, '\0');
    for (char& byte : noise) byte = static_cast<char>(random() % (i % 2 == 0 ? 256 : 8));
    static_cast<void>(restore("list", Kind::list, noise).ok());
    static_cast<void>(restore("set", Kind::set, noise).ok());
  }
  for (const auto& [key, kind] : {std::pair{"list", Kind::list}, std::pair{"set", Kind::set}}) {
    REQUIRE(engine::read_object(**engine, {0, key}, kind, [](const ObjectReader& object) {
      CHECK(object.is_good());
      CHECK(object.size() != 0);
    }));
  }
}

}  // namespace semel::tests::delta_storage
