// After a failed sync the system takes the bytes for written: the next process reads them, a second
// sync succeeds, and a power cut takes them. A replica counts what it reads there as its vote.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "replication/log/entry_log.hpp"
#include "replication/log/vote_file.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace fs = std::filesystem;

/// Knows what of each file is on the disk. A sync brings there what changed since the one before.
class ForgetfulDisk final : public storage::Disk {
 public:
  Status sync(int /*descriptor*/, const std::string& path) override { return settle(path); }
  Status sync_file(const std::string& path) override { return settle(path); }
  Status sync_part(char* /*memory*/, const std::string& path, std::size_t /*from*/,
                   std::size_t /*to*/) override {
    return settle(path);
  }
  Status rewrite_file(const std::string& path, std::uint64_t from) override {
    std::string& clean = files_[path].taken_for_written;
    clean.resize(std::min<std::size_t>(clean.size(), from));  // the rest is to be written
    return settle(path);
  }
  void fail(bool fails) { fails_ = fails; }
  void cut_power() const {
    for (const auto& [path, file] : files_) {
      if (fs::exists(path)) std::ofstream{path, std::ios::binary} << file.on_disk;
    }
  }

 private:
  struct File {
    std::string taken_for_written{};
    std::string on_disk{};
  };
  Status settle(const std::string& path) {
    std::ifstream in{path, std::ios::binary};
    const std::string now{std::istreambuf_iterator<char>{in}, {}};
    File& file = files_[path];
    file.on_disk.resize(now.size());
    for (std::size_t i = 0; i < now.size() && !fails_; ++i) {
      const bool is_dirty =
          i >= file.taken_for_written.size() || file.taken_for_written[i] != now[i];
      if (is_dirty) file.on_disk[i] = now[i];
    }
    file.taken_for_written = now;
    if (fails_) return Error{ErrorCode::storage_failed, path + ": Input/output error"};
    return Done{};
  }

  std::map<std::string, File> files_{};
  bool fails_ = false;
};

struct KeptFolder {
  KeptFolder() {
    std::string pattern = (fs::temp_directory_path() / "semel_failed_sync_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~KeptFolder() { fs::remove_all(path); }
  KeptFolder(const KeptFolder&) = delete;
  KeptFolder& operator=(const KeptFolder&) = delete;
  std::string path;
};

}  // namespace

TEST_CASE("failed sync: entries that the next process has outlive a power cut", "[entry_log]") {
  const KeptFolder place;
  ForgetfulDisk disk;
  const auto open = [&] {
    auto log = EntryLog::open({.directory = place.path,
                               .disk = &disk,
                               .segment_bytes = std::size_t{64} << 10,
                               .log_id = 7});
    REQUIRE(log.ok());
    return std::move(*log);
  };
  const auto append = [](EntryLog& log, LogIndex index) {
    const std::string data = "entry " + std::to_string(index);
    const LogEntry entry{.index = index, .term = 1, .type = 3, .data = data};
    REQUIRE(log.append({&entry, 1}));
  };
  {
    const auto log = open();
    append(*log, 1);
    REQUIRE(log->sync());
    append(*log, 2);
    disk.fail(true);
    REQUIRE_FALSE(log->sync());
    disk.fail(false);
  }
  {
    const auto log = open();
    REQUIRE(log->last() == 2);
    append(*log, 3);
    REQUIRE(log->sync());
  }
  disk.cut_power();
  const auto log = open();
  REQUIRE(log->last() == 3);
  for (LogIndex index = 1; index <= 3; ++index) {
    const auto data = log->read(index);
    REQUIRE(data.ok());
    CHECK(*data == "entry " + std::to_string(index));
  }
}

TEST_CASE("failed sync: a vote that the next process reads outlives a power cut", "[entry_log]") {
  const KeptFolder place;
  ForgetfulDisk disk;
  const std::string path = place.path + "/vote";
  const auto open = [&] {
    auto file = VoteFile::open(disk, path);
    REQUIRE(file.ok());
    return std::move(*file);
  };
  VoteContent content;
  {
    const auto file = open();
    content.term = 1;
    content.voted_for = 1;
    REQUIRE(file->write_and_sync(content));
    content.term = 2;
    content.voted_for = 2;
    disk.fail(true);
    REQUIRE_FALSE(file->write_and_sync(content));
    disk.fail(false);
  }
  VoteContent found;
  {
    const auto file = open();
    REQUIRE(file->read(found).ok());
    REQUIRE(found.term == 2);
  }
  disk.cut_power();
  const auto file = open();
  REQUIRE(file->read(found).ok());
  CHECK(found.term == 2);
  CHECK(found.voted_for == 2);
}

}  // namespace semel::tests
