// What a start that is ended before it has recovered leaves to the next one.
#include <filesystem>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/storage_tools.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/directory.hpp"
#include "tests/storage/faults/interrupted_starts.hpp"
#include "tests/storage/golden.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::faults {
namespace {

void check_starts(const StartSubject& subject, const StartsWanted& wanted) {
  const StartsFound found = interrupt_starts(subject, wanted);
  CHECK(found.interrupted >= 5);
  for (const std::string& wrong : found.wrong) FAIL_CHECK(wrong);
}

}  // namespace

TEST_CASE("storage: starts that are interrupted at any step keep the holds of remote owners",
          "[storage][claims][between-9]") {
  const bool has_cold = GENERATE(false, true);
  const tests::Directory directory{tests::Directory::Medium::memory};
  const auto subject = new_subject(directory.of("made"), has_cold);
  if (!subject) FAIL(subject.error().message());
  check_starts(*subject, {.seed = 9, .stride = has_cold ? 3U : 2U});
}

TEST_CASE("upgrade: starts that are interrupted at any step keep the holds of remote owners",
          "[storage][upgrade][between-9]") {
  std::uint64_t first = 1;
  for (const std::string& archive : tests::files_in(SEMEL_GOLDEN, ".tar.gz")) {
    INFO(archive);
    const tests::Directory directory{tests::Directory::Medium::memory};
    REQUIRE(tests::golden::unpack(archive, directory.of("")));
    check_starts(golden_subject(directory.of("golden")), {.seed = 9, .first = first, .stride = 6});
    ++first;
  }
}

TEST_CASE("backup: a storage that has not recovered gives its holds to its backup",
          "[storage][backup][between-9]") {
  const tests::Directory directory{tests::Directory::Medium::memory};
  const auto subject = new_subject(directory.of("made"), false);
  if (!subject) FAIL(subject.error().message());
  const ManualClock clock{subject->now.time_since_epoch() + subject->downtime,
                          subject->unix_ms + subject->downtime.count()};
  tests::BootDisk disk{"boot 0"};
  {
    auto unused = subject->open(subject->directory, clock, disk, false);
    if (!unused) FAIL(unused.error().message());
    SECTION("with its files as they are") {}
    SECTION("with what had ended dropped from them") {
      REQUIRE(unused->storage->drop_ended());
    }
    const auto made = unused->storage->backup(directory.of("backup"));
    if (!made) FAIL(made.error().message());
  }
  std::filesystem::create_directory(directory.of("restored"));
  const Status restored = restore_backup(directory.of("backup"), directory.of("restored/storage"));
  if (!restored) FAIL(restored.error().message());
  for (const std::string& path : {directory.of("made"), directory.of("restored")}) {
    INFO(path);
    auto process = subject->open(path, clock, disk, true);
    if (!process) FAIL(process.error().message());
    for (const std::string& wrong : subject->wrong(*process)) FAIL_CHECK(wrong);
  }
}

}  // namespace semel::faults
