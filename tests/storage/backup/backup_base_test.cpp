// Backups with a base: an older backup whose files are shared.
#include "tests/storage/backup/backup_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

TEST_CASE("backup: what has not changed is linked from the base", "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  {
    Process process{directory.path(), clock};
    process.fill("old", 2'000);
    REQUIRE(process.storage->backup(beside.of("one"), copying));
    process.fill("new", 100);
    const auto second =
        process.storage->backup(beside.of("two"), {.copies = true, .base = beside.of("one")});
    if (!second) FAIL(second.error().message());
    CHECK(second->bytes_shared > 2'000'000);
    CHECK(second->bytes_copied < 1'000'000);
    CHECK(second->damaged_in_base.empty());
    const auto third =
        process.storage->backup(beside.of("three"), {.copies = true, .base = beside.of("two")});
    if (!third) FAIL(third.error().message());
    CHECK(third->bytes_shared >= second->bytes_shared);
  }
  std::size_t same = 0;
  for (const std::string& table : tables_of(beside.of("one"))) {
    const std::string name = fs::path{table}.filename();
    if (!exists(beside.of("three/rocksdb/" + name))) continue;
    same += inode_of(table) == inode_of(beside.of("three/rocksdb/" + name)) ? 1 : 0;
    CHECK(inode_of(table) != inode_of(directory.of("rocksdb/" + name)));
  }
  CHECK(same > 0);
  fs::remove_all(beside.of("one"));  // a base may go
  fs::remove_all(beside.of("two"));
  require_sound(beside.of("three"));
  REQUIRE(restore_backup(beside.of("three"), beside.of("again")));
  CHECK(Process{beside.of("again"), clock}.engine->size(0) == 2'100);
}

TEST_CASE("backup: a damaged file of the base is named and copied anew", "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  process.fill("k", 500);
  REQUIRE(process.storage->backup(beside.of("one"), copying));
  std::vector<std::string> damaged = tables_of(beside.of("one"));
  for (const std::string& table : damaged) damage(table);
  const auto second =
      process.storage->backup(beside.of("two"), {.copies = true, .base = beside.of("one")});
  if (!second) FAIL(second.error().message());
  CHECK(second->bytes_shared == 0);
  std::vector<std::string> named = second->damaged_in_base;
  std::sort(named.begin(), named.end());
  std::sort(damaged.begin(), damaged.end());
  CHECK(named == damaged);
  require_sound(beside.of("two"));
}

TEST_CASE("backup: a file of the same name and size in the base is not taken if it is another",
          "[storage][backup]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  Process process{directory.path(), clock};
  process.fill("k", 500);
  REQUIRE(process.storage->backup(beside.of("one"), copying));
  // As if another storage had made it: sound by its list.
  const std::string table = tables_of(beside.of("one")).front();
  std::string bytes(fs::file_size(table), 'x');
  std::ofstream{table, std::ios::binary} << bytes;
  auto list = storage::read_backup_list(beside.of("one"));
  REQUIRE(list);
  for (storage::BackupFile& file : list->files) {
    if (table.ends_with(file.name)) file.digest = storage::digest_of_file(table).value();
  }
  REQUIRE(storage::write_backup_list(*rocksdb::Env::Default(), beside.of("one"), *list));
  const auto second =
      process.storage->backup(beside.of("two"), {.copies = true, .base = beside.of("one")});
  REQUIRE(second);
  CHECK(second->damaged_in_base.empty());
  require_sound(beside.of("two"));
}

TEST_CASE("backup: of a folder of backups the newest complete one of this storage is the base",
          "[storage][backup]") {
  const Directory directory;
  const Directory other;
  const Directory beside;
  ManualClock clock;
  {
    Process process{other.path(), clock};
    process.set("k", "v");
    clock.advance(1h);
    REQUIRE(process.storage->backup(beside.of("a-newer-of-another"), copying));
  }
  Process process{directory.path(), clock};
  process.fill("k", 500);
  // With an empty folder there is no base.
  fs::create_directory(beside.of("none"));
  CHECK(process.storage->backup(beside.of("z"), {.copies = true, .base = beside.of("none")}));
  clock.advance(1s);
  process.fill("m", 500);
  CHECK(process.storage->backup(beside.of("b"), copying));
  clock.advance(1s);
  fs::create_directory(beside.of("incomplete"));
  REQUIRE(storage::write_backup_list(*rocksdb::Env::Default(), beside.of("incomplete"), {}));
  const auto next =
      process.storage->backup(beside.of("c"), {.copies = true, .base = beside.path()});
  if (!next) FAIL(next.error().message());
  // All of b, which z has not.
  CHECK(next->bytes_shared > 1'000'000);
}

TEST_CASE("backup: a base of another storage, incomplete, damaged or none is refused",
          "[storage][backup]") {
  const Directory directory;
  const Directory other;
  const Directory beside;
  ManualClock clock;
  {
    Process process{other.path(), clock};
    process.set("k", "v");
    REQUIRE(process.storage->backup(beside.of("other"), copying));
    REQUIRE(process.storage->backup(beside.of("damaged"), copying));
    REQUIRE(process.storage->backup(beside.of("incomplete"), copying));
  }
  damage(beside.of("damaged/backup"));
  REQUIRE(storage::write_backup_list(*rocksdb::Env::Default(), beside.of("incomplete"), {}));
  Process process{directory.path(), clock};
  process.set("k", "v");
  for (const std::string name : {"other", "damaged", "incomplete", "missing"}) {
    INFO(name);
    const auto refused = process.storage->backup(beside.of("two"), {.base = beside.of(name)});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::bad_option);
    CHECK(refused.error().detail.find(beside.of(name)) != std::string::npos);
    CHECK_FALSE(exists(beside.of("two")));
  }
}

}  // namespace semel::tests
