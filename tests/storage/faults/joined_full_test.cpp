// A storage with joined commits on a full disk: their data is in RocksDB's log, and there is no
// room for the table that RocksDB would make of it.
#include <algorithm>
#include <filesystem>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/rocksdb.hpp"
#include "semel/semel.hpp"
#include "tests/storage/faults/failing_disk.hpp"
#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t effect_bytes = 40'000;
constexpr int commits = 60;
constexpr std::size_t roomy = std::size_t{64} << 20;

struct JoinedLife {
  JoinedLife(const std::string& directory, FailingDisk& disk, const Clock& clock,
             std::size_t buffer_bytes) {
    StorageOptions options{.directory = directory, .log_bytes = std::size_t{4} << 20};
    options.disk = &disk;
    rocksdb::ColumnFamilyOptions effects;
    effects.write_buffer_size = buffer_bytes;
    auto opened = open_storage(options, clock, {{"effects", effects}});
    if (!opened) {
      refusal = opened.error().message();
      return;
    }
    storage = *std::move(opened);
    engine = Engine::open({.clock = &clock,
                           .journal = storage.get(),
                           .durability = Durability::synced,
                           .memory_bytes = std::size_t{64} << 20,
                           .value_bytes_max = 1'000,
                           .first_version = storage->first_version()})
                 .value();
    if (const auto report = storage->recover(*engine); !report) {
      refusal = report.error().message();
    }
  }
  bool finish(int number) const {
    Claims claims = engine->claims("jobs", {.lease = 60s}).value();
    const std::string key = std::to_string(number);
    const Epoch epoch = claims.claim({.key = key}).epoch;
    rocksdb::WriteBatch effects;
    REQUIRE(effects.Put(family(*storage, "effects"), key, std::string(effect_bytes, 'e')).ok());
    const auto done =
        complete_joined(*storage, claims, {.key = key, .epoch = epoch, .payload = "paid"}, effects);
    return done && done->written;
  }
  void check_finished(int count) const {
    Claims claims = engine->claims("jobs", {.lease = 60s}).value();
    for (int i = 0; i < count; ++i) {
      const std::string key = std::to_string(i);
      CHECK(claims.claim({.key = key}).result == "paid");
      std::string effect;
      CHECK(database(*storage).Get({}, family(*storage, "effects"), key, &effect).ok());
      CHECK(effect.size() == effect_bytes);
    }
  }
  std::string refusal;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

}  // namespace

TEST_CASE("joined: a storage with joined commits is opened on a full disk",
          "[storage][joined][faults][between-17]") {
  const Scratch scratch;
  const std::string directory = scratch / "storage";
  const ManualClock clock;
  FailingDisk disk{{"/rocksdb/", ".sst"}, Step::create, FailingDisk::How::no_space};
  disk.heal();
  {
    const JoinedLife life{directory, disk, clock, roomy};
    REQUIRE(life.refusal.empty());
    for (int i = 0; i < commits; ++i) REQUIRE(life.finish(i));
  }
  // As they were, and so small that the log is several memtables, as after a table that could not
  // be written.
  const std::size_t buffer_bytes = GENERATE(as<std::size_t>{}, roomy, effect_bytes * commits / 4);
  INFO("memtables of " << buffer_bytes << " bytes");
  for (int i = 0; i < 2; ++i) {
    disk.be_full(true);
    disk.fail_after(0);
    const JoinedLife life{directory, disk, clock, buffer_bytes};
    REQUIRE(life.refusal.empty());
    life.check_finished(commits);
    CHECK_FALSE(life.finish(commits));
    // It would stop RocksDB.
    CHECK_FALSE(life.storage->backup(scratch / "backup"));
    CHECK_FALSE(life.storage->stats().failed);
  }
  disk.heal();
  {
    disk.be_full(true);
    const JoinedLife life{directory, disk, clock, buffer_bytes};
    REQUIRE(life.refusal.empty());
    disk.be_full(false);  // there is space again
    while (!life.storage->stats().accepting) static_cast<void>(life.storage->drain());
    CHECK(life.finish(commits));
    life.check_finished(commits + 1);
  }
  const JoinedLife life{directory, disk, clock, roomy};
  REQUIRE(life.refusal.empty());
  life.check_finished(commits + 1);
}

}  // namespace semel::faults
