// Mutations that a later one has replaced do not reach the files, and their segments stay until the
// later one is synced. After a peak the storage gives back what it took.
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "semel/storage_tools.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// Counts syncs of the log, and notes how many there were when a segment was first released.
class CountingDisk final : public storage::Disk {
 public:
  [[nodiscard]] Status sync_part(char* memory, const std::string& path, std::size_t from,
                                 std::size_t to) override {
    if (refuses.load(std::memory_order_seq_cst))  // mo: seq_cst: a test
      return Error{ErrorCode::storage_failed, path + ": no"};
    const Status status = Disk::sync_part(memory, path, from, to);
    syncs_.fetch_add(1, std::memory_order_seq_cst);  // mo: seq_cst: a test
    return status;
  }
  [[nodiscard]] Status remove(const std::string& path) override {
    note_release(path);
    return Disk::remove(path);
  }
  [[nodiscard]] Status rename(const std::string& from, const std::string& to) override {
    note_release(from);
    return Disk::rename(from, to);
  }
  [[nodiscard]] bool has_released() const noexcept {
    return released_.load(std::memory_order_seq_cst);  // mo: seq_cst: a test
  }
  [[nodiscard]] unsigned syncs_at_release() const noexcept {
    return syncs_at_release_.load(std::memory_order_seq_cst);  // mo: seq_cst: a test
  }

  std::atomic<bool> refuses{false};  // every sync of the log fails

 private:
  void note_release(const std::string& path) {
    // mo: seq_cst: a test, here and below
    if (!path.ends_with(".log") || released_.exchange(true, std::memory_order_seq_cst)) return;
    const unsigned syncs = syncs_.load(std::memory_order_seq_cst);  // mo: seq_cst: as above
    syncs_at_release_.store(syncs, std::memory_order_seq_cst);      // mo: seq_cst: as above
  }
  std::atomic<unsigned> syncs_{0};
  std::atomic<unsigned> syncs_at_release_{0};
  std::atomic<bool> released_{false};
};

struct Process {
  Process(const Directory& directory, ManualClock& clock, StorageOptions options = {}) {
    options.directory = directory.path();
    open(Storage::open(options, clock), clock);
  }
  Process(const Directory& directory, ManualClock& clock, bool joins) {
    REQUIRE(joins);
    open(open_storage({.directory = directory.path()}, clock, {}), clock);
  }
  void open(Result<std::unique_ptr<Storage>> opened, ManualClock& clock) {
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{256} << 20,
                              .value_bytes_max = 64 * 1024,  // fits into small logs
                              .background = std::nullopt,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
    recovered = *report;
  }
  [[nodiscard]] Store store() const { return engine->store(); }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
  RecoveryReport recovered;
};

std::uint64_t disk_bytes(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory, ignored}) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace

TEST_CASE("superseded: generations of the same keys reach the files once", "[storage]") {
  const Directory directory;
  ManualClock clock;
  constexpr unsigned keys = 200;
  {
    Process process{directory, clock};
    for (unsigned generation = 0; generation < 10; ++generation) {
      for (unsigned i = 0; i < keys; ++i) {
        REQUIRE(process.store()
                    .set("k" + std::to_string(i), std::to_string(generation),
                         {.expiry = Expiry::in(1h)})
                    .ok());
      }
    }
    REQUIRE(process.storage->drain());
    CHECK(process.storage->stats().mutations_superseded == 9 * keys);
  }
  Process process{directory, clock};
  CHECK(process.recovered.mutations == keys);
  for (unsigned i = 0; i < keys; ++i) {
    CHECK(process.store().get("k" + std::to_string(i)).value() == "9");
  }
}

TEST_CASE("superseded: no segment is released before what replaced its mutations is synced",
          "[storage]") {
  const Directory directory;
  ManualClock clock;
  CountingDisk disk;
  Process process{directory,
                  clock,
                  {.directory = {},
                   .sync_every = 60'000ms,  // nobody else syncs the log
                   .log_bytes = std::size_t{1} << 20,
                   .disk = &disk}};
  const std::string value(4'000, 'v');
  for (unsigned i = 0; i < 100'000 && !disk.has_released(); ++i) {
    REQUIRE(process.store().set("k" + std::to_string(i % 10), value).ok());
  }
  REQUIRE(disk.has_released());
  CHECK(disk.syncs_at_release() > 0);
  CHECK(process.storage->stats().mutations_superseded > 0);
}

TEST_CASE("superseded: where the log cannot be synced nothing is released", "[storage]") {
  const Directory directory;
  ManualClock clock;
  CountingDisk disk;
  Process process{
      directory,
      clock,
      {.directory = {}, .sync_every = 60'000ms, .log_bytes = std::size_t{1} << 20, .disk = &disk}};
  REQUIRE(process.storage->drain());
  disk.refuses.store(true, std::memory_order_seq_cst);  // mo: seq_cst: a test
  // After the refusal began: the draining thread may be ahead of drain(). It may refuse the second.
  REQUIRE(process.store().set("k", "1").ok());
  static_cast<void>(process.store().set("k", "2"));
  CHECK_FALSE(process.storage->drain());
  CHECK_FALSE(disk.has_released());
  CHECK(process.storage->stats().mutations_superseded == 0);
}

TEST_CASE("superseded: a mutation that must be kept longer than its successor stays", "[storage]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{.directory = {}, .span = 1s};
  {
    Process process{directory, clock, options};
    REQUIRE(process.store().set("k", "for ever").ok());
    REQUIRE(process.storage->drain());
    REQUIRE(process.store().set("k", "long", {.expiry = Expiry::in(100s)}).ok());
    REQUIRE(process.store().set("k", "short", {.expiry = Expiry::in(50s)}).ok());
    REQUIRE(process.storage->drain());
    CHECK(process.storage->stats().mutations_superseded == 0);
  }
  clock.advance(300s);  // the spans of both are over; that of the first never is
  Process process{directory, clock, options};
  CHECK_FALSE(process.store().get("k").value());
}

TEST_CASE("superseded: not by what was restored beside the log", "[storage]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory, clock};
    REQUIRE(process.store().set("k", "1").ok());
    Mutation other;
    other.key = "k";
    other.value = "2";
    other.version = process.storage->first_version() + 1'000'000;
    REQUIRE(process.engine->host().restore(other));
    REQUIRE(process.store().get("k").value() == "2");
    REQUIRE(process.storage->drain());
    CHECK(process.storage->stats().mutations_superseded == 0);
  }
  Process process{directory, clock};
  CHECK(process.store().get("k").value() == "1");
}

TEST_CASE("superseded: a storage for joined commits drops nothing", "[storage][joined]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory, clock, true};
  for (int i = 0; i < 10; ++i) REQUIRE(process.store().set("k", std::to_string(i)).ok());
  REQUIRE(process.storage->drain());
  CHECK(process.storage->stats().mutations_superseded == 0);
}

TEST_CASE("superseded: a backup beside changes has each key", "[storage]") {
  const Directory directory;
  ManualClock clock;
  constexpr unsigned keys = 1'000;
  Process process{directory, clock};
  const auto set_all = [&] {
    for (unsigned i = 0; i < keys; ++i) {
      if (!process.store().set("k" + std::to_string(i), "v").ok()) return false;
    }
    return true;
  };
  REQUIRE(set_all());
  std::atomic<bool> ends{false};
  std::thread changes{[&] {
    while (!ends.load(std::memory_order_seq_cst) && set_all()) {  // mo: seq_cst: a test
    }
  }};
  for (int round = 0; round < 5; ++round) {
    const std::string backup = directory.of("backup" + std::to_string(round));
    const Directory restored;
    std::filesystem::remove(restored.path());
    const auto made = process.storage->backup(backup);
    CHECK(made);
    if (!made || !restore_backup(backup, restored.path())) continue;
    ManualClock then;
    const Process other{restored, then};
    CHECK(other.engine->size(0) == keys);
  }
  ends.store(true, std::memory_order_seq_cst);  // mo: seq_cst: a test
  changes.join();
}

TEST_CASE("superseded: an engine that has ended is not asked", "[storage]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory, clock};
  for (int i = 0; i < 10; ++i) REQUIRE(process.store().set("k", std::to_string(i)).ok());
  process.engine.reset();
  REQUIRE(process.storage->drain());
  CHECK(process.storage->stats().mutations_superseded == 0);
}

TEST_CASE("storage: a minute after a peak the disk holds what lives, and a floor", "[storage]") {
  const Directory directory;
  ManualClock clock;
  constexpr std::size_t log_bytes = std::size_t{8} << 20;
  Process process{directory, clock, {.directory = {}, .log_bytes = log_bytes}};
  const std::string value(100, 'v');
  constexpr int living = 20'000;
  constexpr int peak = 100'000;
  const auto set = [&](const std::string& key, Millis ttl) {
    REQUIRE(process.store().set(key, value, {.expiry = Expiry::in(ttl)}).ok());
  };
  for (int i = 0; i < living; ++i) set("live." + std::to_string(i), 24h);
  for (int i = 0; i < peak; ++i) set("peak." + std::to_string(i), 20s);
  for (int i = 0; i < living; ++i) set("live." + std::to_string(i), 24h);
  // Of long ttls and erased: no span's end takes these away.
  for (int i = 0; i < peak; ++i) set("gone." + std::to_string(i), 24h);
  for (int i = 0; i < peak; ++i) REQUIRE(process.store().del("gone." + std::to_string(i)).value());
  const std::uint64_t full = disk_bytes(directory.path());
  clock.advance(20s);  // the peak ends
  process.engine->advance();
  const Stats stats = process.engine->stats();
  CHECK(process.engine->size(0) == living);
  CHECK(stats.bytes_records < std::uint64_t{living} * 200);
  CHECK(stats.wheel_items <= living + living / 4);
  const std::uint64_t live = stats.bytes_records;
  // The segment that is written, three that are ready and one to drain, each a 32nd of the log; the
  // reserve, two segments and 4 MiB; RocksDB's own files.
  const std::uint64_t floor = log_bytes / 32 * 7 + (std::size_t{6} << 20);
  INFO("full " << full << ", live " << live << ", floor " << floor);
  REQUIRE(full > 2 * (live + live / 2 + floor));
  std::uint64_t now = full;
  for (int seconds = 0; seconds < 60 && now > live + live / 2 + floor; seconds += 5) {
    clock.advance(5s);
    process.engine->advance();
    // The draining thread looks at the clock 20 times a second.
    for (int look = 0; look < 20'000 && now > live + live / 2 + floor; ++look) {
      now = disk_bytes(directory.path());
      std::this_thread::yield();
    }
  }
  CHECK(now <= live + live / 2 + floor);
  process.engine.reset();
  process.storage.reset();
  Process again{directory, clock, {.directory = {}, .log_bytes = log_bytes}};
  CHECK(again.engine->size(0) == living);
  CHECK(again.recovered.mutations < std::uint64_t{living} * 3 / 2);
}

}  // namespace semel::tests
