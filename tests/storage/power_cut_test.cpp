// What counts of a log after a boot, by hand: tests/storage/faults/lives.cpp does it at random.
// A copy of a storage that is open is what a power cut, or a kill, leaves of it.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "semel/semel.hpp"
#include "semel/storage.hpp"
#include "semel/storage_tools.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/log_scan.hpp"
#include "tests/storage/boot_disk.hpp"
#include "tests/storage/directory.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t log_bytes = std::size_t{1} << 20;  // segments of 32 KiB

StorageOptions options_of(const std::string& directory, storage::Disk& disk) {
  StorageOptions options;
  options.directory = directory;
  options.log_bytes = log_bytes;
  options.sync_every = 60s;
  options.disk = &disk;
  return options;
}

struct Process {
  Process(const std::string& directory, const Clock& clock, storage::Disk& disk,
          std::size_t bytes = log_bytes) {
    StorageOptions options = options_of(directory, disk);
    options.log_bytes = bytes;
    auto opened = Storage::open(options, clock);
    if (!opened) FAIL(opened.error().message());
    storage = *std::move(opened);
    auto made = Engine::open({.clock = &clock,
                              .journal = storage.get(),
                              .durability = Durability::logged,
                              .memory_bytes = std::size_t{64} << 20,
                              .value_bytes_max = 4'096,
                              .first_version = storage->first_version()});
    REQUIRE(made);
    engine = *std::move(made);
    const auto report = storage->recover(*engine);
    if (!report) FAIL(report.error().message());
  }
  [[nodiscard]] bool has(const std::string& key) {
    return engine->store().get(key).value().has_value();
  }
  /// Writes a record that the checkpoint knows of: it is written after the round of syncing that
  /// acknowledges, so the second round comes behind that of the first.
  void write(const std::string& key) {
    for (int round = 0; round < 2; ++round) {
      REQUIRE(engine->store().set(key, "v").ok());
      REQUIRE(engine->confirm(Durability::synced).ok());
    }
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;  // ends first
};

void copy(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

std::vector<std::string> segments_of(const std::string& directory) {
  auto names = storage::list_directory(directory + "/log");
  REQUIRE(names);
  for (std::string& name : *names) name.insert(0, directory + "/log/");
  return *names;
}

/// The first segment of each process. One that is being made has no header yet.
std::vector<std::string> firsts_of(const std::string& directory) {
  std::vector<std::string> firsts;
  for (const std::string& path : segments_of(directory)) {
    std::ifstream file{path, std::ios::binary};
    storage::SegmentHeader header;
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (header.is_valid() && header.first == header.number) firsts.push_back(path);
  }
  return firsts;
}

/// Takes the second record out of a segment, as if its writer had not come to begin it.
void erase_second_record(const std::string& path) {
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  const auto opened = storage::SegmentFile::open(path);
  REQUIRE(opened);
  const auto bytes_at = [&](std::size_t at) {
    const storage::FoundRecord found = storage::record_at(opened->bytes(), opened->header(), at);
    REQUIRE(found.is == storage::FoundRecord::Is::whole);
    return found.bytes;
  };
  const std::size_t second =
      storage::segment_header_bytes + bytes_at(storage::segment_header_bytes);
  const std::string zeros(bytes_at(second), '\0');
  file.seekp(static_cast<std::streamoff>(second));
  file.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  REQUIRE(file.good());
}

/// Has room for the log, and says that there is none for files.
class FullDisk final : public storage::Disk {
 public:
  explicit FullDisk(std::string boot) : boot_(std::move(boot)) {}
  [[nodiscard]] std::string boot_id() override { return boot_; }
  [[nodiscard]] std::size_t bytes_free(const std::string&) override { return 0; }

 private:
  const std::string boot_;
};

}  // namespace

TEST_CASE("power cut: behind a segment that is gone nothing counts", "[storage][boot]") {
  const Directory directory;
  const std::string left = directory.path() + "/left";
  ManualClock clock;
  BootDisk first{"one"};
  BootDisk second{"two"};
  constexpr int count = 120;
  {
    Process process{directory.path() + "/storage", clock, first};
    for (int i = 0; i < count; ++i) {
      REQUIRE(process.engine->store().set(std::to_string(i), std::string(1'000, 'v')).ok());
    }
    copy(directory.path() + "/storage", left);
  }
  REQUIRE(segments_of(left).size() >= 4);
  REQUIRE(std::filesystem::remove(segments_of(left)[1]));
  Process process{left, clock, second};
  int there = 0;
  while (process.has(std::to_string(there))) ++there;
  CHECK(there > 0);
  CHECK(there < count);
  CHECK(process.engine->size(0) == static_cast<std::uint64_t>(there));
}

TEST_CASE("power cut: what a process wrote after it, and was killed, counts as after any kill",
          "[storage][boot]") {
  const Directory directory;
  const std::string cut = directory.path() + "/cut";
  const std::string killed = directory.path() + "/killed";
  ManualClock clock;
  BootDisk first{"one"};
  BootDisk second{"two"};
  {
    Process process{directory.path() + "/storage", clock, first};
    REQUIRE(process.engine->store().set("old", "v").ok());
    copy(directory.path() + "/storage", cut);
  }
  {
    // No space, so what the cut left is not drained, and the mark is that of the first boot.
    FullDisk full{"two"};
    Process process{cut, clock, full};
    for (const char* const key : {"a", "b", "c"}) {
      REQUIRE(process.engine->store().set(key, "v").ok());
    }
    copy(cut, killed);
  }
  erase_second_record(firsts_of(killed).back());
  const std::string later = directory.path() + "/later";
  copy(killed, later);

  Process same_boot{killed, clock, second};
  CHECK(same_boot.has("old"));
  CHECK(same_boot.has("a"));
  CHECK_FALSE(same_boot.has("b"));
  CHECK(same_boot.has("c"));

  BootDisk third{"three"};
  Process next_boot{later, clock, third};
  CHECK(next_boot.has("old"));
  CHECK(next_boot.has("a"));
  CHECK_FALSE(next_boot.has("c"));
}

TEST_CASE("kill: a segment of a process that had not drained those before it is missed",
          "[storage][boot]") {
  const Directory directory;
  const std::string killed = directory.path() + "/killed";
  const std::string again = directory.path() + "/again";
  const std::string later = directory.path() + "/later";
  ManualClock clock;
  FullDisk full{"one"};  // nothing is drained
  const auto live = [&](const std::string& at, const std::string& key, const std::string& left) {
    Process process{at, clock, full};
    process.write(key);
    copy(at, left);
  };
  live(directory.path() + "/storage", "a", killed);
  live(killed, "b", again);
  live(again, "c", later);
  const std::vector<std::string> written = firsts_of(later);
  REQUIRE(written.size() == 3);
  for (const std::string& gone : written) {
    INFO(gone);
    const Directory other;
    const std::string damaged = other.path() + "/storage";
    copy(later, damaged);
    const std::string file = damaged + gone.substr(later.size());
    REQUIRE(std::filesystem::remove(file));
    const auto opened = Storage::open(options_of(damaged, full), clock);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().message().find(file) != std::string::npos);
  }
  Process process{later, clock, full};
  for (const char* const key : {"a", "b", "c"}) CHECK(process.has(key));
}

TEST_CASE("kill: a start that changes nothing needs no segment of its own, of whatever size",
          "[storage][boot]") {
  const Directory directory;
  ManualClock clock;
  FullDisk full{"one"};  // nothing is drained
  const std::string storage = directory.path() + "/storage";
  const std::string killed = directory.path() + "/killed";
  {
    Process process{storage, clock, full};
    process.write("a");
    copy(storage, killed);
  }
  for (const std::size_t times : {1U, 8U, 1U}) {
    CAPTURE(times);
    StorageOptions options = options_of(killed, full);
    options.log_bytes = times * log_bytes;
    {
      const auto opened = Storage::open(options, clock);  // and ends before it is recovered
      if (!opened) FAIL(opened.error().message());
    }
    const auto check = verify_storage(killed);
    REQUIRE(check);
    CHECK(check->is_sound());
  }
  Process process{killed, clock, full};
  CHECK(process.has("a"));
}

TEST_CASE("kill: a segment of another size is missed as well", "[storage][boot]") {
  const Directory directory;
  ManualClock clock;
  FullDisk full{"one"};
  const auto live = [&](const std::string& at, const std::string& key, std::size_t times,
                        const std::string& left) {
    Process process{at, clock, full, times * log_bytes};
    process.write(key);
    copy(at, directory.path() + left);
  };
  live(directory.path() + "/storage", "a", 1, "/first");
  live(directory.path() + "/first", "b", 8, "/second");
  live(directory.path() + "/second", "c", 1, "/third");
  const std::string third = directory.path() + "/third";
  const std::vector<std::string> written = firsts_of(third);
  REQUIRE(written.size() == 3);
  for (const std::string& gone : written) {
    INFO(gone);
    const Directory other;
    const std::string damaged = other.path() + "/storage";
    copy(third, damaged);
    REQUIRE(std::filesystem::remove(damaged + gone.substr(third.size())));
    CHECK_FALSE(Storage::open(options_of(damaged, full), clock));
  }
  Process process{third, clock, full};
  for (const char* const key : {"a", "b", "c"}) CHECK(process.has(key));
}

TEST_CASE("power cut: a mark that was being made is no damage", "[storage][boot]") {
  ManualClock clock;
  BootDisk disk{"one"};
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{512}, std::size_t{8'191}}) {
    const Directory directory;
    std::filesystem::create_directories(directory.path() + "/log");
    std::ofstream{directory.path() + "/mark"} << std::string(bytes, '\0');
    Process process{directory.path(), clock, disk};
    CHECK(process.engine->store().set("a", "1").ok());
  }
}

}  // namespace semel::tests
