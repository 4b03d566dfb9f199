// The log of a replica: what is appended, replaced, forgotten and synced is there again, and damage
// is distinguished from what a power cut leaves.
#include "replication/log/entry_log.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "replication/log/vote_file.hpp"
#include "tests/support/catch.hpp"

namespace semel::tests {
namespace {

using namespace replication;
namespace fs = std::filesystem;

constexpr std::size_t segment_bytes = std::size_t{64} << 10;

struct Directory {
  Directory() {
    std::string pattern = (fs::temp_directory_path() / "semel_entry_log_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Directory() { fs::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] Result<std::unique_ptr<EntryLog>> open(std::uint64_t log_id = 7) {
    return EntryLog::open(
        {.directory = path, .disk = &disk, .segment_bytes = segment_bytes, .log_id = log_id});
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& each : fs::directory_iterator{path + "/log"}) {
      found.push_back(each.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  std::string path;
  storage::Disk disk;
};

std::string data_of(LogIndex index, Term term) {
  return "entry " + std::to_string(index) + " of term " + std::to_string(term) + " " +
         std::string(index % 700, static_cast<char>('a' + term % 26));
}

void append(EntryLog& log, LogIndex from, LogIndex to, Term term) {
  for (LogIndex index = from; index <= to; ++index) {
    const std::string data = data_of(index, term);
    const LogEntry entry{.index = index, .term = term, .type = 3, .data = data};
    REQUIRE(log.append({&entry, 1}));
  }
}

void require_entries(EntryLog& log, LogIndex from, LogIndex to, Term term) {
  for (LogIndex index = from; index <= to; ++index) {
    const auto data = log.read(index);
    REQUIRE(data.ok());
    REQUIRE(*data == data_of(index, term));
    REQUIRE(log.term_of(index) == term);
  }
}

void change(const std::string& path, std::uint64_t at) {
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  file.seekg(static_cast<std::streamoff>(at));
  const auto old = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(old ^ 0x10));
}

}  // namespace

TEST_CASE("entry log: entries are there after it is opened again, over many segments",
          "[entry_log]") {
  Directory directory;
  {
    auto log = *directory.open();
    CHECK(log->first() == 1);
    CHECK(log->last() == 0);
    append(*log, 1, 500, 1);
    REQUIRE(log->sync());
    require_entries(*log, 1, 500, 1);
  }
  CHECK(directory.files().size() > 2);
  auto log = *directory.open();
  CHECK(log->first() == 1);
  CHECK(log->last() == 500);
  require_entries(*log, 1, 500, 1);
  append(*log, 501, 600, 2);
  require_entries(*log, 501, 600, 2);
}

TEST_CASE("entry log: an entry replaces those from its index on", "[entry_log]") {
  Directory directory;
  {
    auto log = *directory.open();
    append(*log, 1, 300, 1);
    append(*log, 120, 200, 2);
    CHECK(log->last() == 200);
    REQUIRE(log->truncate(151));
    CHECK(log->last() == 150);
    REQUIRE(log->sync());
  }
  auto log = *directory.open();
  CHECK(log->last() == 150);
  require_entries(*log, 1, 119, 1);
  require_entries(*log, 120, 150, 2);
}

TEST_CASE("entry log: what is forgotten goes with its segments", "[entry_log]") {
  Directory directory;
  {
    auto log = *directory.open();
    append(*log, 1, 900, 1);
    // A conflict from an entry of the first segments on, in a later one.
    append(*log, 300, 800, 2);
    REQUIRE(log->sync());
    const std::uint64_t before = log->disk_bytes();
    REQUIRE(log->forget(400));
    CHECK(log->disk_bytes() < before);
    CHECK(log->first() == 401);
    CHECK(log->term_of(400) == 2);
    CHECK_FALSE(log->read(400).ok());
    CHECK_FALSE(log->forget(801));
    CHECK_FALSE(log->truncate(400));
  }
  auto log = *directory.open();
  CHECK(log->first() <= 401);
  CHECK(log->last() == 800);
  require_entries(*log, 401, 800, 2);
}

TEST_CASE("entry log: a snapshot takes the place of all entries", "[entry_log]") {
  Directory directory;
  {
    auto log = *directory.open();
    append(*log, 1, 50, 1);
    REQUIRE(log->restart(1'000, 4));
    CHECK(log->first() == 1'001);
    CHECK(log->last() == 1'000);
    CHECK(log->term_of(1'000) == 4);
    CHECK_FALSE(log->append(std::vector<LogEntry>{{.index = 1'002, .term = 4, .data = "x"}}));
    append(*log, 1'001, 1'010, 5);
    REQUIRE(log->sync());
  }
  auto log = *directory.open();
  CHECK(log->first() == 1'001);
  CHECK(log->term_of(1'000) == 4);
  require_entries(*log, 1'001, 1'010, 5);
}

TEST_CASE("entry log: an entry has a bound, and one that is too long changes nothing",
          "[entry_log]") {
  Directory directory;
  auto log = *directory.open();
  const std::string longest(log->data_bytes_max(), 'x');
  for (LogIndex index = 1; index <= 4; ++index) {
    REQUIRE(log->append(std::vector<LogEntry>{{.index = index, .term = 1, .data = longest}}));
  }
  const std::string longer(log->data_bytes_max() + 1, 'x');
  CHECK(log->append(std::vector<LogEntry>{{.index = 5, .term = 1, .data = longer}}).error().code ==
        ErrorCode::value_too_long);
  CHECK(log->last() == 4);
  CHECK(*log->read(4) == longest);
  REQUIRE(log->append(std::vector<LogEntry>{{.index = 5, .term = 1, .data = {}}}));
  CHECK(log->read(5)->empty());
}

TEST_CASE("entry log: a changed byte before the last sync is damage, behind it it is cut off",
          "[entry_log]") {
  for (const bool is_synced : {true, false}) {
    Directory directory;
    {
      auto log = *directory.open();
      append(*log, 1, 20, 1);
      REQUIRE(log->sync());
      append(*log, 21, 40, 1);
      // Says that the first 20 are on the disk, or that all but itself are.
      if (is_synced) REQUIRE(log->sync());
      append(*log, 41, 41, 1);
      REQUIRE(log->sync());
    }
    const std::string path = directory.files().back();
    // Entry 30 is behind the first sync. Each entry has some 60 bytes.
    std::uint64_t at = storage::segment_header_bytes;
    {
      std::ifstream file{path, std::ios::binary};
      const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
      at = bytes.find("entry 30 of");
      REQUIRE(at != std::string::npos);
    }
    change(path, at);
    // As a power cut leaves it; a killed process leaves how far it had synced.
    fs::remove(directory.path + "/tail");
    const auto log = directory.open();
    CHECK(log.ok() == !is_synced);
    if (log.ok()) {
      CHECK((*log)->last() == 29);
      require_entries(**log, 1, 29, 1);
    } else {
      CHECK(log.error().code == ErrorCode::storage_damaged);
      CHECK(log.error().detail.find(path) == 0);
    }
  }
}

TEST_CASE("entry log: damage in an earlier segment, a missing one and a foreign one are refused",
          "[entry_log]") {
  const auto filled = [](Directory& directory) {
    auto log = *directory.open();
    append(*log, 1, 600, 1);
    REQUIRE(log->sync());
  };
  {
    Directory directory;
    filled(directory);
    change(directory.files().front(), segment_bytes / 2);
    CHECK(directory.open().error().code == ErrorCode::storage_damaged);
  }
  {
    Directory directory;
    filled(directory);
    fs::remove(directory.files()[1]);
    CHECK(directory.open().error().code == ErrorCode::storage_damaged);
  }
  {
    Directory directory;
    filled(directory);
    CHECK(directory.open(8).error().code == ErrorCode::storage_failed);
    CHECK(directory.open(7).ok());
  }
  {
    Directory directory;
    filled(directory);
    change(directory.files().back(), 8);  // its header
    CHECK(directory.open().error().code == ErrorCode::storage_damaged);
  }
}

TEST_CASE("entry log: a segment that was half made is removed", "[entry_log]") {
  Directory directory;
  {
    auto log = *directory.open();
    append(*log, 1, 10, 1);
    REQUIRE(log->sync());
  }
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, segment_bytes}) {
    const std::string path = directory.path + "/log/" + storage::segment_name(2 * segment_bytes);
    std::ofstream{path, std::ios::binary} << std::string(bytes, '\0');
    auto log = directory.open();
    REQUIRE(log.ok());
    CHECK((*log)->last() == 10);
    CHECK_FALSE(fs::exists(path));
  }
}

TEST_CASE("entry log: a newest segment that is gone, or cut, is damage",
          "[entry_log][between-11]") {
  Directory directory;
  const bool many = GENERATE(false, true);  // segments
  const bool begins_anew = GENERATE(false, true);
  const LogIndex last = many ? 1'000 : 30;
  {
    auto log = std::move(*directory.open());
    append(*log, 1, last, 2);
    REQUIRE(log->sync());
  }
  if (begins_anew) {
    auto log = std::move(*directory.open());
    append(*log, last + 1, last + 5, 2);
    REQUIRE(log->sync());
  }
  const std::vector<std::string> files = directory.files();
  CHECK((files.size() > 2) == many);
  const std::string newest = files.back();
  std::string whole(segment_bytes, '\0');
  std::ifstream{newest, std::ios::binary}.read(whole.data(),
                                               static_cast<std::streamsize>(whole.size()));
  const std::size_t end = whole.find_last_not_of('\0') + 1;
  struct Harm {
    const char* name;
    std::size_t keeps;       // bytes
    std::size_t zeros_from;  // of what is kept
    bool is_removed = false;
  };
  const std::size_t middle = (storage::segment_header_bytes + end) / 2;
  const Harm harms[] = {
      {"removed", 0, 0, true},
      {"cut to 0", 0, 0},
      {"cut to 4,095", 4'095, 4'095},
      {"cut behind its header", storage::segment_header_bytes, storage::segment_header_bytes},
      {"cut in the middle", middle, middle},
      {"zeros", segment_bytes, 0},
      {"zeros from the middle on", segment_bytes, middle},
  };
  for (const Harm& harm : harms) {
    INFO(harm.name << ", " << newest);
    fs::remove(newest);
    if (!harm.is_removed) {
      std::string bytes = whole.substr(0, harm.keeps);
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(harm.zeros_from), bytes.end(), '\0');
      std::ofstream{newest, std::ios::binary} << bytes;
    }
    const auto opened = directory.open();
    REQUIRE(!opened.ok());
    INFO(opened.error().detail);
    CHECK(opened.error().code == ErrorCode::storage_damaged);
    CHECK(opened.error().detail.find(newest) != std::string::npos);
    std::ofstream{newest, std::ios::binary} << whole;
  }
  auto again = directory.open();
  REQUIRE(again.ok());
  CHECK((*again)->last() == (begins_anew ? last + 5 : last));
}

TEST_CASE("entry log: all segments that are gone are damage", "[entry_log][between-11]") {
  Directory directory;
  {
    auto log = std::move(*directory.open());
    append(*log, 1, 3, 2);
    REQUIRE(log->sync());
  }
  for (const std::string& each : directory.files()) fs::remove(each);
  const auto opened = directory.open();
  REQUIRE(!opened.ok());
  CHECK(opened.error().code == ErrorCode::storage_damaged);
}

TEST_CASE("entry log: a log of a release without a tail is opened, and has one then",
          "[entry_log][between-11]") {
  Directory directory;
  {
    auto log = std::move(*directory.open());
    append(*log, 1, 3, 2);
    REQUIRE(log->sync());
  }
  fs::remove(directory.path + "/tail");
  REQUIRE(directory.open().ok());
  fs::remove(directory.files().back());
  CHECK(!directory.open().ok());
}

TEST_CASE("entry log: a directory has one log at a time, and a copy of it is refused",
          "[entry_log]") {
  Directory directory;
  {
    auto log = *directory.open();
    append(*log, 1, 10, 1);
    REQUIRE(log->sync());
    CHECK(directory.open().error().code == ErrorCode::storage_in_use);
  }
  Directory copy;
  fs::copy(directory.path, copy.path, fs::copy_options::recursive);
  CHECK(copy.open().error().code == ErrorCode::storage_failed);
  CHECK(EntryLog::open({.directory = copy.path,
                        .disk = &copy.disk,
                        .segment_bytes = segment_bytes,
                        .log_id = 7,
                        .accepts_copy = true})
            .ok());
  CHECK(copy.open().ok());  // it is its own now
}

TEST_CASE("entry log: a full disk refuses an entry, and takes it when there is space",
          "[entry_log]") {
  class FullDisk final : public storage::Disk {
   public:
    Result<int> create(const std::string& path, std::size_t bytes) override {
      if (is_full) return Error{ErrorCode::storage_failed, path + ": No space left on device"};
      return Disk::create(path, bytes);
    }
    bool is_full = false;
  };
  Directory directory;
  FullDisk disk;
  const auto open = [&] {
    return *EntryLog::open(
        {.directory = directory.path, .disk = &disk, .segment_bytes = segment_bytes, .log_id = 7});
  };
  auto log = open();
  append(*log, 1, 10, 1);
  disk.is_full = true;
  LogIndex next = 11;
  Status status{Done{}};
  for (; status && next < 2'000; next += status ? 1 : 0) {
    const std::string data = data_of(next, 1);
    status = log->append(std::vector<LogEntry>{{.index = next, .term = 1, .data = data}});
  }
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::storage_failed);
  CHECK(log->last() == next - 1);
  require_entries(*log, 1, next - 1, 1);
  REQUIRE(log->sync());
  disk.is_full = false;
  append(*log, next, next + 10, 1);
  REQUIRE(log->sync());
  log.reset();
  log = open();
  require_entries(*log, 1, next + 10, 1);
}

TEST_CASE("entry log: after a sync that failed every call fails", "[entry_log]") {
  class FailingDisk final : public storage::Disk {
   public:
    Status sync(int descriptor, const std::string& path) override {
      return fails ? failed(path) : Disk::sync(descriptor, path);
    }
    Status sync_part(char* memory, const std::string& path, std::size_t from,
                     std::size_t to) override {
      return fails ? failed(path) : Disk::sync_part(memory, path, from, to);
    }
    static Status failed(const std::string& path) {
      return Error{ErrorCode::storage_failed, path + ": Input/output error"};
    }
    bool fails = false;
  };
  Directory directory;
  FailingDisk disk;
  auto log = *EntryLog::open(
      {.directory = directory.path, .disk = &disk, .segment_bytes = segment_bytes, .log_id = 7});
  append(*log, 1, 10, 1);
  disk.fails = true;
  CHECK_FALSE(log->sync());
  disk.fails = false;
  CHECK_FALSE(log->sync());
  CHECK_FALSE(log->append(std::vector<LogEntry>{{.index = 11, .term = 1, .data = "x"}}));
  CHECK_FALSE(log->truncate(5));
  CHECK_FALSE(log->forget(5));
  CHECK(log->last() == 10);
}

TEST_CASE("entry log: options are checked", "[entry_log]") {
  Directory directory;
  for (const std::size_t bytes : {std::size_t{0}, segment_bytes / 2, segment_bytes + 1}) {
    const auto log = EntryLog::open({.directory = directory.path,
                                     .disk = &directory.disk,
                                     .segment_bytes = bytes,
                                     .log_id = 7});
    CHECK(log.error().code == ErrorCode::bad_option);
  }
}

TEST_CASE("vote file: term and vote are there again", "[entry_log]") {
  Directory directory;
  const std::string path = directory.path + "/vote";
  for (std::uint64_t term = 0; term < 5; ++term) {
    auto file = VoteFile::open(directory.disk, path);
    REQUIRE(file.ok());
    VoteContent content;
    const auto found = (*file)->read(content);
    REQUIRE(found.ok());
    CHECK(*found == (term == 0 ? VoteFile::Found::empty : VoteFile::Found::content));
    if (term != 0) CHECK(content.term == term);
    content.term = term + 1;
    content.voted_for = 3;
    REQUIRE((*file)->write_and_sync(content));
  }
}

}  // namespace semel::tests
