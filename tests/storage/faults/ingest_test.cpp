// RocksDB cannot take a file in: the log is not emptied any more until the storage is opened again,
// and trying again and again leaves nothing behind.
#include <filesystem>
#include <memory>
#include <string>
#include "tests/support/catch.hpp"

#include "storage/archive/archive.hpp"
#include "tests/storage/faults/failing_disk.hpp"
#include "tests/storage/faults/scratch.hpp"
#include "tests/storage/faults/world.hpp"

namespace semel::faults {
namespace {

using storage::Archive;
using storage::BlobSet;

/// Syncs of the manifest while files are taken in: that numbers for them are in use, and then that
/// they are there.
constexpr int manifest_syncs_before = 1;

/// Tables of the database, and those on their way to it.
std::size_t tables_in(const std::string& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory}) {
    count += entry.path().extension() == ".sst" ? 1 : 0;
  }
  return count;
}

std::unique_ptr<Archive> open_archive(FailingDisk& disk, const std::string& directory) {
  std::filesystem::create_directories(directory);
  auto opened = Archive::open(disk, {.directory = directory});
  if (!opened) FAIL(opened.error().message());
  return *std::move(opened);
}

BlobSet one_blob(storage::LogOffset offset) {
  BlobSet blobs;
  blobs.add(1'000, offset, "a mutation");
  return blobs;
}

}  // namespace

TEST_CASE("ingest: what failed is not tried again, and leaves no files but its own",
          "[storage][faults][ingest]") {
  struct Failing {
    const char* part;
    int after;
  };
  // What says that they are there; what comes before that; a table that is linked to its place.
  const Failing failing = GENERATE(Failing{"MANIFEST", manifest_syncs_before},
                                   Failing{"MANIFEST", 0}, Failing{"/rocksdb/0", 0});
  INFO("cannot be synced: " << failing.part << " after " << failing.after);
  const Scratch scratch;
  const std::string directory = scratch / "storage";
  FailingDisk disk{{failing.part}};
  {
    const auto archive = open_archive(disk, directory);
    REQUIRE(archive->add(one_blob(1), 1));
    CHECK_FALSE(archive->is_stuck());
    CHECK(archive->ingest_status());
    disk.fail_after(failing.after);
    const Status failed = archive->add(one_blob(2), 2);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == ErrorCode::storage_failed);
    CHECK(failed.error().detail.find("Input/output error") != std::string::npos);
    CHECK(failed.error().detail.ends_with("; open the storage again"));
    CHECK(archive->is_stuck());
    const std::size_t tables = tables_in(directory);
    for (storage::LogOffset offset = 3; offset < 10; ++offset) {
      const Status refused = archive->add(one_blob(offset), offset);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().detail == failed.error().detail);
      CHECK(tables_in(directory) == tables);
    }
    // That the disk is well again is no reason: what it holds is not known.
    disk.heal();
    CHECK_FALSE(archive->add(one_blob(10), 10));
    CHECK(tables_in(directory) == tables);
  }
  const auto archive = open_archive(disk, directory);
  CHECK_FALSE(archive->is_stuck());
  const std::size_t tables = tables_in(directory);
  CHECK(tables <= 4);  // those of the first, and those of the second, if the manifest names them
  REQUIRE(archive->add(one_blob(11), 11));
  CHECK(archive->drained().value() == 11);
  CHECK(tables_in(directory) <= tables + 2);
}

TEST_CASE("ingest: a storage whose files cannot be taken in says so until it is opened again",
          "[storage][faults][ingest]") {
  const Scratch scratch;
  FailingDisk disk{{"MANIFEST"}};
  const JumpingClock clock;
  StorageOptions options;
  options.directory = scratch / "storage";
  options.log_bytes = std::size_t{1} << 20;
  options.disk = &disk;
  {
    auto world = open_world(options, clock, Durability::synced);
    REQUIRE(world);
    REQUIRE(world->engine->store().set("before", "1").ok());
    REQUIRE(world->storage->drain());
    CHECK_FALSE(world->storage->stats().failed);
    disk.fail_after(manifest_syncs_before);
    REQUIRE(world->engine->store().set("meanwhile", "2").ok());
    const Status drained = world->storage->drain();
    REQUIRE_FALSE(drained);
    CHECK(drained.error().detail.find("open the storage again") != std::string::npos);
    disk.heal();
    const std::size_t tables = tables_in(options.directory);
    // Of these rounds most find nothing to be drained; that does not make it well.
    for (int i = 0; i < 5; ++i) {
      const StorageStats stats = world->storage->stats();
      CHECK(stats.failed);
      CHECK(stats.trouble.find("; open the storage again") != std::string::npos);
      CHECK_FALSE(world->storage->drain());
      CHECK_FALSE(world->storage->rewrite(*world->engine));
    }
    CHECK(tables_in(options.directory) == tables);
    CHECK(world->engine->store().set("after", "3").ok());  // the log has room
  }
  auto world = open_world(options, clock, Durability::synced);
  REQUIRE(world);
  CHECK(world->engine->store().get("before").value() == "1");
  CHECK(world->engine->store().get("meanwhile").value() == "2");
  CHECK(world->engine->store().get("after").value() == "3");
  REQUIRE(world->storage->drain());
  CHECK_FALSE(world->storage->stats().failed);
  CHECK(world->storage->stats().trouble.empty());
}

}  // namespace semel::faults
