// verify, repair, inspect and restore, on storages that were damaged on purpose.
//
//   finding   what verify says is wrong      sound   without findings
//   segment   a file of the log              table   a file behind it
//   loss      what repair cannot keep
#include "semel/storage_tools.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

#include "storage/log/log_format.hpp"
#include "tests/storage/repair/tool_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

StorageCheck verified(const std::string& directory) {
  const auto before = picture(directory);
  auto check = verify_storage(directory);
  if (!check) FAIL(check.error().message());
  CHECK(picture(directory) == before);
  return *check;
}

StorageRepair repaired(const std::string& directory) {
  auto repair = repair_storage(directory, true);
  if (!repair) FAIL(repair.error().message());
  CHECK(repair->changed);
  const StorageCheck after = verified(directory);
  for (const StorageFinding& finding : after.findings) {
    FAIL(finding.file << ": " << finding.what);
  }
  return *repair;
}

/// 100 records in files, 100 in the log.
Version make(const std::string& directory, const Clock& clock) {
  ToolLife process{directory, clock};
  process.fill("file", 100);
  REQUIRE(process.storage->drain());
  process.fill("log", 100);
  return process.storage->first_version();
}

std::string segment_with_records(const std::string& directory) {
  const auto info = inspect_storage(directory);
  REQUIRE(info);
  for (const auto& segment : info->segments) {
    if (segment.records > 10) return segment.file;
  }
  FAIL("no segment has records");
  return {};
}

std::string journal_table(const std::string& directory) {
  const auto info = inspect_storage(directory);
  REQUIRE(info);
  for (const auto& file : info->files) {
    if (file.family == "journal" && file.span_last != 0) return file.file;
  }
  FAIL("no file holds blobs");
  return {};
}

}  // namespace

TEST_CASE("verify: a sound storage has no findings and is not changed", "[storage][tools]") {
  const Directory directory;
  const ManualClock clock;
  make(directory.of("s"), clock);
  const StorageCheck check = verified(directory.of("s"));
  CHECK(check.findings.empty());
  CHECK(check.mutations == 200);
  CHECK(check.segments >= 1);
  CHECK(check.blobs >= 1);
  CHECK(check.bytes > 100'000);
}

TEST_CASE("verify: a storage in use is refused, by this process too", "[storage][tools]") {
  const Directory directory;
  const ManualClock clock;
  const ToolLife process{directory.of("s"), clock};
  CHECK(verify_storage(directory.of("s")).error().code == ErrorCode::storage_in_use);
  CHECK(repair_storage(directory.of("s"), true).error().code == ErrorCode::storage_in_use);
  CHECK(inspect_storage(directory.of("s")).error().code == ErrorCode::storage_in_use);
  CHECK(restore_backup(directory.of("s"), directory.of("t")).error().code ==
        ErrorCode::storage_in_use);
}

TEST_CASE("verify: what is no storage is an error, not a finding", "[storage][tools]") {
  const Directory directory;
  CHECK(verify_storage(directory.of("none")).error().code == ErrorCode::storage_failed);
  std::filesystem::create_directory(directory.of("empty"));
  CHECK(verify_storage(directory.of("empty")).error().detail.find("is not a storage") !=
        std::string::npos);
  CHECK(std::filesystem::is_empty(directory.of("empty")));
}

TEST_CASE("verify: any changed byte of a file of the database names that file",
          "[storage][tools][attack]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  REQUIRE(verified(path).findings.empty());
  std::size_t tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator{path + "/rocksdb"}) {
    if (entry.path().extension() != ".sst") continue;
    ++tables;
    const std::string file = entry.path().string();
    const std::uint64_t bytes = std::filesystem::file_size(file);
    // Blocks all over the file, and what is behind them: properties, index, footer.
    std::set<std::uint64_t> offsets;
    for (std::uint64_t at = 0; at < bytes; at += std::max<std::uint64_t>(bytes / 3, 1)) {
      offsets.insert(at);
    }
    for (const std::uint64_t behind : {1U, 9U, 20U, 35U, 53U, 70U, 120U, 200U}) {
      offsets.insert(bytes - std::min(bytes, behind));
    }
    for (const std::uint64_t offset : offsets) {
      flip(file, offset);
      const StorageCheck check = verified(path);
      CAPTURE(file, offset, bytes);
      REQUIRE_FALSE(check.findings.empty());
      CHECK(check.findings[0].file == file);
      flip(file, offset);
    }
  }
  CHECK(tables > 0);
  CHECK(verified(path).findings.empty());
}

TEST_CASE("repair: a flipped byte in the log costs one record", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  const Version first = make(path, clock);
  const std::string segment = segment_with_records(path);
  flip(segment, 4096 + 2000);  // inside the value of one of the first records

  const StorageCheck check = verified(path);
  REQUIRE(check.findings.size() == 1);
  CHECK(check.findings[0].file == segment);
  CHECK(check.findings[0].offset.value() > 4096);
  CHECK(check.findings[0].records_lost == 1);
  CHECK(check.findings[0].bytes_lost.value() > 500);
  CHECK(check.findings[0].bytes_lost.value() < 600);

  const auto before = picture(path);
  const auto told = repair_storage(path, false);
  REQUIRE(told);
  CHECK_FALSE(told->changed);
  CHECK(told->found.findings.size() == 1);
  CHECK(picture(path) == before);

  const StorageRepair repair = repaired(path);
  CHECK(repair.mutations == 199);
  CHECK(std::filesystem::exists(repair.moved_to + "/log"));
  CHECK(std::filesystem::exists(repair.moved_to + "/rocksdb"));
  ToolLife process{path, clock};
  CHECK(process.count("file", 100) == 100);
  CHECK(process.count("log", 100) == 99);
  CHECK(process.storage->first_version() > first + (Version{1} << 47));
}

TEST_CASE("repair: two damaged places of the log are both found", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  const std::string segment = segment_with_records(path);
  flip(segment, 4096 + 2000);
  flip(segment, 4096 + 20'000);
  CHECK(verified(path).findings.size() == 2);
  repaired(path);
  ToolLife process{path, clock};
  CHECK(process.count("log", 100) == 98);
}

TEST_CASE("repair: a missing segment is found, and the rest kept", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  std::filesystem::remove(segment_with_records(path));
  const StorageCheck check = verified(path);
  REQUIRE(check.findings.size() == 1);
  CHECK(check.findings[0].what == "is missing");
  repaired(path);
  ToolLife process{path, clock};
  CHECK(process.count("file", 100) == 100);
}

TEST_CASE("repair: a damaged block of a table costs its blob alone", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  {
    ToolLife process{path, clock};
    process.fill("file", 800);  // several blobs of 64 KiB
    REQUIRE(process.storage->drain());
  }
  std::string table;
  std::uint64_t bytes = 0;
  const auto info = inspect_storage(path);
  REQUIRE(info);
  for (const auto& file : info->files) {
    if (file.family == "journal" && file.bytes > bytes) table = file.file, bytes = file.bytes;
  }
  REQUIRE(bytes > 150'000);
  flip(table,
       GENERATE(std::uint64_t{100}, std::uint64_t{70'000}));  // in the first and in the second blob
  const StorageCheck check = verified(path);
  REQUIRE(check.findings.size() == 1);
  CHECK(check.findings[0].file == table);
  CHECK(check.findings[0].offset);
  CHECK(check.findings[0].bytes_lost.value() > 50'000);
  repaired(path);
  ToolLife process{path, clock};
  const int kept = process.count("file", 800);
  CHECK(kept > 800 - 150);
  CHECK(kept < 800);
}

TEST_CASE("repair: a missing or empty table does not take the others along", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  const std::string table = journal_table(path);
  if (GENERATE(true, false)) {
    std::filesystem::remove(table);
  } else {
    std::filesystem::resize_file(table, 0);
  }
  const StorageCheck check = verified(path);
  REQUIRE_FALSE(check.findings.empty());
  CHECK(check.findings.size() <= 2);  // RocksDB cannot be opened; an empty file is one as well
  CHECK(check.findings[0].file == table);
  repaired(path);
  ToolLife process{path, clock};
  CHECK(process.count("log", 100) == 100);
}

TEST_CASE("repair: without a manifest the files are read for themselves", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  const Version first = make(path, clock);
  const std::string what = GENERATE(as<std::string>{}, "CURRENT", "MANIFEST");
  for (const auto& entry : std::filesystem::directory_iterator{path + "/rocksdb"}) {
    if (entry.path().filename().string().starts_with(what)) {
      std::filesystem::remove(entry.path());
    }
  }
  CHECK_FALSE(verified(path).findings.empty());
  repaired(path);
  ToolLife process{path, clock};
  CHECK(process.count("file", 100) == 100);
  CHECK(process.count("log", 100) == 100);
  CHECK(process.storage->first_version() > first + (Version{1} << 47));
}

TEST_CASE("repair: a damaged or missing mark is written anew", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  if (GENERATE(true, false)) {
    std::filesystem::remove(path + "/mark");
  } else {
    flip(path + "/mark", 10);
    flip(path + "/mark", 4096 + 10);
  }
  CHECK(verified(path).findings.size() == 1);
  repaired(path);
  ToolLife process{path, clock};
  CHECK(process.count("file", 100) == 100);
  CHECK(process.count("log", 100) == 100);
}

TEST_CASE("repair: an unfinished repair is begun again or finished", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  flip(segment_with_records(path), 4096 + 2000);
  std::filesystem::copy(path, directory.of("whole"), std::filesystem::copy_options::recursive);
  repaired(directory.of("whole"));
  const int moved = GENERATE(-1, 0, 1, 2, 3);  // how far it had come; -1: not complete
  std::filesystem::create_directory(path + "/repaired");
  const char* const names[] = {"/rocksdb", "/log", "/mark"};
  for (int i = 0; i < 3; ++i) {
    const std::string whole = directory.of("whole") + names[i];
    if (i < moved) std::filesystem::remove_all(path + names[i]);
    std::filesystem::copy(whole, i < moved ? path + names[i] : path + "/repaired" + names[i],
                          std::filesystem::copy_options::recursive);
  }
  if (moved >= 0) std::ofstream{path + "/repaired/complete"} << "12345678";
  CHECK_FALSE(verified(path).findings.empty());
  repaired(path);
  CHECK_FALSE(std::filesystem::exists(path + "/repaired"));
  ToolLife process{path, clock};
  CHECK(process.count("file", 100) == 100);
  CHECK(process.count("log", 100) == 99);
}

TEST_CASE("verify: a segment that was being made when the process was killed is no damage",
          "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  make(path, clock);
  const auto info = inspect_storage(path);
  REQUIRE(info);
  // Made and zeroed, its header not written.
  const std::string next = path + "/log/" + storage::segment_name(info->segments.back().end);
  std::ofstream{next, std::ios::binary} << std::string(65'536, '\0');
  const bool has_record = GENERATE(false, true);
  if (has_record) flip(next, 4096);
  CHECK(verified(path).findings.size() == (has_record ? 1 : 0));
  const auto opened = Storage::open({.directory = path, .log_bytes = std::size_t{1} << 20}, clock);
  CHECK(opened.has_value() != has_record);
}

TEST_CASE("inspect: shows every mutation with its times", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  {
    ToolLife process{path, clock};
    REQUIRE(process.engine->store().set("ends", "1", {.expiry = Expiry::in(1h)}).ok());
    REQUIRE(process.storage->drain());
    REQUIRE(process.engine->store(3).set("stays", "22").ok());
  }
  std::set<std::string> seen;
  const auto before = picture(path);
  const auto info = inspect_storage(path, [&](const StoredMutation& stored) {
    seen.emplace(stored.mutation.key);
    if (stored.mutation.key == "ends") {
      CHECK(stored.mutation.due.time_since_epoch().count() == clock.unix_ms() + 3'600'000);
      CHECK(stored.file.ends_with(".sst"));
    }
    if (stored.mutation.key == "stays") {
      CHECK(stored.mutation.due == no_end);
      CHECK(stored.mutation.db == 3);
      CHECK(stored.mutation.value == "22");
      CHECK(stored.file.ends_with(".log"));
    }
  });
  REQUIRE(info);
  CHECK(picture(path) == before);
  CHECK(seen == std::set<std::string>{"ends", "stays"});
  CHECK(info->format == 9);
  CHECK(info->storage_id != 0);
  CHECK(info->line_ms == clock.unix_ms());
}

TEST_CASE("restore: no version of a backup's time to come is given again", "[storage][tools]") {
  const Directory directory;
  const std::string path = directory.of("s");
  const ManualClock clock;
  Version last = 0;
  {
    ToolLife process{path, clock};
    process.fill("file", 50);
    REQUIRE(process.storage->backup(directory.of("backup")));
    process.fill("later", 50);
    last = process.storage->first_version() + 1'000'000;
  }
  REQUIRE(restore_backup(directory.of("backup"), directory.of("again")));
  CHECK(verified(directory.of("again")).findings.empty());
  {
    ToolLife process{directory.of("again"), clock};
    CHECK(process.count("file", 50) == 50);
    CHECK(process.count("later", 50) == 0);
    CHECK(process.storage->first_version() > last);
    CHECK(process.storage->first_version() > (Version{1} << 48));
  }
  const Status there = restore_backup(directory.of("backup"), directory.of("again"));
  REQUIRE_FALSE(there);
  CHECK(there.error().detail.find("is there already") != std::string::npos);
}

TEST_CASE("restore: a storage that nothing was written to is drained and copied as well",
          "[storage][tools]") {
  const Directory directory;
  const ManualClock clock;
  for (int process = 0; process < 2; ++process) {
    const ToolLife opened{directory.of("s"), clock};
    REQUIRE(opened.storage->drain());
    if (process == 1) REQUIRE(opened.storage->backup(directory.of("backup")));
  }
  REQUIRE(restore_backup(directory.of("backup"), directory.of("again")));
  CHECK(verified(directory.of("again")).findings.empty());
}

TEST_CASE("restore: a damaged backup is refused, and nothing is left of the copy",
          "[storage][tools]") {
  const Directory directory;
  const ManualClock clock;
  {
    ToolLife process{directory.of("s"), clock};
    process.fill("file", 50);
    REQUIRE(process.storage->backup(directory.of("backup")));
  }
  flip(journal_table(directory.of("backup")), 100);
  const Status status = restore_backup(directory.of("backup"), directory.of("again"));
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::storage_damaged);
  int left = 0;
  for (const auto& entry : std::filesystem::directory_iterator{directory.of("")}) {
    left += entry.path().filename().string().starts_with("again");
  }
  CHECK(left == 0);
}

}  // namespace semel::tests
