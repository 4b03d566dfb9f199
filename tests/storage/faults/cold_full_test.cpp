// A cold store whose disk is full, or fails: it takes spills again by itself when there is space.
#include <filesystem>
#include <string>
#include "tests/support/catch.hpp"

#include "semel/engine_host.hpp"
#include "semel/semel.hpp"
#include "tests/storage/faults/failing_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

constexpr int keys_each = 2'000;

void fill(World& world, const std::string& prefix) {
  Store store = world.engine->store();
  for (int i = 0; i < keys_each; ++i) {
    REQUIRE(store.set(prefix + std::to_string(i), "value of " + prefix).ok());
  }
}

int count(World& world, const std::string& prefix) {
  Store store = world.engine->store();
  int found = 0;
  for (int i = 0; i < keys_each; ++i) {
    found += store.get(prefix + std::to_string(i)).value() == "value of " + prefix ? 1 : 0;
  }
  return found;
}

/// Tables of the cold store, and parts on their way to it.
std::size_t files_in(const std::string& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory}) {
    const auto extension = entry.path().extension();
    count += extension == ".sst" || extension == ".part" ? 1 : 0;
  }
  return count;
}

struct Failing {
  const char* part;
  Step step;
  int after;
};

}  // namespace

TEST_CASE("cold: a spill that met a full disk is made up for when there is space",
          "[storage][faults][cold]") {
  // A part on its way; the name of it in the database; the manifest, before and after it names the
  // part.
  const Failing failing =
      GENERATE(Failing{".part", Step::write, 0}, Failing{".part", Step::sync, 0},
               Failing{".sst", Step::sync, 0}, Failing{"MANIFEST", Step::sync, 0},
               Failing{"MANIFEST", Step::sync, 1}, Failing{"MANIFEST", Step::write, 0},
               Failing{"MANIFEST", Step::write, 1}, Failing{".log", Step::write, 0},
               Failing{".log", Step::sync, 0});
  const auto how = GENERATE(FailingDisk::How::no_space, FailingDisk::How::input_output);
  INFO(failing.part << ", step " << static_cast<int>(failing.step) << ", after " << failing.after);
  const Scratch scratch;
  FailingDisk disk{{"/cold/cold/", failing.part}, failing.step, how};
  const JumpingClock clock;
  StorageOptions options;
  options.directory = scratch / "storage";
  options.log_bytes = std::size_t{4} << 20;
  const std::string cold = scratch / "cold";
  options.disk = &disk;
  {
    auto world = open_world(options, clock, Durability::logged, Joins::no, cold);
    REQUIRE(world);
    fill(*world, "a");
    REQUIRE(world->engine->host().spill());
    fill(*world, "b");
    const std::size_t files = files_in(cold);
    disk.fail_after(failing.after);
    for (int i = 0; i < 20; ++i) {
      CHECK_FALSE(world->engine->host().spill());
      if (i % 8 != 0) continue;
      CHECK(count(*world, "a") == keys_each);
      CHECK(count(*world, "b") == keys_each);
    }
    CHECK(files_in(cold) <= files + 41);  // two small ones an attempt, and no part
    disk.heal();
    const auto spilled = world->engine->host().spill();
    if (!spilled) FAIL(spilled.error().message());
    CHECK(spilled->records >= keys_each);
    CHECK(files_in(cold) <= files + 10);
    CHECK(count(*world, "a") == keys_each);
    CHECK(count(*world, "b") == keys_each);
  }
  auto world = open_world(options, clock, Durability::logged, Joins::no, cold);
  if (!world) FAIL(world.error().message());
  CHECK(count(*world, "a") == keys_each);
  CHECK(count(*world, "b") == keys_each);
  fill(*world, "c");
  CHECK(world->engine->host().spill());
}

TEST_CASE("cold: nothing is begun where there is no space for a part", "[storage][faults][cold]") {
  const Scratch scratch;
  FailingDisk disk{{}};
  const JumpingClock clock;
  StorageOptions options;
  options.directory = scratch / "storage";
  options.disk = &disk;
  auto world = open_world(options, clock, Durability::logged, Joins::no, scratch / "cold");
  REQUIRE(world);
  fill(*world, "a");
  const std::size_t files = files_in(scratch / "cold");
  disk.be_full(true);
  for (int i = 0; i < 3; ++i) {
    const auto refused = world->engine->host().spill();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::storage_failed);
    CHECK(refused.error().detail.find("no space") != std::string::npos);
  }
  CHECK(files_in(scratch / "cold") == files);
  CHECK(count(*world, "a") == keys_each);
  disk.be_full(false);
  REQUIRE(world->engine->host().spill());
  CHECK(count(*world, "a") == keys_each);
}

}  // namespace semel::faults
