// Who is this storage? Locks, copies, backups, foreign directories, lost cold stores, clocks.
#include <rocksdb/db.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/storage_tools.hpp"
#include "storage/archive/archive.hpp"
#include "storage/log/directory.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace fs = std::filesystem;

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr Version copy_jump_min = Version{1} << 48;

[[nodiscard]] Version first_version(const std::string& directory, const Clock& clock) {
  auto storage = Storage::open({.directory = directory}, clock);
  if (!storage) FAIL(storage.error().message());
  return (*storage)->first_version();
}

[[nodiscard]] std::string read_whole(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

[[nodiscard]] Error open_error(const StorageOptions& options, const Clock& clock) {
  const auto storage = Storage::open(options, clock);
  REQUIRE_FALSE(storage);
  return storage.error();
}

void copy_all(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
}

/// The version from which an ordinary open continues: the reserve of the last one above it.
[[nodiscard]] bool continues(Version before, Version after) {
  return after > before && after - before < copy_jump_min;
}

/// Random numbers below 2^48 are closer than this once in 100 million runs.
[[nodiscard]] bool are_apart(Version one, Version other) {
  return (one > other ? one - other : other - one) > Version{1} << 20;
}

}  // namespace

TEST_CASE("identity: one storage a directory, by whatever path it is named", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  const std::string path = directory.of("d");
  fs::create_directory_symlink(path, directory.of("link"));
  ToolLife life{path, clock};
  life.fill("k", 10);
  for (const std::string& other : {path, directory.of("./d"), directory.of("link")}) {
    CHECK(open_error({.directory = other}, clock).code == ErrorCode::storage_in_use);
    CHECK(verify_storage(other).error().code == ErrorCode::storage_in_use);
    CHECK(restore_backup(other, directory.of("t")).error().code == ErrorCode::storage_in_use);
  }
  // A refused attempt must not have ended the lock.
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto opened =
        storage::DirectoryLock::acquire(path, storage::DirectoryLock::Missing::create);
    _exit(!opened && opened.error().code == ErrorCode::storage_in_use ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  life.fill("more", 10);
}

TEST_CASE("identity: one cold store a directory, by whatever path it is named", "[storage][cold]") {
  const Directory directory;
  const ManualClock clock;
  fs::create_directory(directory.of("d"));
  fs::create_directory_symlink(directory.of("d"), directory.of("link"));
  {
    const auto cold = open_cold_directory({.directory = directory.of("d")}, clock);
    REQUIRE(cold);
    const auto other = open_cold_directory({.directory = directory.of("link")}, clock);
    REQUIRE_FALSE(other);
    CHECK(other.error().code == ErrorCode::storage_in_use);
  }
  CHECK(open_cold_directory({.directory = directory.of("link")}, clock));
}

TEST_CASE("identity: a child may open what its parent has closed", "[storage]") {
  const Directory directory;
  using storage::DirectoryLock;
  std::optional<Result<DirectoryLock>> lock{
      DirectoryLock::acquire(directory.path(), DirectoryLock::Missing::create)};
  REQUIRE(*lock);
  int closed[2];
  REQUIRE(pipe(closed) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    char byte = 0;
    if (read(closed[0], &byte, 1) != 1) _exit(2);
    const auto own = DirectoryLock::acquire(directory.path(), DirectoryLock::Missing::create);
    _exit(own ? 0 : 1);
  }
  lock.reset();
  REQUIRE(write(closed[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  close(closed[0]);
  close(closed[1]);
}

TEST_CASE("identity: a foreign directory is refused, and stays as it is", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  std::ofstream{directory.of("letter.txt")} << "text";
  fs::create_directory(directory.of("log"));
  const auto before = picture(directory.path());
  const Error error = open_error({.directory = directory.path()}, clock);
  CHECK(error.code == ErrorCode::storage_failed);
  CHECK(error.detail.find("letter.txt") != std::string::npos);
  CHECK(picture(directory.path()) == before);
  fs::remove(directory.of("log"));
  CHECK(Storage::open({.directory = directory.path(), .own_files = {"letter.txt"}}, clock));
}

TEST_CASE("identity: a new file system and files beside a storage are accepted", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  fs::create_directory(directory.of("lost+found"));
  const Version first = first_version(directory.path(), clock);
  std::ofstream{directory.of("letter.txt")} << "text";
  CHECK(continues(first, first_version(directory.path(), clock)));
}

TEST_CASE("identity: a renamed directory is the same storage", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  const Version first = first_version(directory.of("d"), clock);
  fs::rename(directory.of("d"), directory.of("e"));
  CHECK(continues(first, first_version(directory.of("e"), clock)));
}

TEST_CASE("identity: copies continue far above their original, and far from each other",
          "[storage]") {
  const Directory directory;
  const ManualClock clock;
  const Version first = first_version(directory.of("d"), clock);
  copy_all(directory.of("d"), directory.of("one"));
  copy_all(directory.of("d"), directory.of("two"));
  const Version one = first_version(directory.of("one"), clock);
  const Version two = first_version(directory.of("two"), clock);
  CHECK(one >= first + copy_jump_min);
  CHECK(two >= first + copy_jump_min);
  CHECK(are_apart(one, two));
  CHECK(continues(first, first_version(directory.of("d"), clock)));
  CHECK(continues(one, first_version(directory.of("one"), clock)));
  // In the place of the original, too.
  fs::rename(directory.of("d"), directory.of("away"));
  copy_all(directory.of("away"), directory.of("d"));
  CHECK(first_version(directory.of("d"), clock) >= first + copy_jump_min);
}

TEST_CASE("identity: without its lock file a storage counts as a copy", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  const Version first = first_version(directory.of("d"), clock);
  SECTION("removed") {
    fs::remove(directory.of("d/lock"));
  }
  SECTION("cut short") {
    fs::resize_file(directory.of("d/lock"), 63);
  }
  SECTION("damaged") {
    flip(directory.of("d/lock"), 9);
  }
  SECTION("of another storage") {
    static_cast<void>(first_version(directory.of("e"), clock));
    fs::rename(directory.of("e/lock"), directory.of("d/lock"));
  }
  SECTION("beside files of another life") {
    fs::rename(directory.of("d"), directory.of("old"));
    copy_all(directory.of("old"), directory.of("d"));
    static_cast<void>(first_version(directory.of("d"), clock));
    fs::rename(directory.of("old/lock"), directory.of("d/lock"));
  }
  CHECK(first_version(directory.of("d"), clock) >= first + copy_jump_min);
}

TEST_CASE(
    "identity: older content put back in place is refused in part, and else needs its lock gone",
    "[storage][between-12]") {
  const Directory directory;
  const ManualClock clock;
  const std::string path = directory.of("d");
  const std::string old = directory.of("old");
  {
    ToolLife life{path, clock};
    life.fill("k", 100);
  }
  copy_all(path, old);
  Version newest = 0;
  {
    ToolLife life{path, clock};
    life.fill("more", 100);
    REQUIRE(life.storage->drain());
    newest = life.storage->first_version() + 1'000;
  }
  const auto put_back = [&](const std::string& part) {
    for (const auto& entry : fs::recursive_directory_iterator{path + part}) {
      if (!entry.is_regular_file()) continue;
      const std::string from = old + entry.path().string().substr(path.size());
      if (fs::exists(from)) {
        const std::string content = read_whole(from);
        std::ofstream{entry.path(), std::ios::binary | std::ios::trunc} << content;
      } else {
        fs::remove(entry.path());
      }
    }
    fs::copy(old + part, path + part,
             fs::copy_options::recursive | fs::copy_options::skip_existing);
  };
  put_back("/rocksdb");
  CHECK(open_error({.directory = path}, clock).code == ErrorCode::storage_damaged);
  CHECK_FALSE(verify_storage(path)->findings.empty());
  // Now all of it is old, and nothing on the disk shows it. The runbook's step:
  put_back("");
  fs::remove(path + "/lock");
  const Version copied = first_version(path, clock);
  CHECK(copied > newest);
  CHECK_FALSE(continues(newest, copied));
}

TEST_CASE("identity: within a boot, the same files on another disk are a snapshot and a copy",
          "[storage]") {
  const Directory directory;
  const ManualClock clock;
  BootDisk first{"first"};
  BootDisk second{"second"};
  struct stat info {};
  REQUIRE(stat(directory.path().c_str(), &info) == 0);
  if (major(info.st_dev) == 0) {
    WARN("skipped: " + directory.path() + " is not on a disk, so it has no device number of one");
    return;
  }
  const auto open = [&](storage::Disk& disk) {
    auto storage = Storage::open({.directory = directory.path(), .disk = &disk}, clock);
    if (!storage) FAIL(storage.error().message());
    return (*storage)->first_version();
  };
  const Version before = open(first);
  // The lock file as it would be if it had been written on another disk.
  std::array<std::uint64_t, 8> words{};
  std::fstream file{directory.of("lock"), std::ios::binary | std::ios::in | std::ios::out};
  REQUIRE(file.read(reinterpret_cast<char*>(words.data()), sizeof words));
  REQUIRE(words[5] == info.st_dev);
  words[5] = info.st_dev + 1;
  words[7] = XXH3_64bits(words.data(), sizeof words - sizeof words[7]);
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(words.data()), sizeof words);
  file.close();
  SECTION("in the same boot") {
    CHECK(open(first) >= before + copy_jump_min);
  }
  SECTION("in another boot disks may have other numbers") {
    CHECK(continues(before, open(second)));
  }
}

TEST_CASE("identity: a backup is not opened, and each restore continues elsewhere",
          "[storage][tools]") {
  const Directory directory;
  const ManualClock clock;
  Version first = 0;
  {
    ToolLife life{directory.of("d"), clock};
    life.fill("k", 10);
    first = life.storage->first_version();
    REQUIRE(life.storage->backup(directory.of("backup")));
  }
  const Error error = open_error({.directory = directory.of("backup")}, clock);
  CHECK(error.code == ErrorCode::storage_failed);
  CHECK(error.detail.find("semel restore") != std::string::npos);
  CHECK(verify_storage(directory.of("backup"))->findings.empty());
  REQUIRE(restore_backup(directory.of("backup"), directory.of("one")));
  REQUIRE(restore_backup(directory.of("backup"), directory.of("two")));
  ToolLife one{directory.of("one"), clock};
  ToolLife two{directory.of("two"), clock};
  CHECK(one.count("k", 10) == 10);
  CHECK(two.count("k", 10) == 10);
  const Version a = one.storage->first_version();
  const Version b = two.storage->first_version();
  CHECK(a >= first + copy_jump_min);
  CHECK(b >= first + copy_jump_min);
  // A restore is one jump, not two: below 2^49 and what the lives before have reserved.
  CHECK(a < first + 2 * copy_jump_min + (Version{1} << 38));
  CHECK(are_apart(a, b));
}

TEST_CASE("identity: nothing is left of a backup that failed", "[storage]") {
  class NoMark final : public storage::Disk {
   public:
    Result<int> create(const std::string& path, std::size_t bytes) override {
      if (fails && path.ends_with("/mark")) return Error{ErrorCode::storage_failed, "full"};
      return Disk::create(path, bytes);
    }
    bool fails = false;
  };
  const Directory directory;
  const ManualClock clock;
  NoMark disk;
  const auto storage = Storage::open({.directory = directory.of("d"), .disk = &disk}, clock);
  REQUIRE(storage);
  disk.fails = true;
  CHECK_FALSE((*storage)->backup(directory.of("backup")));
  CHECK_FALSE(fs::exists(directory.of("backup")));
  disk.fails = false;
  CHECK((*storage)->backup(directory.of("backup")));
  CHECK_FALSE((*storage)->backup(directory.of("backup")));  // it is there, and stays
  CHECK(verify_storage(directory.of("backup"))->findings.empty());
}

TEST_CASE("identity: a storage whose versions are used up is refused", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  constexpr Version reserve = Version{1} << 36;
  static_cast<void>(first_version(directory.path(), clock));
  const auto set_versions = [&](Version versions) {
    storage::Disk disk;
    auto archive = storage::Archive::open(disk, {directory.path(), false, {}});
    REQUIRE(archive);
    storage::Description is = (*archive)->description();
    is.versions = versions;
    REQUIRE((*archive)->describe(is));
  };
  set_versions(limits::version_max - reserve);
  CHECK(first_version(directory.path(), clock) == limits::version_max - reserve + 1);
  const Error error = open_error({.directory = directory.path()}, clock);
  CHECK(error.detail.find(std::to_string(limits::version_max)) != std::string::npos);
}

namespace {

/// Counts the syncs of segments that an earlier process wrote, and may fail them.
class WatchedDisk final : public storage::Disk {
 public:
  Status sync_file(const std::string& path) override {
    const Status met = meet(path);
    return met ? storage::Disk::sync_file(path) : met;
  }
  Status rewrite_file(const std::string& path, std::uint64_t from) override {
    const Status met = meet(path);
    return met ? storage::Disk::rewrite_file(path, from) : met;
  }
  std::vector<std::string> synced;
  bool fails = false;

 private:
  Status meet(const std::string& path) {
    if (!path.ends_with(".log")) return Done{};  // the mark is one as well
    synced.push_back(path);
    if (fails) return Error{ErrorCode::storage_failed, "fdatasync " + path};
    return Done{};
  }
};

}  // namespace

TEST_CASE("identity: opening syncs what an earlier process wrote", "[storage]") {
  const Directory directory;
  const ManualClock clock;
  {
    ToolLife life{directory.path(), clock};
    life.fill("k", 10);
  }
  WatchedDisk disk;
  const std::size_t found = files_in(directory.of("log"), ".log").size();
  REQUIRE(found > 0);
  disk.fails = true;
  CHECK(open_error({.directory = directory.path(), .disk = &disk}, clock).code ==
        ErrorCode::storage_failed);
  CHECK(disk.synced.size() == 1);
  disk.fails = false;
  disk.synced.clear();
  REQUIRE(Storage::open({.directory = directory.path(), .disk = &disk}, clock));
  CHECK(disk.synced.size() == found);
}

TEST_CASE("identity: after a boot a wall clock far ahead is refused", "[storage]") {
  const Directory directory;
  ManualClock clock;
  BootDisk first{"first"};
  BootDisk second{"second"};
  constexpr Millis most = 24h;
  const auto options = [&](storage::Disk& disk, Millis ahead) {
    return StorageOptions{.directory = directory.path(), .clock_ahead_max = ahead, .disk = &disk};
  };
  REQUIRE(Storage::open(options(first, most), clock));
  SECTION("within a boot it does not matter") {
    clock.step_wall(most + 1ms);
    CHECK(Storage::open(options(first, most), clock));
  }
  SECTION("up to the limit it is accepted") {
    clock.step_wall(most);
    CHECK(Storage::open(options(second, most), clock));
  }
  SECTION("beyond it, opening names both times, and a larger limit accepts it") {
    clock.step_wall(most + 1ms);
    const Error error = open_error(options(second, most), clock);
    CHECK(error.code == ErrorCode::storage_failed);
    CHECK(error.detail.find(std::to_string(clock.unix_ms())) != std::string::npos);
    CHECK(error.detail.find("clock_ahead_max, 86400000 ms") != std::string::npos);
    CHECK(Storage::open(options(second, most + 1ms), clock));
  }
}

TEST_CASE("identity: after a boot a cold store refuses a wall clock far ahead as well",
          "[storage][cold]") {
  const Directory directory;
  ManualClock clock;
  const auto open = [&](Millis ahead) {
    return open_cold_directory({.directory = directory.path(), .clock_ahead_max = ahead}, clock);
  };
  REQUIRE(open(24h));
  {
    // As if it had been written in another boot.
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    rocksdb::DB* opened = nullptr;
    REQUIRE(rocksdb::DB::Open({}, directory.of("cold"), {{"default", {}}, {"cold", {}}}, &families,
                              &opened)
                .ok());
    const std::unique_ptr<rocksdb::DB> database{opened};
    std::string anchor;
    REQUIRE(database->Get({}, "anchor", &anchor).ok());
    REQUIRE(database->Put({}, "anchor", anchor.substr(0, 24) + "another boot").ok());
    for (auto* family : families) REQUIRE(database->DestroyColumnFamilyHandle(family).ok());
  }
  clock.step_wall(24h + 1ms);
  const auto refused = open(24h);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail.find("clock_ahead_max, 86400000 ms") != std::string::npos);
  CHECK(open(24h + 1ms));
}

namespace {

/// A tiered engine: a storage and a cold store in directories of their own.
struct TieredLife {
  TieredLife(const std::string& directory, const std::string& cold_path, const Clock& clock) {
    auto opened = Storage::open({.directory = directory}, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    Version first = storage->first_version();
    if (!cold_path.empty()) {
      auto cold_opened = open_cold_directory({.directory = cold_path}, clock);
      if (!cold_opened) FAIL(cold_opened.error().message());
      cold = *std::move(cold_opened);
    }
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .cold = cold.get(),
                              .memory_bytes = std::size_t{64} << 20,
                              .first_version = first});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    recovered.emplace(storage->recover(*engine));
  }
  void finish(const std::string& key) { REQUIRE(engine->store().set(key, "done").ok()); }
  void spill() {
    REQUIRE(storage->drain());
    REQUIRE(engine->host().spill());
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;  // ends first
  std::optional<Result<RecoveryReport>> recovered;
};

}  // namespace

TEST_CASE("identity: a storage refuses a cold store that has lost its records", "[storage][cold]") {
  const Directory directory;
  ManualClock clock;
  const std::string path = directory.of("d");
  const std::string cold = directory.of("cold");
  {
    TieredLife life{path, cold, clock};
    REQUIRE(*life.recovered);
    life.finish("one");
    life.spill();
  }
  copy_all(cold, directory.of("older"));
  {
    TieredLife life{path, cold, clock};
    REQUIRE(*life.recovered);
    life.finish("two");
    life.spill();
  }
  const auto refused = [&](const std::string& with) {
    TieredLife life{path, with, clock};
    REQUIRE_FALSE(*life.recovered);
    CHECK(life.recovered->error().code == ErrorCode::storage_damaged);
    CHECK(life.recovered->error().detail.find("cold store") != std::string::npos);
  };
  refused("");                   // none
  refused(directory.of("new"));  // another one
  refused(directory.of("older"));
  TieredLife life{path, cold, clock};
  REQUIRE(*life.recovered);
  CHECK(life.engine->store().get("one").value() == "done");
  CHECK(life.engine->store().get("two").value() == "done");
}

TEST_CASE("identity: a cold store whose generations have all ended is not a lost one",
          "[storage][cold]") {
  const Directory directory;
  ManualClock clock;
  {
    TieredLife life{directory.of("d"), directory.of("cold"), clock};
    REQUIRE(*life.recovered);
    REQUIRE(life.engine->store().set("k", "done", {.expiry = Expiry::in(1h)}).ok());
    life.spill();
    clock.advance(2h);
    REQUIRE(life.cold->drop_ended(clock.now()));
    CHECK(life.cold->stats().generations == 0);
  }
  TieredLife life{directory.of("d"), directory.of("cold"), clock};
  CHECK(*life.recovered);
}

TEST_CASE("identity: open and verify agree about a checkpoint of the wrong size",
          "[storage][tools]") {
  const Directory directory;
  const ManualClock clock;
  { ToolLife life{directory.of("d"), clock}; }
  SECTION("one slot") {
    fs::resize_file(directory.of("d/mark"), 4096);
  }
  SECTION("longer") {
    fs::resize_file(directory.of("d/mark"), 8193);
  }
  CHECK(open_error({.directory = directory.of("d")}, clock).code == ErrorCode::storage_damaged);
  CHECK(verify_storage(directory.of("d"))->findings.size() == 1);
}

}  // namespace semel::tests
