// What has ended or was erased stays so when power goes and the next boot meets a wall clock that
// was set back: its durable clock goes on from the last time on disk, and not from the last one.
// tests/storage/faults/lives.cpp does it at random.
#include <filesystem>
#include <memory>
#include <string>

#include "semel/cold_directory.hpp"
#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/directory.hpp"
#include "tests/support/catch.hpp"

namespace fs = std::filesystem;

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t unix_zero = 1'700'000'000'000;

/// A machine from its boot on. `unix_ms`: what its wall clock shows then.
struct Boot {
  Boot(const std::string& name, std::int64_t unix_ms) : disk(name), clock(Millis{1'000}, unix_ms) {}
  BootDisk disk;
  ManualClock clock;
};

/// The process that uses the storage, and perhaps a cold store, of a directory. A span ends up to
/// an hour after what is in it, so no file goes meanwhile.
struct Process {
  Process(const std::string& directory, Boot& boot, bool has_cold = false) {
    fs::create_directories(directory);
    auto opened = Storage::open({.directory = directory + "/storage",
                                 .sync_every = 60s,
                                 .log_bytes = std::size_t{1} << 20,
                                 .span = 1h,
                                 .disk = &boot.disk},
                                boot.clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    if (has_cold) {
      auto beside = open_cold_directory({.directory = directory + "/cold",
                                         .cache_bytes = std::size_t{1} << 20,
                                         .disk = &boot.disk},
                                        boot.clock);
      if (!beside) FAIL(beside.error().message());
      cold = *std::move(beside);
    }
    auto made = Engine::open({.clock = &boot.clock,
                              .journal = storage.get(),
                              .durability = Durability::synced,
                              .cold = cold.get(),
                              .spill_ttl_min = Millis{0},
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 1'024,
                              .background = std::nullopt,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    const auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
  }
  void set(const std::string& key, Millis ttl) const {
    const Expiry expiry = ttl == 0ms ? Expiry::clear() : Expiry::in(ttl);
    REQUIRE(engine->store().set(key, "v", {.expiry = expiry}).ok());
  }
  [[nodiscard]] bool has(const std::string& key) const {
    const auto value = engine->store().get(key);
    if (!value.ok()) FAIL(value.error().message());
    return value->has_value();
  }
  void spill() const {
    REQUIRE(storage->drain());
    const auto done = engine->host().spill();
    if (!done) FAIL(done.error().message());
  }

  std::unique_ptr<Storage> storage;
  std::unique_ptr<ColdStore> cold;
  std::unique_ptr<Engine> engine;  // ends first
};

/// What a power cut leaves now if of the checkpoint nothing was synced since `mark` was kept.
std::string cut(const Directory& directory, const std::string& mark) {
  fs::copy(directory.of("live"), directory.of("cut"), fs::copy_options::recursive);
  fs::copy_file(mark, directory.of("cut") + "/storage/mark", fs::copy_options::overwrite_existing);
  return directory.of("cut");
}

std::string keep_mark(const Directory& directory) {
  fs::copy_file(directory.of("live") + "/storage/mark", directory.of("mark"));
  return directory.of("mark");
}

}  // namespace

TEST_CASE("clock cut: an erase that was dropped at its end stays in force if that time is lost",
          "[storage][boot][clock]") {
  const Directory directory;
  Boot one{"one", unix_zero};
  Boot two{"two", unix_zero - 48 * 3'600'000};
  std::string image;
  {
    Process process{directory.of("live"), one};
    const std::string mark = keep_mark(directory);
    process.set("stays", 0ms);
    process.set("erased", 1h);
    process.set("shortened", 1h);
    Claims claims = *process.engine->claims("work", {.lease = 1h, .result_ttl = 1h});
    const Epoch epoch = claims.claim({.key = "forgotten", .session = SessionId{0}}).epoch;
    REQUIRE(claims.complete({.key = "forgotten", .epoch = epoch}).answer == OwnerAnswer::ok);
    REQUIRE(process.storage->drain());
    REQUIRE(*process.engine->store().del("erased"));
    process.set("shortened", 1s);
    REQUIRE(*claims.forget("forgotten"));
    one.clock.advance(61min);
    process.set("later", 0ms);
    REQUIRE(process.storage->drain());
    REQUIRE(process.storage->stats().mutations_ended >= 3);
    image = cut(directory, mark);
  }
  const Process process{image, two};
  CHECK(process.has("stays"));
  CHECK(process.has("later"));
  CHECK_FALSE(process.has("erased"));
  CHECK_FALSE(process.has("shortened"));
  Claims claims = *process.engine->claims("work", {.lease = 1h, .result_ttl = 1h});
  CHECK(claims.get("forgotten")->state == ClaimState::absent);
}

TEST_CASE("clock cut: what has ended may be there again, and a delete that found nothing is no end",
          "[storage][boot][clock]") {
  const Directory directory;
  Boot one{"one", unix_zero};
  Boot two{"two", unix_zero - 48 * 3'600'000};
  std::string image;
  {
    Process process{directory.of("live"), one};
    process.set("ended", 1h);
    process.set("deleted", 1h);
    process.set("found", 1h);
    const std::string mark = keep_mark(directory);
    one.clock.advance(59min);
    REQUIRE(*process.engine->store().del("found"));
    one.clock.advance(2min);
    CHECK_FALSE(process.has("ended"));
    CHECK_FALSE(*process.engine->store().del("deleted"));
    image = cut(directory, mark);
  }
  const Process process{image, two};
  CHECK(process.has("ended"));
  CHECK(process.has("deleted"));
  CHECK_FALSE(process.has("found"));
  two.clock.advance(1h);
  CHECK_FALSE(process.has("ended"));
  CHECK_FALSE(process.has("deleted"));
}

TEST_CASE("clock cut: a cold record that was erased stays so when the erase has ended",
          "[storage][cold][boot][clock]") {
  const Directory directory;
  Boot one{"one", unix_zero};
  Boot two{"two", unix_zero - 48 * 3'600'000};
  {
    Process process{directory.of("live"), one, true};
    process.set("stays", 0ms);
    process.spill();  // a generation that keeps the next one
    process.set("erased", 2h);
    process.spill();
    one.clock.advance(1h);
    REQUIRE(*process.engine->store().del("erased"));
    one.clock.advance(90min);
    REQUIRE(process.storage->drop_ended());
    REQUIRE(process.storage->stats().mutations_ended == 1);
    REQUIRE(process.cold->stats().generations == 2);
  }
  const Process process{directory.of("live"), two, true};
  CHECK(process.has("stays"));
  CHECK_FALSE(process.has("erased"));
}

TEST_CASE("clock cut: an erase that a spill left out stays in force if that time is lost",
          "[storage][cold][boot][clock]") {
  const Directory directory;
  Boot one{"one", unix_zero};
  Boot two{"two", unix_zero - 48 * 3'600'000};
  std::string image;
  {
    Process process{directory.of("live"), one, true};
    const std::string mark = keep_mark(directory);
    process.set("stays", 0ms);
    process.spill();  // a generation that keeps the next one
    process.set("erased", 2h);
    process.spill();
    one.clock.advance(1h);
    REQUIRE(*process.engine->store().del("erased"));
    process.set("later", 0ms);
    REQUIRE(process.storage->drain());
    one.clock.advance(90min);
    process.engine->advance();
    REQUIRE(process.engine->stats().records == 1);  // the delete marker is gone
    process.set("last", 0ms);  // after the end of the batch, so that the spill makes that void
    const auto done = process.engine->host().spill();
    REQUIRE(done);
    REQUIRE(process.storage->stats().mutations_ended == 0);
    REQUIRE(process.cold->stats().generations == 3);
    image = cut(directory, mark);
  }
  const Process process{image, two, true};
  CHECK(process.has("stays"));
  CHECK(process.has("later"));
  CHECK_FALSE(process.has("erased"));
}

TEST_CASE("clock cut: a step forward of a running process' wall clock ends no cold record early",
          "[storage][cold][boot][clock]") {
  const Directory directory;
  Boot one{"one", unix_zero};
  Boot two{"two", unix_zero + 25 * 3'600'000};  // 24 h ahead since the process ran
  {
    Process process{directory.of("live"), one, true};
    process.set("cold", 2h);
    process.set("warm", 2h);
    process.spill();
    process.set("warm", 2h);
    one.clock.advance(30min);
    one.clock.step_wall(24h);
    one.clock.advance(30min);
  }
  {
    const Process process{directory.of("live"), two, true};
    CHECK(process.has("warm"));
    CHECK(process.has("cold"));
    two.clock.step_wall(-30h);
    two.clock.advance(30min);
  }
  Boot three{"three", two.clock.unix_ms()};
  const Process process{directory.of("live"), three, true};
  three.clock.advance(30min - 1ms);
  CHECK(process.has("cold"));
  CHECK(process.has("warm"));
  three.clock.advance(1ms);
  CHECK_FALSE(process.has("cold"));
  CHECK_FALSE(process.has("warm"));
}

}  // namespace semel::tests
