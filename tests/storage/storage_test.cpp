// A storage is closed and opened again, as after the end of a process.
#include "semel/storage.hpp"

#include <rocksdb/db.h>
#include <sys/stat.h>

#include <coroutine>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "semel/storage_tools.hpp"
#include "storage/archive/description.hpp"
#include "storage/log/disk.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// An engine on a storage, as one process has it.
struct Process {
  Process(const Directory& directory, ManualClock& clock, Durability level,
          StorageOptions options = {}) {
    options.directory = directory.path();
    auto opened = Storage::open(options, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = level,
                              .memory_bytes = std::size_t{64} << 20,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
    recovered = *report;
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
  RecoveryReport recovered;
};

/// A coroutine that nobody waits for.
struct Detached {
  struct promise_type {
    [[nodiscard]] Detached get_return_object() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

}  // namespace

TEST_CASE("storage: strings, erased keys and counters are there in the next process", "[storage]") {
  const Directory directory;
  ManualClock clock;
  const Durability level = GENERATE(Durability::logged, Durability::synced);
  {
    Process process{directory, clock, level};
    Store store = process.engine->store();
    REQUIRE(store.set("a", "1", {.expiry = Expiry::in(10s)}).ok());
    REQUIRE(store.set("b", "2").ok());
    REQUIRE(store.set("gone", "3").ok());
    REQUIRE(store.del("gone").value());
    REQUIRE(store.incr_by("n", 41).value() == 41);
    REQUIRE(store.incr_by("n", 1).value() == 42);
    REQUIRE(process.engine->store(5).set("a", "five").ok());
  }
  clock.advance(4s);
  Process process{directory, clock, level};
  Store store = process.engine->store();
  CHECK(store.get("a").value() == "1");
  CHECK(store.ttl("a").value().remaining == 6s);
  CHECK(store.get("b").value() == "2");
  CHECK_FALSE(store.get("gone").value());
  CHECK(store.get("n").value() == "42");
  CHECK(process.engine->store(5).get("a").value() == "five");
  CHECK(process.engine->size(0) == 3);
}

TEST_CASE("storage: an open storage without records reserves less than 2 MiB for its tables",
          "[storage]") {
  const Directory directory;
  ManualClock clock;
  const Process process{directory, clock, Durability::logged};
  std::uintmax_t blocks = 0;
  for (const auto& file : std::filesystem::directory_iterator{directory.of("rocksdb")}) {
    struct stat info {};
    REQUIRE(stat(file.path().c_str(), &info) == 0);
    blocks += static_cast<std::uintmax_t>(info.st_blocks);
  }
  CHECK(blocks * 512 < std::uintmax_t{2} << 20);
}

TEST_CASE("storage: what has ended does not come back", "[storage]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory, clock, Durability::logged};
    REQUIRE(process.engine->store().set("short", "1", {.expiry = Expiry::in(10s)}).ok());
    REQUIRE(process.engine->store().set("long", "2", {.expiry = Expiry::in(1h)}).ok());
  }
  clock.advance(10s);
  Process process{directory, clock, Durability::logged};
  CHECK_FALSE(process.engine->store().get("short").value());
  CHECK(process.engine->store().get("long").value() == "2");
  CHECK(process.recovered.ended == 1);
}

TEST_CASE("storage: a record with an earlier end than the one it replaced is not undone",
          "[storage]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory, clock, Durability::logged, {.directory = {}, .span = 1s}};
    REQUIRE(process.engine->store().set("k", "old", {.expiry = Expiry::in(1h)}).ok());
    REQUIRE(process.engine->store().set("k", "new", {.expiry = Expiry::in(5s)}).ok());
    REQUIRE(process.engine->store().set("d", "old", {.expiry = Expiry::in(1h)}).ok());
    REQUIRE(process.engine->store().del("d").value());
  }
  clock.advance(60s);  // the span of "new" is over, that of "old" is not
  {
    Process process{directory, clock, Durability::logged, {.directory = {}, .span = 1s}};
    REQUIRE(process.storage->drop_ended());
    CHECK_FALSE(process.engine->store().get("k").value());
    CHECK_FALSE(process.engine->store().get("d").value());
  }
  Process process{directory, clock, Durability::logged, {.directory = {}, .span = 1s}};
  CHECK_FALSE(process.engine->store().get("k").value());
  CHECK_FALSE(process.engine->store().get("d").value());
}

TEST_CASE("storage: what a span held is not read any more when the span is over", "[storage]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory, clock, Durability::logged, {.directory = {}, .span = 1s}};
    for (int i = 0; i < 100; ++i) {
      REQUIRE(process.engine->store()
                  .set("k" + std::to_string(i), "v", {.expiry = Expiry::in(5s)})
                  .ok());
    }
    REQUIRE(process.engine->store().set("stays", "v").ok());
    REQUIRE(process.storage->drain());
    clock.advance(10s);
    REQUIRE(process.engine->store().set("another", "v").ok());
  }
  Process process{directory, clock, Durability::logged, {.directory = {}, .span = 1s}};
  CHECK(process.recovered.mutations == 2);
  CHECK(process.engine->size(0) == 2);
}

TEST_CASE("storage: ended spans leave the disk", "[storage]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory, clock, Durability::logged, {.directory = {}, .span = 1s}};
  const std::string value(1000, 'v');
  const auto fill = [&](const std::string& prefix) {
    for (int i = 0; i < 2000; ++i) {
      REQUIRE(process.engine->store()
                  .set(prefix + std::to_string(i), value, {.expiry = Expiry::in(5s)})
                  .ok());
    }
  };
  fill("a");
  REQUIRE(process.engine->store().set("stays", value).ok());
  REQUIRE(process.storage->drain());
  CHECK(process.storage->stats().bytes_files > 2'000'000);
  clock.advance(10s);
  REQUIRE(process.storage->drop_ended());
  CHECK(process.storage->stats().bytes_files < 100'000);

  fill("b");
  clock.advance(10s);  // over before it was drained: it never gets there
  REQUIRE(process.storage->drop_ended());
  CHECK(process.storage->stats().mutations_ended > 0);  // the draining thread may have been earlier
  CHECK(process.storage->stats().bytes_files < 100'000);
}

TEST_CASE("storage: records come back out of the log, the files, and both", "[storage]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{.directory = {}, .log_bytes = std::size_t{8} << 20};
  for (int round = 0; round < 3; ++round) {
    Process process{directory, clock, Durability::logged, options};
    CHECK(process.engine->size(0) == static_cast<std::uint64_t>(round) * 200);
    for (int i = 0; i < 200; ++i) {
      const std::string key = std::to_string(round) + "." + std::to_string(i);
      REQUIRE(process.engine->store().set(key, "v").ok());
      if (i == 99) REQUIRE(process.storage->drain());
    }
  }
  Process process{directory, clock, Durability::logged, options};
  CHECK(process.engine->size(0) == 600);
  CHECK(process.recovered.unfinished == 0);
}

TEST_CASE("storage: what was replaced is forgotten when the files are written anew", "[storage]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory, clock, Durability::logged};
    const std::string value(10'000, 'v');
    for (int i = 0; i < 500; ++i) {
      REQUIRE(process.engine->store()
                  .set("k" + std::to_string(i % 10), value + std::to_string(i))
                  .ok());
      // What has been replaced by then does not reach the files.
      if (i % 10 == 9) REQUIRE(process.storage->drain());
    }
    REQUIRE(process.engine->store().set("gone", value).ok());
    REQUIRE(process.engine->store().del("gone").value());
    REQUIRE(process.storage->drain());
    const std::uint64_t before = process.storage->stats().bytes_files;
    CHECK(before > 4'000'000);
    REQUIRE(process.storage->rewrite(*process.engine));
    CHECK(process.storage->stats().bytes_files < before / 30);
    REQUIRE(process.engine->store().set("after", "1").ok());
  }
  Process process{directory, clock, Durability::logged};
  CHECK(process.engine->size(0) == 11);
  CHECK_FALSE(process.engine->store().get("gone").value());
  CHECK(process.engine->store().get("k9").value() == std::string(10'000, 'v') + "499");
  CHECK(process.engine->store().get("after").value() == "1");
  CHECK(process.recovered.mutations == 12);  // with the map of databases
}

TEST_CASE("storage: a key that is written over and over keeps the disk bounded by itself",
          "[storage]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{
      .directory = {}, .log_bytes = std::size_t{8} << 20, .garbage_bytes = std::size_t{4} << 20};
  Process process{directory, clock, Durability::logged, options};
  const std::string value(10'000, 'v');
  for (int i = 0; i < 5'000; ++i) REQUIRE(process.engine->store().set("k", value).ok());
  REQUIRE(process.storage->drain());
  // What is replaced while the newest change is being appended is kept, and gone with a rewrite:
  // where a busy machine stops the writer in the middle of that, this is more of them.
  CHECK(process.storage->stats().mutations_superseded >= 1'000);
  CHECK(process.storage->stats().bytes_files < 2 * options.garbage_bytes + (std::size_t{4} << 20));
}

TEST_CASE("storage: keys that are erased keep the disk bounded by rewrites", "[storage]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{
      .directory = {}, .log_bytes = std::size_t{8} << 20, .garbage_bytes = std::size_t{4} << 20};
  Process process{directory, clock, Durability::logged, options};
  const std::string value(10'000, 'v');
  for (int i = 0; i < 10'000 && process.storage->stats().rewrites < 3; ++i) {
    const std::string key = std::to_string(i);
    REQUIRE(process.engine->store().set(key, value).ok());
    REQUIRE(process.engine->store().del(key).value());
  }
  CHECK(process.storage->stats().rewrites >= 3);
  CHECK(process.storage->stats().bytes_files < 40'000'000);
}

TEST_CASE("storage: what a spill has moved is forgotten here, and found there", "[storage][cold]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  const auto live = [&](const auto& work) {
    auto storage = Storage::open({.directory = directory.path()}, clock);
    auto cold = open_cold_directory({.directory = beside.path()}, clock);
    REQUIRE(storage);
    REQUIRE(cold);
    auto engine = Engine::open(
        {.clock = &clock,
         .journal = storage->get(),
         .durability = Durability::logged,
         .cold = cold->get(),
         .memory_bytes = std::size_t{64} << 20,
         .first_version = std::max((*storage)->first_version(), (*cold)->first_version())});
    REQUIRE(engine);
    const auto report = (*storage)->recover(**engine);
    REQUIRE(report);
    work(**storage, **engine, *report);
  };
  live([&](Storage& storage, Engine& engine, const RecoveryReport&) {
    REQUIRE(engine.store(1).set("one", "1").ok());
    REQUIRE(engine.swap_db(0, 1));
    for (int i = 0; i < 500; ++i) {
      REQUIRE(engine.store().set("k" + std::to_string(i), "v", {.expiry = Expiry::in(1h)}).ok());
    }
    REQUIRE(engine.store().del("k7").value());
    REQUIRE(storage.drain());
    const auto spilled = engine.host().spill();
    REQUIRE(spilled);
    CHECK(spilled->records == 500);  // "one" and all but "k7"
    REQUIRE(engine.store().set("after", "2").ok());
    REQUIRE(engine.store().del("k8").value());
  });
  live([&](Storage&, Engine& engine, const RecoveryReport& report) {
    CHECK(report.mutations < 20);
    CHECK(engine.store().get("one").value() == "1");
    CHECK(engine.store().get("k499").value() == "v");
    CHECK(engine.store().get("after").value() == "2");
    CHECK_FALSE(engine.store().get("k7").value());
    CHECK_FALSE(engine.store().get("k8").value());
    clock.advance(1h);
    CHECK_FALSE(engine.store().get("k499").value());
  });
}

TEST_CASE("storage: an engine that a cold store would fill is refused", "[storage][cold]") {
  const Directory directory;
  const ManualClock clock;
  const auto cold = open_cold_directory({.directory = directory.path() + "/cold"}, clock);
  REQUIRE(cold);
  const auto small =
      Engine::open({.clock = &clock, .cold = cold->get(), .memory_bytes = std::size_t{16} << 20});
  REQUIRE_FALSE(small);
  CHECK(small.error().code == ErrorCode::bad_option);
  CHECK(small.error().detail.find("memory_bytes = 16777216") != std::string::npos);
  CHECK(
      Engine::open({.clock = &clock, .cold = cold->get(), .memory_bytes = std::size_t{64} << 20}));
}

TEST_CASE("storage: a value larger than a segment of the log comes back", "[storage]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{.directory = {}, .log_bytes = std::size_t{8} << 20};
  const bool drained = GENERATE(false, true);
  std::string value(1'000'000, 'v');
  for (std::size_t i = 0; i < value.size(); i += 7) value[i] = static_cast<char>(i);
  {
    Process process{directory, clock, Durability::logged, options};
    for (int i = 0; i < 20; ++i) {
      const auto set = process.engine->store().set("k" + std::to_string(i), value);
      if (!set.ok()) FAIL(set.error().message() + " " + process.storage->stats().trouble);
    }
    if (drained) REQUIRE(process.storage->drain());
  }
  Process process{directory, clock, Durability::logged, options};
  for (int i = 0; i < 20; ++i) {
    REQUIRE(process.engine->store().get("k" + std::to_string(i)).value() == value);
  }
}

TEST_CASE("storage: an engine whose values do not fit into the log is refused", "[storage]") {
  const Directory directory;
  ManualClock clock;
  auto storage =
      Storage::open({.directory = directory.path(), .log_bytes = std::size_t{1} << 20}, clock);
  REQUIRE(storage);
  const auto engine = Engine::open({.clock = &clock, .journal = storage->get()});
  REQUIRE_FALSE(engine);
  CHECK(engine.error().code == ErrorCode::bad_option);
  CHECK(engine.error().message().find("value_bytes_max = 1048576") != std::string::npos);
}

TEST_CASE("storage: a change that the log has no room for does not wait for ever", "[storage]") {
  class FullDisk final : public storage::Disk {
   public:
    [[nodiscard]] Result<int> create(const std::string& path, std::size_t bytes) override {
      // mo: relaxed: set by the thread that then asks
      if (!is_full.load(std::memory_order_relaxed)) return Disk::create(path, bytes);
      return Error{ErrorCode::storage_failed, path + ": no space"};
    }
    std::atomic<bool> is_full{false};
  };
  const Directory directory;
  ManualClock clock;
  FullDisk disk;
  StorageOptions options;
  options.directory = directory.path();
  options.log_bytes = std::size_t{1} << 20;  // segments of 32 KiB, of which four are made ahead
  options.confirm_within = 100ms;
  options.disk = &disk;
  auto storage = Storage::open(options, clock);
  REQUIRE(storage);
  auto engine = Engine::open({.clock = &clock,
                              .journal = storage->get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .key_bytes_max = 1'024,
                              .value_bytes_max = 64'000,
                              .first_version = (*storage)->first_version()});
  REQUIRE(engine);
  REQUIRE((*storage)->recover(**engine));
  Store store = (*engine)->store();
  REQUIRE(store.set("before", "v").ok());
  while ((*storage)->stats().bytes_log < std::size_t{128} << 10) std::this_thread::yield();
  disk.is_full.store(true, std::memory_order_relaxed);  // mo: relaxed: as above
  const std::string large(40'000, 'v');
  const std::array<KeyValue, 4> pairs{KeyValue{"a", large}, KeyValue{"b", large},
                                      KeyValue{"c", large}, KeyValue{"d", large}};
  const Status set = store.mset(pairs);
  REQUIRE_FALSE(set);
  CHECK(set.error().code == ErrorCode::outcome_unknown);
  CHECK((*storage)->stats().failed);
  CHECK((*storage)->stats().trouble.find("100 ms") != std::string::npos);
  CHECK(store.set("after", "v").error().code == ErrorCode::refused);
  CHECK(store.get("before").error().code == ErrorCode::outcome_unknown);  // at this level
}

TEST_CASE("storage: a restored backup holds what was there when it was made", "[storage]") {
  const Directory directory;
  const Directory beside;
  ManualClock clock;
  const std::string copy = beside.path() + "/copy";
  {
    Process process{directory, clock, Durability::logged};
    REQUIRE(process.engine->store().set("before", "1").ok());
    REQUIRE(process.storage->backup(copy));
    REQUIRE(process.engine->store().set("after", "1").ok());
    CHECK_FALSE(process.storage->backup(copy));  // it is there
  }
  REQUIRE(restore_backup(copy, beside.of("restored")));
  auto storage = Storage::open({.directory = beside.of("restored")}, clock);
  if (!storage) FAIL(storage.error().message());
  auto engine = Engine::open(
      {.clock = &clock, .journal = storage->get(), .first_version = (*storage)->first_version()});
  REQUIRE((*storage)->recover(**engine));
  CHECK((*engine)->store().get("before").value() == "1");
  CHECK_FALSE((*engine)->store().get("after").value());
}

TEST_CASE("storage: a callback and a coroutine are told when it is synced", "[storage]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory, clock, Durability::logged};
  REQUIRE(process.engine->store().set("k", "v").ok());
  std::promise<bool> told;
  process.engine->confirm_async(Durability::synced,
                                [&](const Status& status) { told.set_value(status.has_value()); });
  CHECK(told.get_future().get());
  CHECK(process.storage->stats().syncs >= 1);
  std::promise<bool> resumed;
  [](Engine& engine, std::promise<bool>& done) -> Detached {
    bool good = true;
    for (int i = 0; i < 1'000; ++i) {
      good = good && (co_await engine.confirmed(Durability::logged)).has_value();
    }
    REQUIRE(engine.store().set("k", "w").ok());
    good = good && (co_await engine.confirmed(Durability::synced)).has_value();
    done.set_value(good);
  }(*process.engine, resumed);
  CHECK(resumed.get_future().get());
}

TEST_CASE("storage: claims come back; owners of the last process are dead, remote ones are not",
          "[storage][claims]") {
  const Directory directory;
  ManualClock clock;
  Epoch done_epoch = 0;
  Epoch mine_epoch = 0;
  Epoch remote_epoch = 0;
  {
    Process process{directory, clock, Durability::logged};
    Claims claims = process.engine->claims("jobs", Policy{}).value();
    done_epoch = claims.claim({.key = "done"}).epoch;
    REQUIRE(claims.complete({.key = "done", .epoch = done_epoch, .payload = "42"}).answer ==
            OwnerAnswer::ok);
    mine_epoch = claims.claim({.key = "mine"}).epoch;
    remote_epoch = claims.claim({.key = "remote", .session = 0}).epoch;
  }
  clock.advance(30s);
  Process process{directory, clock, Durability::logged};
  Claims claims = process.engine->claims("jobs", Policy{}).value();
  const ClaimOutcome done = claims.claim({.key = "done"});
  CHECK(done.answer == ClaimAnswer::replay);
  CHECK(done.result == "42");
  const ClaimOutcome mine = claims.claim({.key = "mine"});
  CHECK(mine.answer == ClaimAnswer::granted);
  CHECK(mine.takeover);
  CHECK(mine.epoch > std::max({done_epoch, mine_epoch, remote_epoch}));
  const ClaimOutcome remote = claims.claim({.key = "remote"});
  CHECK(remote.answer == ClaimAnswer::in_flight);
  CHECK(remote.remaining == 60s);  // in full, from the moment it was put back
  CHECK(claims.complete({.key = "remote", .epoch = remote_epoch, .payload = "late"}).answer ==
        OwnerAnswer::ok);
}

TEST_CASE("storage: a remote owner's lease that started again is kept in later processes",
          "[storage][claims]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{.directory = {}, .span = 1s};
  Policy policy;
  policy.lease = 60s;
  policy.attempts_ttl = 1s;
  {
    Process process{directory, clock, Durability::logged, options};
    Claims claims = process.engine->claims("jobs", policy).value();
    REQUIRE(claims.claim({.key = "k", .session = 0}).answer == ClaimAnswer::granted);
  }
  clock.advance(50s);
  { Process process{directory, clock, Durability::logged, options}; }
  clock.advance(40s);  // beyond the first end, within the second
  Process process{directory, clock, Durability::logged, options};
  Claims claims = process.engine->claims("jobs", policy).value();
  CHECK(claims.claim({.key = "k"}).answer == ClaimAnswer::in_flight);
}

TEST_CASE("storage: a remote owner's lease starts again however long nothing ran",
          "[storage][claims]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{.directory = {}, .span = 1s};
  Policy policy;
  policy.lease = 60s;
  policy.attempts_ttl = Millis{GENERATE(1, 1'000, 3'600'000)};
  const bool drains = GENERATE(false, true);
  Epoch released = 0;
  {
    Process process{directory, clock, Durability::logged, options};
    Claims claims = process.engine->claims("jobs", policy).value();
    REQUIRE(claims.claim({.key = "held", .session = 0}).answer == ClaimAnswer::granted);
    released = claims.claim({.key = "released", .session = 0}).epoch;
    REQUIRE(claims.release({.key = "released", .epoch = released}).answer == OwnerAnswer::ok);
    REQUIRE(claims.claim({.key = "dropped", .session = 0}).answer == ClaimAnswer::granted);
    REQUIRE(claims.forget("dropped").value());
    REQUIRE(claims.claim({.key = "over", .lease = 1s, .session = 0}).answer ==
            ClaimAnswer::granted);
    REQUIRE(claims.claim({.key = "mine"}).answer == ClaimAnswer::granted);
    clock.advance(20s);
    if (drains) REQUIRE(process.storage->drain());
  }
  clock.advance(70s);  // beyond the lease, but its owner could not renew it
  for (int life = 0; life < 2; ++life) {
    Process process{directory, clock, Durability::logged, options};
    Claims claims = process.engine->claims("jobs", policy).value();
    const ClaimOutcome held = claims.claim({.key = "held"});
    CHECK(held.answer == ClaimAnswer::in_flight);
    CHECK(held.remaining == 60s);
    CHECK(claims.get("released").value().state == ClaimState::absent);
    CHECK(claims.get("dropped").value().state == ClaimState::absent);
    if (policy.attempts_ttl < 10s) CHECK(claims.get("over").value().state == ClaimState::absent);
    CHECK(process.recovered.unknown_namespaces.empty());
  }
}

TEST_CASE("storage: a hold that was completed does not come back", "[storage][claims]") {
  const Directory directory;
  ManualClock clock;
  const StorageOptions options{.directory = {}, .span = 1s};
  Policy policy;
  policy.result_ttl = 5s;
  {
    Process process{directory, clock, Durability::logged, options};
    Claims claims = process.engine->claims("jobs", policy).value();
    const Epoch epoch = claims.claim({.key = "k", .session = 0}).epoch;
    REQUIRE(claims.complete({.key = "k", .epoch = epoch}).answer == OwnerAnswer::ok);
  }
  for (int i = 0; i < 3; ++i) {
    clock.advance(4s);
    Process process{directory, clock, Durability::logged, options};
    Claims claims = process.engine->claims("jobs", policy).value();
    const ClaimState wanted = i == 0 ? ClaimState::done : ClaimState::absent;
    CHECK(claims.get("k").value().state == wanted);
  }
}

TEST_CASE("storage: what a later release wrote is refused", "[storage]") {
  const Directory directory;
  ManualClock clock;
  { Process process{directory, clock, Durability::logged}; }
  {
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    rocksdb::DB* opened = nullptr;
    REQUIRE(rocksdb::DB::Open({}, directory.path() + "/rocksdb", {{"default", {}}, {"journal", {}}},
                              &families, &opened)
                .ok());
    const std::unique_ptr<rocksdb::DB> database{opened};
    const std::string later = std::string(7, '\0') + static_cast<char>(storage::format_version + 1);
    REQUIRE(database->Put({}, "format", later).ok());
    for (auto* family : families) REQUIRE(database->DestroyColumnFamilyHandle(family).ok());
  }
  const auto opened = Storage::open({.directory = directory.path()}, clock);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ErrorCode::storage_newer);
}

TEST_CASE("storage: versions of a process that was lost are not given out again", "[storage]") {
  const Directory directory;
  ManualClock clock;
  Version last = 0;
  for (int life_number = 0; life_number < 3; ++life_number) {
    Process process{directory, clock,
                    Durability::memory};  // nobody waits: some of it may not be written
    for (int i = 0; i < 100; ++i) {
      const auto result = process.engine->store().set("k" + std::to_string(i), "v");
      REQUIRE(result.ok());
      CHECK(result->version > last);
    }
    last = process.engine->store().set("last", "v").value().version;
  }
}

TEST_CASE("storage: swapped and flushed databases stay so", "[storage]") {
  const Directory directory;
  ManualClock clock;
  {
    Process process{directory, clock, Durability::logged};
    REQUIRE(process.engine->store(0).set("k", "zero").ok());
    REQUIRE(process.engine->store(1).set("k", "one").ok());
    REQUIRE(process.engine->store(2).set("k", "two").ok());
    REQUIRE(process.engine->swap_db(0, 1));
    CHECK(process.engine->flush(2).value() == 1);
    REQUIRE(process.engine->confirm(Durability::logged));
  }
  Process process{directory, clock, Durability::logged};
  CHECK(process.engine->store(0).get("k").value() == "one");
  CHECK(process.engine->store(1).get("k").value() == "zero");
  CHECK_FALSE(process.engine->store(2).get("k").value());
}

TEST_CASE("storage: many threads at once, all of it is there", "[storage][race]") {
  const Directory directory;
  ManualClock clock;
  constexpr int thread_count = 4;
  constexpr int each = 2'000;
  {
    Process process{directory, clock, Durability::logged};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t) {
      threads.emplace_back([&, t] {
        Store store = process.engine->store();
        for (int i = 0; i < each; ++i) {
          if (!store.set("t" + std::to_string(t) + "." + std::to_string(i), "v").ok()) ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(refused == 0);
    REQUIRE(process.storage->drain());
    CHECK(process.storage->stats().mutations_drained == thread_count * each);
  }
  Process process{directory, clock, Durability::logged};
  CHECK(process.engine->size(0) == thread_count * each);
  CHECK(process.engine->host().check_invariants().empty());
}

TEST_CASE("storage: a second process is refused by name", "[storage]") {
  const Directory directory;
  ManualClock clock;
  Process process{directory, clock, Durability::logged};
  const auto second = Storage::open({.directory = directory.path()}, clock);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::storage_in_use);
}

TEST_CASE("storage: options out of range are refused with the value and the range", "[storage]") {
  const Directory directory;
  ManualClock clock;
  const auto error = Storage::open({.directory = directory.path(), .sync_every = 0ms}, clock);
  REQUIRE_FALSE(error);
  CHECK(error.error().message().find("sync_every = 0, range 1..60000") != std::string::npos);
  const auto none = Engine::open({.durability = Durability::logged});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::bad_option);
}

}  // namespace semel::tests
