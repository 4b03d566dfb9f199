// The disk that loses power, before anything is concluded from it: what was synced is there after
// every cut, what was not is sometimes there, sometimes gone, sometimes torn.
#include "tests/storage/faults/power_disk.hpp"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/file_system.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include "tests/support/catch.hpp"

#include "storage/log/checkpoint.hpp"
#include "storage/log/log_scan.hpp"
#include "storage/log/segment.hpp"
#include "tests/storage/faults/scratch.hpp"

namespace semel::faults {
namespace {

constexpr std::size_t file_bytes = 8192;

std::string read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

PowerDisk::Options options_of(const Scratch& scratch, std::uint64_t seed) {
  const std::string name = std::to_string(seed);
  return {.root = scratch / ("root" + name),
          .image = scratch / ("image" + name),
          .boot = name,
          .seed = seed};
}

std::shared_ptr<rocksdb::FileSystem> files_of(PowerDisk& disk) {
  return disk.env()->GetFileSystem();
}

void append(rocksdb::FSWritableFile& file, const std::string& bytes) {
  REQUIRE(file.Append(bytes, {}, nullptr).ok());
}

std::unique_ptr<rocksdb::FSWritableFile> make(PowerDisk& disk, const std::string& path) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  REQUIRE(files_of(disk)->NewWritableFile(path, {}, &file, nullptr).ok());
  return file;
}

void sync_directory(PowerDisk& disk, const std::string& path) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  REQUIRE(files_of(disk)->NewDirectory(path, {}, &directory, nullptr).ok());
  REQUIRE(directory->Fsync({}, nullptr).ok());
}

}  // namespace

TEST_CASE("power disk: a mapped file holds what was synced, and of the rest any sectors",
          "[power_disk]") {
  const Scratch scratch;
  std::set<std::size_t> arrived;  // how many sectors did
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    PowerDisk disk{options_of(scratch, seed)};
    const std::string path = scratch / ("root" + std::to_string(seed)) + "/map";
    const auto descriptor = disk.create(path, file_bytes);
    REQUIRE(descriptor.ok());
    void* mapped = mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    REQUIRE(mapped != MAP_FAILED);
    std::memset(mapped, 'a', file_bytes);
    REQUIRE(disk.sync(*descriptor, path));
    std::memset(mapped, 'b', file_bytes);
    disk.cut();
    std::memset(mapped, 'c', file_bytes);
    CHECK_FALSE(disk.sync(*descriptor, path));
    const std::string left = read_file(scratch / ("image" + std::to_string(seed)) + "/map");
    REQUIRE(left.size() == file_bytes);
    std::size_t sectors = 0;
    for (std::size_t at = 0; at < file_bytes; at += 512) {
      const bool is_new = left[at] == 'b';
      sectors += is_new ? 1 : 0;
      REQUIRE(left.substr(at, 512) == std::string(512, is_new ? 'b' : 'a'));
    }
    arrived.insert(sectors);
    munmap(mapped, file_bytes);
    close(*descriptor);
  }
  CHECK(arrived.count(0) == 1);
  CHECK(arrived.count(file_bytes / 512) == 1);
  CHECK(arrived.size() > 4);
}

TEST_CASE("power disk: the end of a file that grows may be torn, what was synced never",
          "[power_disk]") {
  const Scratch scratch;
  const bool any_order = GENERATE(false, true);
  std::set<std::size_t> lengths;
  bool has_holes = false;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    PowerDisk::Options how = options_of(scratch, seed);
    how.any_order = any_order;
    PowerDisk disk{how};
    const std::string root = scratch / ("root" + std::to_string(seed));
    const auto file = make(disk, root + "/log");
    sync_directory(disk, root);
    append(*file, std::string(700, 'a'));
    REQUIRE(file->Sync({}, nullptr).ok());
    append(*file, std::string(1000, 'b'));
    disk.cut();
    CHECK_FALSE(file->Append("c", {}, nullptr).ok());
    const std::string left = read_file(scratch / ("image" + std::to_string(seed)) + "/log");
    REQUIRE(left.size() >= 700);
    REQUIRE(left.size() <= 1700);
    REQUIRE(left.substr(0, 700) == std::string(700, 'a'));
    REQUIRE(left.find_first_not_of(std::string{"b\0", 2}, 700) == std::string::npos);
    has_holes = has_holes || left.find('\0') != std::string::npos;
    lengths.insert(left.size());
  }
  CHECK(has_holes == any_order);
  CHECK(lengths.count(700) == 1);
  CHECK(lengths.count(1700) == 1);
  CHECK(lengths.size() > 6);
}

TEST_CASE("power disk: names hold from the sync of their directory", "[power_disk]") {
  const Scratch scratch;
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    PowerDisk disk{options_of(scratch, seed)};
    const std::string root = scratch / ("root" + std::to_string(seed));
    for (const char* name : {"/kept", "/gone"}) {
      const auto file = make(disk, root + name);
      append(*file, name);
      REQUIRE(file->Sync({}, nullptr).ok());
    }
    REQUIRE(files_of(disk)->DeleteFile(root + "/gone", {}, nullptr).ok());
    sync_directory(disk, root);
    const auto file = make(disk, root + "/new");
    append(*file, "new");
    REQUIRE(file->Sync({}, nullptr).ok());
    REQUIRE(files_of(disk)->RenameFile(root + "/new", root + "/kept", {}, nullptr).ok());
    disk.cut();
    const std::string image = scratch / ("image" + std::to_string(seed));
    CHECK_FALSE(std::filesystem::exists(image + "/gone"));
    const std::string kept = read_file(image + "/kept");
    CHECK((kept == "/kept" || kept == "new"));
    seen.insert(kept + (std::filesystem::exists(image + "/new") ? "+" : "-"));
  }
  CHECK(seen.count("/kept-") == 1);  // neither happened
  CHECK(seen.count("/kept+") == 1);  // it was made, not renamed
  CHECK(seen.count("new-") == 1);    // both
}

namespace {

/// Puts, synced, until power goes; returns how many of those that were acknowledged are lost.
int lost_of_rocksdb(const Scratch& scratch, std::uint64_t seed, PowerDisk::Lie lie) {
  PowerDisk::Options how = options_of(scratch, seed);
  how.cut_at = 20 + seed;
  how.lie = lie;
  int acknowledged = 0;
  {
    PowerDisk disk{how};
    rocksdb::Options options;
    options.create_if_missing = true;
    options.env = disk.env();
    options.write_buffer_size = 64 << 10;
    options.max_bgerror_resume_count = 0;
    rocksdb::DB* opened = nullptr;
    if (!rocksdb::DB::Open(options, how.root + "/db", &opened).ok()) return 0;
    const std::unique_ptr<rocksdb::DB> database{opened};
    rocksdb::WriteOptions write;
    write.sync = true;
    while (!disk.is_cut() && acknowledged < 400) {
      const std::string key = std::to_string(acknowledged);
      if (!database->Put(write, key, std::string(1000, 'v')).ok()) break;
      ++acknowledged;
    }
    disk.cut();
  }
  rocksdb::Options options;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, how.image + "/db", &opened);
  if (!status.ok()) {
    if (lie == PowerDisk::Lie::none) WARN(status.ToString());
    return acknowledged;
  }
  const std::unique_ptr<rocksdb::DB> database{opened};
  int lost = 0;
  for (int i = 0; i < acknowledged; ++i) {
    std::string value;
    lost += database->Get({}, std::to_string(i), &value).ok() ? 0 : 1;
  }
  return lost;
}

}  // namespace

TEST_CASE("power disk: RocksDB loses nothing of what it synced", "[power_disk]") {
  const Scratch scratch;
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    lost += lost_of_rocksdb(scratch, seed * 5, PowerDisk::Lie::none);
  }
  CHECK(lost == 0);
}

TEST_CASE("power disk: a disk that lies about its syncs is found out", "[power_disk]") {
  const Scratch scratch;
  const auto lie = GENERATE(PowerDisk::Lie::bytes, PowerDisk::Lie::names);
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) lost += lost_of_rocksdb(scratch, seed * 5, lie);
  CHECK(lost > 0);
}

TEST_CASE("power disk: a killed process reuses no segment, and writes no checkpoint, after its end",
          "[power_disk]") {
  const Scratch scratch;
  PowerDisk::Options options = options_of(scratch, 1);
  options.image.clear();  // killed
  options.ends_quietly = true;
  PowerDisk disk{options};
  storage::SegmentHeader header;
  header.number = 5;
  header.bytes = std::size_t{32} << 10;
  auto segment =
      storage::Segment::make(disk, options.root, header, false, storage::Segment::Access::mapped);
  REQUIRE(segment.ok());
  (*segment)->complete(header.bytes - storage::segment_header_bytes);
  const std::string path = (*segment)->path();
  const auto mark = storage::Checkpoint::open(disk, options.root + "/mark");
  REQUIRE(mark.ok());
  disk.cut();
  header.number = 27;
  CHECK_FALSE(storage::Segment::reuse(disk, *std::move(segment), options.root, header));
  const auto left = storage::SegmentFile::open(path);
  REQUIRE(left.ok());
  CHECK(left->header().number == 5);
  storage::CheckpointContent content;
  CHECK_FALSE((*mark)->write(content));
  CHECK(read_file((*mark)->path()) == std::string(storage::Checkpoint::file_bytes, '\0'));
}

}  // namespace semel::faults
