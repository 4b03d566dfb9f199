// An absolute end that a client gave is the same after restarts, within a boot and after one.
#include <cstdint>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/directory.hpp"
#include "tests/support/phase_clock.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

/// One life of a process on the storage.
struct Life {
  Life(const Directory& directory, const Clock& clock, storage::Disk& disk) {
    StorageOptions options{.directory = directory.path(), .log_bytes = std::size_t{1} << 20};
    options.disk = &disk;
    auto opened = Storage::open(options, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 64'000,
                              .first_version = storage->first_version()});
    if (!made) FAIL(made.error().message());
    engine = *std::move(made);
    REQUIRE(storage->recover(*engine));
  }
  [[nodiscard]] std::int64_t end_of(const std::string& key) const {
    Store store = engine->store(0);
    const auto ttl = store.ttl(key);
    REQUIRE(ttl);
    REQUIRE(ttl->found);
    return store.to_unix_ms(ttl->due);
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

}  // namespace

TEST_CASE("storage: an absolute end is the same after every restart and boot",
          "[storage][ttl][once-again-20]") {
  const Directory directory;
  std::int64_t boot_us = 900'000'123'400;
  std::int64_t lead_us = PhaseClock::wall_lead_us;
  const std::int64_t end = (boot_us + lead_us) / 1000 + 86'400'000;
  for (int life = 0; life < 24; ++life) {
    if (life % 4 == 3) {  // the machine is started again, 10 s later by its wall clock
      const std::int64_t wall_us = boot_us + lead_us + 10'000'000;
      boot_us = 5'000'777 + life * 1'371;
      lead_us = wall_us - boot_us;
    }
    BootDisk disk{"boot " + std::to_string(life / 4 + (life % 4 == 3 ? 1 : 0))};
    const ExactPhaseClock clock{boot_us, 137, lead_us};
    INFO("life " << life);
    {
      const Life process{directory, clock, disk};
      Store store = process.engine->store(0);
      for (int key = 0; key < life; ++key) {
        CHECK(process.end_of("k" + std::to_string(key)) == end + key);
      }
      const std::string key = "k" + std::to_string(life);
      REQUIRE(store.set(key, "v", {.expiry = Expiry::at(store.from_unix_ms(end + life))}).ok());
      CHECK(process.end_of(key) == end + life);
    }
    boot_us = clock.boot_us() + 3'333;
  }
}

}  // namespace semel::tests
