// After a failed sync the system takes bytes for clean that the disk does not have.
#include "tests/storage/faults/power_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"
#include "tests/support/catch.hpp"

namespace semel::faults {
namespace {

Result<World> open_on(PowerDisk& disk, const std::string& root, const Clock& clock) {
  StorageOptions options;
  options.directory = root + "/storage";
  options.sync_every = Millis{5};
  options.log_bytes = std::size_t{1} << 20;
  options.disk = &disk;
  return open_world(options, clock, Durability::synced);
}

/// Writes until a sync fails. The value that may have been lost, or none: it failed elsewhere.
std::string write_until_it_fails(PowerDisk& disk, const std::string& root, const Clock& clock) {
  auto world = open_on(disk, root, clock);
  std::string value;
  for (int i = 0; world && i < 400 && !disk.has_failed(); ++i) {
    value = std::to_string(i);
    static_cast<void>(world->engine->store().set("key", value));
  }
  disk.cut();
  return world && disk.has_failed() ? value : std::string{};
}

}  // namespace

// The process that failed may have left a mark that names no boot, or one of another boot than its
// own: what is behind the last sync that succeeded is written again all the same.
TEST_CASE("failed sync: what the next process shows outlives a power cut, whatever boot is named",
          "[failed_sync]") {
  struct Boots {
    const char* failing;
    const char* next;
  };
  const Boots boots = GENERATE(Boots{"one", "one"}, Boots{"", ""}, Boots{"one", "none"});
  CAPTURE(boots.failing, boots.next);
  int shown = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Scratch scratch;
    const std::string root = scratch / "root";
    const std::string image = scratch / "image";
    const JumpingClock clock;
    PowerDisk failing{{.root = root,
                       .boot = boots.failing,
                       .seed = seed,
                       .failing = PowerDisk::Failing::disk,
                       .fail_at = 20 + seed}};
    const std::string lost = write_until_it_fails(failing, root, clock);
    if (lost.empty()) continue;
    std::string found;
    {
      PowerDisk disk{{.root = root, .image = image, .boot = boots.next, .seed = seed}, failing};
      auto world = open_on(disk, root, clock);
      REQUIRE(world);
      const auto value = world->engine->store().get("key");
      REQUIRE(value.ok());
      found = value->value_or("");
      disk.cut();
    }
    shown += found == lost ? 1 : 0;
    PowerDisk disk{{.root = image, .boot = "two", .seed = seed}};
    const JumpingClock later{clock.unix_ms()};
    auto world = open_on(disk, image, later);
    REQUIRE(world);
    CHECK(world->engine->store().get("key")->value_or("") == found);
  }
  CHECK(shown > 0);
}

}  // namespace semel::faults
