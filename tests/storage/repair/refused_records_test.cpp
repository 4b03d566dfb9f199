// Records in RocksDB's own log that RocksDB refuses: opening, verify and repair name them, and a
// repair leaves them out. And families that need objects of the user's program.
//
//   poison   a batch that RocksDB logs and then refuses; before joined commits checked their
//            effects, one of them could be it, and a write of the user's own still can
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "semel/storage_tools.hpp"
#include "tests/storage/joint/effects_world.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::tests {

namespace {

struct Poison {
  const char* what;
  const char* named;  ///< in what is found
  std::function<rocksdb::Status(const EffectsProcess&, rocksdb::WriteBatch&)> add;
};

const std::vector<Poison> poisons{
    {"a merge without an operator", "Merge: the column family 'plain' has no merge operator",
     [](const EffectsProcess& at, rocksdb::WriteBatch& batch) {
       return batch.Merge(at.of("plain"), "a", "1");
     }},
    {"a range with an empty end", "DeleteRange in the column family 'plain': its end is before",
     [](const EffectsProcess& at, rocksdb::WriteBatch& batch) {
       return batch.DeleteRange(at.of("plain"), "a", "");
     }},
    {"a range in reverse order", "DeleteRange in the column family 'turned': its end is before",
     [](const EffectsProcess& at, rocksdb::WriteBatch& batch) {
       return batch.DeleteRange(at.of("turned"), "a", "z");
     }},
    {"a range in other tables", "the tables of the column family 'tables' have no ranges",
     [](const EffectsProcess& at, rocksdb::WriteBatch& batch) {
       return batch.DeleteRange(at.of("tables"), "a", "b");
     }},
};

/// Something of every family, in its files and in the log, then the poison with `bytes` more.
void write_all(const std::string& directory, const Clock& clock, const Poison& poison,
               std::size_t bytes) {
  EffectsProcess process{directory, clock};
  rocksdb::DB& rocks = database(*process.storage);
  const auto all = [&](const std::string& key) {
    REQUIRE(process.pay(key, process.claim(key))->written);
    for (const char* name : {"plain", "turned", "tables"}) {
      REQUIRE(rocks.Put({}, process.of(name), key, key).ok());
    }
    REQUIRE(rocks.Put({}, process.of("stamped"), key, "12345678", key).ok());
    REQUIRE(rocks.Merge({}, process.of("merged"), "merged", key).ok());
  };
  all("filed");
  for (const char* name : {"payments", "plain", "turned", "tables", "stamped", "merged"}) {
    REQUIRE(rocks.Flush({}, process.of(name)).ok());
  }
  all("logged");
  rocksdb::WriteBatch batch;
  REQUIRE(batch.Put(process.payments(), "poisoned", std::string(bytes, 'p')).ok());
  REQUIRE(poison.add(process, batch).ok());
  REQUIRE_FALSE(rocks.Write({}, &batch).ok());
}

void check_all(const std::string& directory, const Clock& clock) {
  EffectsProcess process{directory, clock};
  CHECK(process.effect("poisoned") == "-");
  std::string value;
  for (const std::string key : {"filed", "logged"}) {
    CHECK(process.state(key) == ClaimState::done);
    CHECK(process.effect(key) != "-");
    for (const char* name : {"plain", "turned", "tables"}) {
      CHECK(database(*process.storage).Get({}, process.of(name), key, &value).ok());
    }
  }
  REQUIRE(database(*process.storage).Get({}, process.of("merged"), "merged", &value).ok());
  CHECK(value == "filedlogged");
  CHECK(process.pay("next", process.claim("next"))->written);
}

[[nodiscard]] std::string refusal(const std::string& directory, const Clock& clock,
                                  const JoinProcess::Families& families) {
  const auto opened = open_storage({.directory = directory}, clock, families);
  REQUIRE_FALSE(opened);
  return std::string{name_of(opened.error().code)} + " " + opened.error().message();
}

}  // namespace

TEST_CASE("refused records: opening and verify name one, and repair leaves it alone out",
          "[storage][join][tools][attack][between-14]") {
  // The first one also where no single entry is as long as what is left out (1 and 2 bytes for its
  // length), one byte more, and over blocks of the log.
  using Case = std::pair<std::size_t, std::size_t>;
  const auto [which, bytes] = GENERATE(values<Case>(
      {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 112}, {0, 113}, {0, 16'368}, {0, 100'000}}));
  const Poison& poison = poisons[which];
  INFO(poison.what << ", " << bytes);
  const Directory directory{Directory::Medium::memory};
  const std::string path = directory.of("s");
  ManualClock clock;
  write_all(path, clock, poison, bytes);

  const std::string refused = refusal(path, clock, families_of_payer());
  CHECK_THAT(refused, Catch::Contains(".log: a record is refused by RocksDB (numbers "));
  CHECK_THAT(refused, Catch::Contains(poison.named) && Catch::Contains("; semel repair leaves it"));

  const auto before = picture(path);
  const auto found = verify_storage(path);
  REQUIRE(found);
  REQUIRE(found->findings.size() == 1);
  CHECK_THAT(found->findings[0].file, Catch::Contains(".log"));
  CHECK_THAT(found->findings[0].what, Catch::Contains(poison.named));
  CHECK(found->findings[0].records_lost == 1);
  CHECK_FALSE(repair_storage(path, false)->changed);
  CHECK(picture(path) == before);

  const auto repair = repair_storage(path, true);
  if (!repair) FAIL(repair.error().message());
  CHECK(repair->changed);
  CHECK_FALSE(std::filesystem::is_empty(repair->moved_to));
  CHECK(verify_storage(path)->is_sound());
  check_all(path, clock);
  CHECK(verify_storage(path)->is_sound());
}

TEST_CASE("refused records: a family that is opened without its merge operator is named",
          "[storage][join][tools][attack][between-14]") {
  const Directory directory;
  ManualClock clock;
  {
    EffectsProcess process{directory.path(), clock};
    rocksdb::WriteBatch batch;
    REQUIRE(batch.Merge(process.of("merged"), "m", "1").ok());
    REQUIRE(process.commit("a", process.claim("a"), batch)->written);
  }
  JoinProcess::Families families = families_of_payer();
  for (rocksdb::ColumnFamilyDescriptor& family : families) {
    family.options.merge_operator = nullptr;
  }
  const std::string refused = refusal(directory.path(), clock, families);
  CHECK_THAT(refused, Catch::Contains("bad_option"));
  CHECK_THAT(refused, Catch::Contains("it had 'tests.PickyAppend': name the family"));
  CHECK(verify_storage(directory.path())->is_sound());
  EffectsProcess process{directory.path(), clock};
  CHECK(process.state("a") == ClaimState::done);
}

TEST_CASE("refused records: a storage whose families need the user's objects is sound",
          "[storage][join][tools][attack][between-14]") {
  const Directory directory;
  ManualClock clock;
  for (int life = 0; life < 3; ++life) {  // the families' data is in files, and in the log
    EffectsProcess process{directory.path(), clock};
    rocksdb::DB& rocks = database(*process.storage);
    const std::string key = std::to_string(life);
    REQUIRE(rocks.Put({}, process.of("stamped"), key, "12345678", "1").ok());
    REQUIRE(rocks.Put({}, process.of("tables"), key, "1").ok());
    REQUIRE(rocks.Merge({}, process.of("merged"), "m", key).ok());
    REQUIRE(process.pay(key, process.claim(key))->written);
  }
  const auto check = verify_storage(directory.path());
  REQUIRE(check);
  for (const StorageFinding& finding : check->findings) FAIL(finding.file << finding.what);
  CHECK(check->is_sound());
}

TEST_CASE("repair: the copy of a family has its order and wide columns, or there is none",
          "[storage][join][tools][attack][between-14]") {
  const Directory directory;
  const std::string path = directory.of("s");
  ManualClock clock;
  const bool is_copied = GENERATE(true, false);
  const JoinProcess::Families all = families_of_payer();
  JoinProcess::Families families;
  for (const rocksdb::ColumnFamilyDescriptor& family : all) {
    if (is_copied && (family.name == "stamped" || family.name == "tables")) continue;
    families.push_back(family);
  }
  {
    JoinProcess process{path, clock, Durability::logged, {}, families};
    rocksdb::DB& rocks = database(*process.storage);
    REQUIRE(rocks.Put({}, family(*process.storage, "turned"), "t", "1").ok());
    const rocksdb::WideColumns columns{{"", "1"}, {"column", "2"}};
    REQUIRE(rocks.PutEntity({}, family(*process.storage, "plain"), "wide", columns).ok());
    REQUIRE(process.pay("a", process.claim("a"))->written);
  }
  flip(path + "/mark", 10);
  flip(path + "/mark", 4096 + 10);
  const auto repair = repair_storage(path, true);
  if (!is_copied) {
    REQUIRE_FALSE(repair);
    CHECK_THAT(repair.error().message(),
               Catch::Contains("'stamped' has the comparator 'tests.Stamped'"));
    CHECK_FALSE(std::filesystem::exists(path + "/lost+found-1"));
    return;
  }
  if (!repair) FAIL(repair.error().message());
  JoinProcess process{path, clock, Durability::logged, {}, families};
  CHECK(process.state("a") == ClaimState::done);
  CHECK(process.effect("a") != "-");
  rocksdb::PinnableWideColumns wide;
  rocksdb::DB& rocks = database(*process.storage);
  REQUIRE(rocks.GetEntity({}, family(*process.storage, "plain"), "wide", &wide).ok());
  CHECK(wide.columns().size() == 2);
  std::string value;
  CHECK(rocks.Get({}, family(*process.storage, "turned"), "t", &value).ok());
}

}  // namespace semel::tests
