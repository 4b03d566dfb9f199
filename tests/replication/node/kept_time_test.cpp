// The group's time on the disk: of this boot or another, of this cluster, and what of it is synced.
#include "replication/log/kept_time.hpp"

#include <string>

#include "tests/storage/directory.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {

using namespace replication;

namespace {

constexpr std::uint64_t own_cluster = 7;

class BootedDisk final : public storage::Disk {
 public:
  [[nodiscard]] Status sync(int descriptor, const std::string& path) override {
    ++syncs;
    return Disk::sync(descriptor, path);
  }
  [[nodiscard]] std::string boot_id() override { return boot; }

  std::string boot = "first";
  int syncs = 0;
};

TimeContent known(std::int64_t boot_ms, std::int64_t behind) {
  TimeContent made;
  made.boot_ms = boot_ms;
  made.offset = 1'700'000'000'000;
  made.term = 3;
  made.behind = behind;
  return made;
}

}  // namespace

TEST_CASE("kept time: the next process finds it, of this boot or of another",
          "[group_clock][between-8]") {
  const Directory directory;
  BootedDisk disk;
  for (const std::string boot : {"first", "second", "third"}) {
    disk.boot = boot;
    for (std::int64_t run = 1; run <= 3; ++run) {
      KeptTime time = KeptTime::open(directory.path(), own_cluster, disk);
      CAPTURE(boot, run);
      REQUIRE(time.is_open());
      CHECK(time.found().has_value() == (boot != "first" || run != 1));
      CHECK(time.is_of_this_boot() == (run != 1));
      if (run != 1) CHECK(time.found()->boot_ms == 10 * (run - 1));
      // Of a boot that wrote more, less must not count as older.
      for (int i = boot == "first" ? 9 : 2; i-- > 0;) time.write(known(10 * run, 0));
    }
  }
  disk.boot.clear();  // not known: every other, perhaps
  CHECK_FALSE(KeptTime::open(directory.path(), own_cluster, disk).is_open());
}

TEST_CASE("kept time: another cluster's does not count", "[group_clock]") {
  const Directory directory;
  BootedDisk disk;
  for (const std::uint64_t of : {own_cluster, own_cluster + 1, own_cluster}) {
    KeptTime time = KeptTime::open(directory.path(), of, disk);
    CHECK_FALSE(time.found());
    CHECK_FALSE(time.is_of_this_boot());
    time.write(known(1, 0));
  }
}

TEST_CASE("kept time: what the group fell behind is synced", "[group_clock][between-8]") {
  const Directory directory;
  BootedDisk disk;
  const auto syncs_of = [&](KeptTime& time, std::int64_t behind) {
    disk.syncs = 0;
    time.write(known(10, behind));
    return disk.syncs;
  };
  {
    KeptTime time = KeptTime::open(directory.path(), own_cluster, disk);
    CHECK(syncs_of(time, -5'000) == 0);
    CHECK(syncs_of(time, 9) == 0);
    CHECK(syncs_of(time, 10) == 1);
    CHECK(syncs_of(time, 19) == 0);
    CHECK(syncs_of(time, 2'020) == 1);
    CHECK(syncs_of(time, 100) == 0);  // it comes up
    CHECK(syncs_of(time, 110) == 1);  // and falls again, behind what a power cut may have left
    CHECK(syncs_of(time, 100) == 0);
  }
  KeptTime time = KeptTime::open(directory.path(), own_cluster, disk);
  CHECK(time.found()->behind == 100);
  CHECK(syncs_of(time, 109) == 0);
  CHECK(syncs_of(time, 110) == 1);
}

}  // namespace semel::tests
